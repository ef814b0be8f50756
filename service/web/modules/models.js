// The choice among the models that translate the selected languages, what the chosen model was trained on, and which
// models translated a text if they are not the chosen one.

import { byId, element, setText } from "./dom.js";
import { language, localized } from "./messages.js";

const DEFAULT = "default";

export class Models {
  #list = [];
  #used = []; // names of the models that translated the text, in order

  constructor(onChange) {
    this.choice = byId("model-choice");
    this.select = byId("model");
    this.select.addEventListener("change", () => {
      this.#used = [];
      this.#showAbout();
      onChange();
    });
  }

  /** @param {{name: string, about: string, sources: string[], targets: string[], pairs: string[] | null, licence: string, bundled: boolean}[]} list  as GET /models returns it */
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
    this.#used = [];
    this.#showAbout();
  }

  /** Shows which models translated a text: others than the chosen one if the language was detected. */
  showUsed(names) {
    this.#used = [...new Set(names)];
    this.#showAbout();
  }

  /** The name of the model that the reader chose; "" for the default model. */
  get chosen() {
    return this.choice.hidden || this.select.selectedIndex === 0 ? "" : this.select.value;
  }

  /** The field of a request: the chosen model if there is a choice. */
  get fields() {
    return this.choice.hidden ? {} : { model: this.chosen || DEFAULT };
  }

  #showAbout() {
    const [first, second] = this.#used;
    const other = first && first !== this.select.value ? localized("model.used", { model: first }) : "";
    setText(byId("used-model"), second ? localized("model.used-two", { first, second }) : other);
    const model = this.#list.find(({ name }) => name === (first ?? this.select.value));
    const translating = first ? this.#used : [this.select.value];
    byId("trial").hidden = !this.#list.some(({ name, bundled }) => bundled && translating.includes(name));
    byId("about").hidden = !model || Boolean(second);
    const about = byId("about-model");
    const stated = model?.bundled ? localized("model.about-bundled") : ""; // others describe themselves in English
    about.textContent = stated || model?.about || localized("model.unstated");
    about.lang = !stated && model?.about ? "en" : language;
    setText(byId("about-licence"), model?.licence ? localized("model.licence", { licence: model.licence }) : "");
  }
}
