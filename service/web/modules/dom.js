// Elements, without a framework.

const SVG = "http://www.w3.org/2000/svg";

/** The element with an id of index.html. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

/** A new element: `element("p", { class: "note", onclick }, "text", child)`. */
export function element(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

/** An icon of the sprite in index.html. */
export function icon(name) {
  return drawn("svg", { class: "icon", "aria-hidden": "true" }, drawn("use", { href: `#icon-${name}` }));
}

function dressed(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** Shows the text in an element, or hides it when there is none. */
export function say(target, text) {
  target.textContent = text;
  target.hidden = !text;
}
