// The search in a long list of languages: a button beside each select opens it.

import { byId, element } from "./dom.js";
import { localized } from "./messages.js";

const MANY = 12; // languages from which a search is offered

export class LanguageSearch {
  #select = null;

  constructor() {
    this.popover = byId("language-search");
    this.query = byId("language-query");
    this.list = byId("language-matches");
    this.query.addEventListener("input", () => this.#show());
    this.query.addEventListener("keydown", (event) => {
      const first = this.list.querySelector("button");
      if (event.key === "Enter") first?.click();
      else if (event.key === "ArrowDown") first?.focus();
      else return;
      event.preventDefault();
    });
  }

  /** Opens the search in the languages of `select` by `button`, which is shown while there are many. */
  attach(button, select) {
    const update = () => (button.hidden = select.options.length <= MANY);
    new MutationObserver(update).observe(select, { childList: true });
    update();
    button.addEventListener("click", () => this.#open(button, select));
  }

  #open(button, select) {
    this.#select = select;
    this.query.value = "";
    this.#show();
    this.popover.showPopover();
    const box = button.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - this.popover.offsetWidth - 12);
    this.popover.style.left = `${scrollX + Math.max(12, left)}px`;
    this.popover.style.top = `${scrollY + box.bottom + 6}px`;
    this.query.focus({ preventScroll: true });
  }

  #show() {
    const wanted = plain(this.query.value.trim());
    const options = [...new Map([...this.#select.options].map((option) => [option.value, option])).values()];
    const matches = options.filter(({ value, textContent }) => names(value, textContent).some((name) => name.includes(wanted)));
    const begins = ({ value, textContent }) => (names(value, textContent).some((name) => name.startsWith(wanted)) ? 0 : 1);
    matches.sort((left, right) => begins(left) - begins(right));
    this.list.replaceChildren(...matches.map((option) => this.#choice(option)));
    if (!matches.length) this.list.append(element("li", { class: "note" }, localized("search.none")));
  }

  #choice({ value, textContent }) {
    const choose = () => {
      this.popover.hidePopover();
      this.#select.value = value;
      this.#select.dispatchEvent(new Event("change", { bubbles: true }));
      this.#select.focus();
    };
    const own = endonym(value);
    const label = own && own !== textContent ? [textContent, element("span", { class: "aside", lang: value, dir: "auto" }, ` ${own}`)] : [textContent];
    return element("li", {}, element("button", { type: "button", "aria-pressed": value === this.#select.value, onclick: choose }, ...label));
  }
}

/** Returns what a reader may type for a language: its name here, its name in itself, and its code. */
function names(code, name) {
  return [name, endonym(code), code].map(plain);
}

/** Returns the name of a language in this language, or "". */
function endonym(code) {
  try {
    return new Intl.DisplayNames([code], { type: "language", fallback: "none" }).of(code) ?? "";
  } catch {
    return ""; // such as "auto"
  }
}

function plain(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}
