// Editing of the translation in place: while it is on, each sentence is a text field.

import { byId } from "./dom.js";
import { localized } from "./messages.js";

export class Editing {
  /** @param {{output: OutputPane, onInput: (index: number, wording: string) => void, onEnd: () => void}} acts */
  constructor(acts) {
    Object.assign(this, acts);
    this.button = byId("edit");
    this.button.addEventListener("click", () => (this.output.editing ? this.end() : this.begin()));
    const { output: pane } = this.output;
    pane.addEventListener("input", (event) => {
      const sentence = event.target.closest(".sentence");
      if (sentence) this.onInput(Number(sentence.dataset.index), sentence.textContent);
    });
    pane.addEventListener("keydown", (event) => {
      if (event.key === "F2" && !this.output.editing) this.begin();
      else if (event.key === "Escape" && this.output.editing) this.end();
      else return;
      event.preventDefault();
    });
  }

  begin() {
    this.output.edit((number) => localized("edit.sentence", { number }));
    this.output.focus();
    this.button.setAttribute("aria-pressed", "true");
    byId("result").textContent = localized("edit.began");
  }

  /** Ends the editing, and shows the edited translation. */
  end() {
    this.stop();
    this.onEnd();
    byId("result").textContent = localized("edit.ended");
    this.output.focus();
  }

  /** Ends the editing because the translation is replaced. */
  stop() {
    this.output.editing = false;
    this.button.setAttribute("aria-pressed", "false");
  }
}
