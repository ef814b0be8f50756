// The choice of formal or informal address, for target languages that have both.

import { byId } from "./dom.js";
import { primary } from "./languages.js";
import { load, save } from "./storage.js";

export class Formality {
  #languages = []; // target languages with formal and informal address

  /** @param {() => void} onChange  called when another form of address is chosen */
  constructor(onChange) {
    this.choice = byId("formality-choice");
    this.select = byId("formality");
    this.select.value = load("formality", "default");
    this.select.addEventListener("change", () => {
      save("formality", this.select.value);
      onChange();
    });
  }

  /** @param {string[]} languages  as GET /frontend/settings returns them */
  offer(languages) {
    this.#languages = languages;
  }

  show(target) {
    this.choice.hidden = !this.#languages.includes(primary(target));
  }

  /** The field of a request: the chosen form of address, if it is not the model's own choice. */
  get fields() {
    return this.choice.hidden || this.select.value === "default" ? {} : { formality: this.select.value };
  }
}
