// The service counts Unicode code points, and JavaScript counts UTF-16 units: "😀" is one code point and two units.

/** Returns the length of a text in code points. */
export function countPoints(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Returns a function from the service's ranges in `text` to JavaScript's, limited to the text. */
export function converter(text) {
  const units = [];
  let unit = 0;
  for (const character of text) {
    units.push(unit);
    unit += character.length;
  }
  units.push(unit);
  const at = (point) => units[Math.min(Math.max(Math.trunc(point) || 0, 0), units.length - 1)];
  return ([begin, end]) => [at(begin), Math.max(at(begin), at(end))];
}

/**
 * Cuts a range where links begin and end.
 * @param {[number, number]} range
 * @param {{id: number, range: [number, number]}[]} links
 * @returns {{begin: number, end: number, links: number[]}[]} pieces side by side, with the links that cover each
 */
export function cut([begin, end], links) {
  const inside = links.filter(({ range }) => range[0] < range[1] && range[0] >= begin && range[1] <= end);
  const marks = new Set([begin, end, ...inside.flatMap(({ range }) => range)]);
  const borders = [...marks].sort((left, right) => left - right);
  return borders.slice(1).map((stop, place) => ({
    begin: borders[place],
    end: stop,
    links: inside.filter(({ range }) => range[0] <= borders[place] && range[1] >= stop).map(({ id }) => id),
  }));
}

/** Returns where texts occur as whole words within a range of `text`. */
export function occurrences(text, [begin, end], texts) {
  return texts.flatMap((each) => {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\p{L}\\p{N}])`, "gu");
    return [...text.slice(begin, end).matchAll(pattern)].map(({ index }) => [begin + index, begin + index + each.length]);
  });
}
