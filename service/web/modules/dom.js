// Creates and finds DOM elements.

const SVG = "http://www.w3.org/2000/svg";

/** Returns the element of index.html with this id. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
}

/** Returns a new element: `element("p", { class: "note", onclick }, "text", child)`. */
export function element(tag, attributes = {}, ...children) {
  return withAttributes(document.createElement(tag), attributes, children);
}

/** Returns a new SVG element. */
export function svgElement(tag, attributes = {}, ...children) {
  return withAttributes(document.createElementNS(SVG, tag), attributes, children);
}

/** Returns an icon of index.html. */
export function icon(name) {
  return svgElement("svg", { class: "icon", "aria-hidden": "true" }, svgElement("use", { href: `#icon-${name}` }));
}

function withAttributes(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** Shows a text in an element, or hides the element if the text is empty. */
export function setText(target, text) {
  target.textContent = text;
  target.hidden = !text;
}
