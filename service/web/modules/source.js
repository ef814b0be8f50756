// The left pane: a text field, and behind it the same text in spans that can be lit up (a text field has none).

import { element } from "./dom.js";
import { countPoints } from "./ranges.js";

const LONG = 400; // characters from which smaller letters read better

export class SourcePane {
  /** @param {{field, mirror, count, clear}} parts  of index.html */
  constructor(parts, { onInput, onNow }) {
    Object.assign(this, parts);
    this.limit = Infinity;
    this.field.addEventListener("input", (event) => {
      this.#changed();
      onInput(event.inputType === "insertFromPaste" || event.inputType === "insertFromDrop");
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      onNow();
    });
    this.#changed();
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.#changed();
  }

  /** The longest text that the service takes, in characters. */
  limitTo(limit) {
    this.limit = limit > 0 ? limit : Infinity; // LibreTranslate says -1 for none
    this.#changed();
  }

  get tooLong() {
    return countPoints(this.text) > this.limit;
  }

  /** Puts pieces with their links behind the text, if it is still the text that they were made for. */
  show(text, pieces) {
    if (text !== this.text) return;
    this.mirror.replaceChildren(...pieces, "\u200b");
  }

  #changed() {
    const count = countPoints(this.text);
    this.mirror.textContent = `${this.text}\u200b`; // so that a last empty line has its height
    document.body.classList.toggle("long", count > LONG);
    this.clear.hidden = !this.text;
    const over = count - this.limit;
    const limit = Number.isFinite(this.limit) ? ` / ${this.limit.toLocaleString("en")}` : "";
    const excess = over > 0 ? `: ${over.toLocaleString("en")} too many` : "";
    this.count.textContent = count || limit ? `${count.toLocaleString("en")}${limit}${excess}` : "";
    this.count.classList.toggle("over", over > 0);
    if (this.count.textContent) this.count.append(element("span", { class: "hidden" }, " characters"));
  }
}

/** Shows a tick on a button for a moment. */
export function tick(button) {
  const use = button.querySelector("use");
  const before = use.getAttribute("href");
  if (before === "#icon-done") return;
  use.setAttribute("href", "#icon-done");
  setTimeout(() => use.setAttribute("href", before), 1500);
}
