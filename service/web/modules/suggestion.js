// The form of the popover of a sentence, in which a reader suggests a better translation.

import { byId } from "./dom.js";
import { localized } from "./messages.js";

export class Suggestion {
  /** @param {{send: (sentence, wording) => Promise<void>, onSent: (wording) => void}} acts */
  constructor(acts) {
    Object.assign(this, acts);
    this.form = byId("suggestion");
    this.field = byId("suggestion-text");
    this.note = byId("suggestion-note");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  /** Shows the form in each popover. */
  enable() {
    this.form.hidden = false;
  }

  /** Begins with the present wording of a sentence. */
  begin(sentence) {
    this.sentence = sentence;
    this.field.value = sentence.wording;
    this.note.textContent = "";
  }

  async #submit() {
    const wording = this.field.value.trim();
    if (!wording) return;
    const { sentence } = this;
    this.note.textContent = localized("suggestion.sending");
    try {
      await this.send(sentence, wording);
      if (sentence === this.sentence) this.onSent(wording);
    } catch (error) {
      this.note.textContent = error.message;
    }
  }
}
