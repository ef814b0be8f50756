// A translation as the page holds it: the service's answer, in JavaScript's offsets, with what is missing left empty.

import { converter } from "./ranges.js";

/**
 * @typedef {object} Sentence
 * @property {[number, number]} source  where it stands in the source text
 * @property {[number, number]} target  where it stands in the translation
 * @property {number | null} quality  0 to 100, or null where the service does not say
 * @property {string[]} alternatives  other translations, best first; empty if not asked for
 * @property {{source: [number, number], target: [number, number]}[]} links  words that belong together
 * @property {object | null} attention  {source: pieces, target: pieces, weights: [layer][head][target][source]}
 * @property {string} wording  its text in the translation
 * @property {Sentence | null} original  what the service said, where the reader chose another wording
 */

/** The answer to one text. `source` is the text as it was sent. */
export function read(response, source) {
  const text = String(response.translatedText ?? "");
  return {
    source,
    text,
    detected: response.detectedLanguage ?? null,
    bridge: typeof response.bridge === "string" ? response.bridge : "",
    quality: number(response.quality),
    alternatives: response.alternatives ?? [],
    sentences: sentences(response, source, text),
  };
}

/** What is there of an answer whose sentences come one by one: `{index, source, translatedText, quality}`.
 *  Their texts join to the translation, and bring along the space that stands around them. */
export function readPartial(events, source) {
  const inSource = converter(source);
  const found = [];
  let text = "";
  for (const event of events) {
    const [begin, end] = inSource(event.source);
    const place = moved(trimmed(source.slice(begin, end)), begin);
    const target = moved(trimmed(event.translatedText), text.length);
    text += event.translatedText;
    if (target[0] < target[1]) found.push(named(sentence(place, target, event), text));
  }
  return { source, text, detected: null, bridge: "", quality: null, alternatives: [], sentences: found };
}

/** The answer with another wording of a sentence, by the reader's choice; its original wording brings all back. */
export function reworded(answer, index, wording) {
  const before = answer.sentences[index];
  const original = before.original ?? before;
  const [begin, end] = before.target;
  const change = wording.length - (end - begin);
  const shift = (range) => (range[0] >= end ? moved(range, change) : range);
  const text = answer.text.slice(0, begin) + wording + answer.text.slice(end);
  const target = [begin, begin + wording.length];
  const sentences = answer.sentences.map((other, place) =>
    place === index ? chosen(original, wording, target) : relocated(other, shift),
  );
  return { ...answer, text, sentences };
}

function chosen(original, wording, target) {
  if (wording !== original.wording) {
    return { ...original, target, quality: null, links: [], attention: null, original, wording };
  }
  const shift = (range) => moved(range, target[0] - original.target[0]);
  return { ...relocated(original, shift), original: null };
}

function relocated(sentence, shift) {
  const links = sentence.links.map((link) => ({ source: link.source, target: shift(link.target) }));
  return { ...sentence, target: shift(sentence.target), links };
}

function sentences(response, source, text) {
  const inSource = converter(source);
  const inTarget = converter(text);
  const found = (response.segments ?? [])
    .map((segment) => {
      const links = (segment.alignment ?? []).map(([left, right]) => ({ source: inSource(left), target: inTarget(right) }));
      return { ...sentence(inSource(segment.source), inTarget(segment.target), segment), links };
    })
    .filter(({ target }) => target[0] < target[1])
    .sort((left, right) => left.target[0] - right.target[0]);
  if (found.length || !text.trim()) return found.map((each) => named(each, text));
  const whole = { quality: response.quality, alternatives: response.alternatives };
  return [named(sentence(trimmed(source), trimmed(text), whole), text)];
}

function sentence(source, target, { quality, alternatives, attention }) {
  return {
    source,
    target,
    quality: number(quality),
    alternatives: alternatives ?? [],
    links: [],
    attention: attention ?? null,
    original: null,
  };
}

function named(sentence, text) {
  return { ...sentence, wording: text.slice(...sentence.target) };
}

function moved([begin, end], by) {
  return [begin + by, end + by];
}

/** Where the text stands in itself without the space around it. */
function trimmed(text) {
  const begin = text.length - text.trimStart().length;
  return [begin, begin + text.trim().length];
}

function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
