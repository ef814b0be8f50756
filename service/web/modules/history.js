// The history of translations. It stays in this browser and is deleted when it is switched off.

import { byId, element, setText } from "./dom.js";
import { localized } from "./messages.js";
import { load, save } from "./storage.js";

const LONGEST = 50; // entries
const LARGEST = 20_000; // characters of an entry; a browser stores about five million in all

export class History {
  #entries = load("history", []);
  #on = load("history-on", true);

  /** @param {(entry: {source, target, text, translation}) => void} onChoose */
  constructor(languages, onChoose) {
    Object.assign(this, { languages, onChoose });
    this.list = byId("past");
    this.switch = byId("history-switch");
    this.switch.checked = this.#on;
    this.switch.addEventListener("change", () => {
      this.#on = this.switch.checked;
      save("history-on", this.#on);
      this.#store(this.#on ? this.#entries : []);
    });
    byId("history-clear").addEventListener("click", () => this.#store([]));
  }

  /** Adds a translation; it replaces the last one if it continues it. */
  remember(entry) {
    if (!this.#on || !entry.text.trim() || entry.text.length + entry.translation.length > LARGEST) return;
    const same = (other) => other.target === entry.target && entry.text.startsWith(other.text);
    const older = this.#entries.filter((other, place) => !(place === 0 && same(other)) && other.text !== entry.text);
    this.#store([entry, ...older].slice(0, LONGEST));
  }

  show() {
    this.list.replaceChildren(...this.#entries.map((entry) => this.#row(entry)));
    byId("history-clear").disabled = !this.#entries.length;
    const none = localized(this.#on ? "history.empty" : "history.off");
    setText(byId("past-note"), this.#entries.length ? "" : none);
  }

  #row(entry) {
    const names = `${this.languages.name(entry.source)} → ${this.languages.name(entry.target)}`;
    const button = element(
      "button",
      { type: "button", onclick: () => this.onChoose(entry) },
      element("span", { class: "past-languages" }, names),
      element("span", { class: "past-text", dir: "auto" }, entry.text),
      element("span", { class: "past-translation", dir: "auto" }, entry.translation),
    );
    return element("li", {}, button);
  }

  #store(entries) {
    this.#entries = entries;
    save("history", entries.length ? entries : null);
    this.show();
  }
}
