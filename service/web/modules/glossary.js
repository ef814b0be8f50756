// Terms by target language, and words that are not translated. Stored in this browser, sent with each request. The terms of
// the operator are named: the service applies those of the language of each text, which it may have to detect.

import { byId, element, icon, setText } from "./dom.js";
import { AUTO, primary } from "./languages.js";
import { isolated, localized } from "./messages.js";
import { load, save } from "./storage.js";

const OPERATOR = "operator"; // `glossary_id` of the operator's terms

export class Glossary {
  #terms = load("glossary", {}); // {target language: [[term, translation], ...]}
  #kept = load("kept", []);
  #offered = []; // the operator's, as GET /frontend/settings returns them

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

  /** @param {{term: string, translation: string, source: string, target: string}[]} terms  of the operator */
  offer(terms) {
    this.#offered = terms;
  }

  /** What goes into a request; a field is absent where there is nothing to say. */
  get fields() {
    const terms = this.#own; // the service prefers them to the operator's
    return {
      ...(this.#offered.length ? { glossary_id: OPERATOR } : {}),
      ...(terms.length ? { glossary: Object.fromEntries(terms) } : {}),
      ...(this.#kept.length ? { do_not_translate: [...this.#kept] } : {}),
    };
  }

  /** Shows the terms of the current target language. */
  show() {
    byId("terms-legend").textContent = localized("glossary.terms", { language: this.languages.name(this.languages.target) });
    this.termList.replaceChildren(...this.#rows.map((row) => this.#termRow(row)));
    this.keptList.replaceChildren(...this.#kept.map((word) => this.#keptRow(word)));
    const company = this.#company;
    byId("company").hidden = !company.length;
    byId("company-lead").textContent = localized("glossary.company", { count: company.length });
    byId("company-terms").replaceChildren(...company.map(([term, wording]) => element("li", {}, `${isolated(term)} → ${isolated(wording)}`)));
    this.#count();
  }

  get #own() {
    return this.#rows.map((row) => row.map((part) => part.trim())).filter(([term, wording]) => term && wording);
  }

  /** The operator's terms for the selected languages; if the source is to be detected, for each text, those of all sources. */
  get #company() {
    const { source, target } = this.languages;
    const fits = (term) => (source === AUTO || term.source === primary(source)) && term.target === primary(target);
    return this.#offered.filter(fits).map(({ term, translation }) => [term, translation]);
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
    return element("li", {}, field(0, localized("glossary.term")), arrow, field(1, localized("glossary.translation")), removal(localized("glossary.remove", { term: row[0] }), remove));
  }

  #keptRow(word) {
    const remove = () => this.#changed(() => this.#kept.splice(this.#kept.indexOf(word), 1), "kept-word");
    return element("li", {}, element("span", { dir: "auto" }, word), removal(localized("glossary.translate-again", { word }), remove));
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
    const count = new Set([...this.#own, ...this.#company].map(([term]) => term)).size + this.#kept.length;
    setText(byId("glossary-badge"), count ? String(count) : "");
  }
}

function removal(label, onclick) {
  return element("button", { type: "button", class: "quiet small", "aria-label": label, title: label, onclick }, icon("clear"));
}
