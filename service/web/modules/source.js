// The left pane: a text field, and behind it the same text in elements that can be highlighted.

import { localized } from "./messages.js";
import { countPoints } from "./ranges.js";

const LONG = 400; // characters from which smaller letters are used

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

  /** Sets the longest text that the service accepts, in characters. */
  limitTo(limit) {
    this.limit = limit > 0 ? limit : Infinity; // LibreTranslate's -1 means no limit
    this.#changed();
  }

  get tooLong() {
    return countPoints(this.text) > this.limit;
  }

  get tooLongMessage() {
    return localized("source.too-long", { count: countPoints(this.text), limit: this.limit });
  }

  /** Shows pieces with links behind the text, unless it has changed since they were made. `language` is "" if unknown. */
  show(text, pieces, language) {
    if (text !== this.text) return;
    for (const part of [this.field, this.mirror]) part.lang = language;
    this.mirror.replaceChildren(...pieces, "\u200b");
  }

  #changed() {
    const count = countPoints(this.text);
    this.mirror.textContent = `${this.text}\u200b`; // gives a last empty line its height
    document.body.classList.toggle("long", count > LONG);
    this.clear.hidden = !this.text;
    const excess = count - this.limit;
    const key = excess > 0 ? "source.too-many" : Number.isFinite(this.limit) ? "source.characters-of" : "source.characters";
    this.count.textContent = localized(key, { count, limit: this.limit, excess });
    this.count.classList.toggle("over", excess > 0);
  }
}

/** Shows a tick on a button for a short time. */
export function tick(button) {
  const use = button.querySelector("use");
  const before = use.getAttribute("href");
  if (before === "#icon-done") return;
  use.setAttribute("href", "#icon-done");
  setTimeout(() => use.setAttribute("href", before), 1500);
}
