// The message that a text is in another language than the selected one, or in none that is recognized, and the button
// that selects its language.

import { setText } from "./dom.js";
import { AUTO, isGuess } from "./languages.js";
import { localized } from "./messages.js";

const SURE = 90; // percent: names and single words look like several languages
const LETTERS = 10; // at least
const BEGINNING = 1000; // characters that are sent to be detected

export class OtherLanguage {
  #controller = new AbortController();
  #select = () => {};

  /**
   * @param {{message, text, button}} parts  of index.html
   * @param {(text: string, signal) => Promise<{language: string, confidence: number}[]>} detect
   */
  constructor(parts, languages, detect) {
    Object.assign(this, parts, { languages, detect });
    this.button.addEventListener("click", () => this.#select());
  }

  hide() {
    this.#controller.abort();
    this.message.hidden = true;
  }

  /** Shows the message if it applies to a translated text. The answer has language and confidence if "auto" was selected. */
  async check({ text, source, target }, { detected, text: translation }) {
    const unchanged = translation === text;
    this.hide();
    if (source === AUTO) {
      if (detected && !isGuess(detected) && !this.languages.translatesFrom(detected.language)) this.#notServed(detected.language);
      else if (isGuess(detected)) this.#unrecognized(text, unchanged, target, detected.language);
      else if (detected?.language === target) this.#already(detected);
      return;
    }
    if ((text.match(/\p{L}/gu) ?? []).length < LETTERS) return;
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    try {
      const [first] = await this.detect(text.slice(0, BEGINNING), signal);
      if (!signal.aborted && first?.confidence >= SURE && base(first.language) !== base(source)) this.#looksLike(first.language);
    } catch {
      // Without an answer there is no message: the translation does not depend on it.
    }
  }

  #looksLike(code) {
    const language = this.languages.name(code);
    const label = this.languages.translatesFrom(code) ? localized("other.from", { language }) : "";
    this.#show(localized("other.looks-like", { language }), label, () => this.languages.chooseSource(code));
  }

  #already({ language: code, confidence }) {
    const other = this.languages.targetsOf(code)[0];
    const label = other ? localized("other.into", { language: this.languages.name(other) }) : "";
    const key = confidence < SURE ? "other.looks-like-target" : "other.already";
    this.#show(localized(key, { language: this.languages.name(code) }), label, () => this.languages.chooseTarget(other));
  }

  #notServed(code) {
    this.#show(localized("other.not-served", { language: this.languages.name(code) }), "", () => {});
  }

  #unrecognized(text, unchanged, target, code) {
    if (!/\p{L}/u.test(text)) return;
    const key = unchanged || code === target ? "other.not-translated" : "other.translated-as";
    this.#show(localized(key, { language: this.languages.name(code) }), "", () => {});
  }

  #show(message, label, select) {
    this.text.textContent = message;
    setText(this.button, label);
    this.#select = select;
    this.message.hidden = false;
  }
}

function base(code) {
  return code.split("-")[0];
}
