// Terms by target language, and words that are not translated. Stored in this browser, sent with each request.

import { byId, element, icon, setText } from "./dom.js";
import { load, save } from "./storage.js";

export class Glossary {
  #terms = load("glossary", {}); // {target language: [[term, translation], ...]}
  #kept = load("kept", []);

  constructor(languages, onChange) {
    Object.assign(this, { languages, onChange });
    this.termList = byId("terms");
    this.keptList = byId("kept");
    byId("add-term").addEventListener("click", () => {
      this.#rows.push(["", ""]);
      this.show();
      this.termList.lastElementChild.querySelector("input").focus();
    });
    byId("kept-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = byId("kept-word");
      const word = field.value.trim();
      field.value = "";
      if (word && !this.#kept.includes(word)) this.#changed(() => this.#kept.push(word));
    });
  }

  /** What goes into a request; a field is absent where there is nothing to say. */
  get fields() {
    const terms = this.#rows.map((row) => row.map((part) => part.trim())).filter(([term, wording]) => term && wording);
    return {
      ...(terms.length ? { glossary: Object.fromEntries(terms) } : {}),
      ...(this.#kept.length ? { do_not_translate: [...this.#kept] } : {}),
    };
  }

  /** Shows the terms of the current target language. */
  show() {
    byId("terms-legend").textContent = `Terms into ${this.languages.name(this.languages.target)}`;
    this.termList.replaceChildren(...this.#rows.map((row) => this.#termRow(row)));
    this.keptList.replaceChildren(...this.#kept.map((word) => this.#keptRow(word)));
    this.#count();
  }

  get #rows() {
    return (this.#terms[this.languages.target] ??= []);
  }

  #termRow(row) {
    const field = (place, label) => {
      const typed = (event) => {
        row[place] = event.target.value;
        this.#store();
      };
      return element("input", { "aria-label": label, placeholder: label, value: row[place], dir: "auto", autocomplete: "off", spellcheck: "false", oninput: typed });
    };
    const remove = () => this.#changed(() => this.#rows.splice(this.#rows.indexOf(row), 1), "add-term");
    const arrow = element("span", { "aria-hidden": "true" }, "→");
    return element("li", {}, field(0, "Term"), arrow, field(1, "Translation"), removal(`Remove the term ${row[0]}`, remove));
  }

  #keptRow(word) {
    const remove = () => this.#changed(() => this.#kept.splice(this.#kept.indexOf(word), 1), "kept-word");
    return element("li", {}, element("span", { dir: "auto" }, word), removal(`Translate ${word} again`, remove));
  }

  #changed(change, focus = "") {
    change();
    this.show();
    if (focus) byId(focus).focus();
    this.#store();
  }

  #store() {
    save("glossary", this.#terms);
    save("kept", this.#kept);
    this.#count();
    this.onChange();
  }

  #count() {
    const { glossary = {}, do_not_translate: kept = [] } = this.fields;
    const count = Object.keys(glossary).length + kept.length;
    setText(byId("glossary-badge"), count ? String(count) : "");
  }
}

function removal(label, onclick) {
  return element("button", { type: "button", class: "quiet small", "aria-label": label, title: label, onclick }, icon("clear"));
}
