// The choice among the models that translate the selected languages, and what the chosen model was trained on.

import { element, setText } from "./dom.js";

const DEFAULT = "default";

export class Models {
  #list = [];

  /** @param {{choice, select, about}} parts  of index.html */
  constructor(parts, onChange) {
    Object.assign(this, parts);
    this.select.addEventListener("change", () => {
      this.#showAbout();
      onChange();
    });
  }

  /** @param {{name: string, about: string, sources: string[], targets: string[], pairs: string[] | null}[]} list  as GET /models returns it */
  set list(list) {
    this.#list = list;
  }

  /** Offers the models of two languages, the default model first; a chosen model stays chosen. */
  show(source, target) {
    const translates = ({ sources, targets, pairs }) =>
      source === "auto" ? targets.includes(target) : pairs ? pairs.includes(`${source}-${target}`) : sources.includes(source) && targets.includes(target);
    const names = this.#list.filter(translates).map(({ name }) => name);
    const chosen = names.includes(this.select.value) ? this.select.value : names[0];
    this.select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    if (chosen) this.select.value = chosen;
    this.choice.hidden = names.length < 2;
    this.#showAbout();
  }

  /** The field of a request: the chosen model if there is a choice. */
  get fields() {
    return this.choice.hidden ? {} : { model: this.select.selectedIndex === 0 ? DEFAULT : this.select.value };
  }

  #showAbout() {
    setText(this.about, this.#list.find(({ name }) => name === this.select.value)?.about ?? "");
  }
}
