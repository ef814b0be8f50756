// The selects of the two languages, which are stored and are part of the page's address (#en/de).

import { element, setText } from "./dom.js";
import { capitalized, language as interfaceLanguage, languageName, localized } from "./messages.js";
import { load, save } from "./storage.js";

export const AUTO = "auto";
const MANY = 12; // languages from which those that were used last come first
const RECENT = 5;
const GUESS = 10; // percent below which a detected language is a guess: the text is in none of the service's languages

export class Languages {
  #known = new Map();
  #detected = "";
  #before = ""; // the source language before the last change of a select

  /** @param {{sourceSelect, targetSelect, swapButton, detected}} parts  of index.html */
  constructor(parts, { onChange, onSwap }) {
    Object.assign(this, parts, { onChange });
    this.sourceSelect.addEventListener("change", () => this.#choose(this.source, this.target, onChange));
    this.targetSelect.addEventListener("change", () => this.#choose(this.source, this.target, onChange));
    this.swapButton.addEventListener("click", () => this.canSwap && onSwap());
    addEventListener("hashchange", () => {
      const [source, target] = this.#fragment();
      if (this.#fits(source, target)) this.#choose(source, target, onChange);
      else this.#remember();
    });
  }

  /** @param {{code: string, name: string, targets: string[]}[]} list  as GET /languages returns it */
  offer(list, preferred) {
    this.#known = new Map(list.map((language) => [language.code, language]));
    const sources = list.filter(({ targets }) => targets.some((code) => this.#known.has(code)));
    this.sourceSelect.replaceChildren(option(AUTO, localized("languages.detect")), ...this.#options(sources.map(({ code }) => code)));
    const first = [sources[0]?.code, sources[0]?.targets[0]];
    const usual = sources.length > 1 ? [[AUTO, interfaceLanguage], preferred, first] : [first]; // a single language is not detected
    const candidates = [this.#fragment(), load("languages", []), ...usual];
    const [source, target] = candidates.find((candidate) => this.#fits(...candidate)) ?? [AUTO, list[0]?.code];
    this.#set(source, target);
  }

  get source() {
    return this.sourceSelect.value;
  }

  get target() {
    return this.targetSelect.value;
  }

  /** The chosen or detected source language; "" if it is not known. */
  get detectedSource() {
    return this.source === AUTO ? this.#detected : this.source;
  }

  /** Returns the name of a language in the language of the interface. */
  name(code) {
    return languageName(code, this.#known.get(code)?.name ?? code);
  }

  /** Shows a detected language, or nothing for null. */
  setDetected(found) {
    const guess = isGuess(found);
    this.#detected = guess ? "" : (found?.language ?? "");
    if (!found) setText(this.detected, "");
    else if (guess) setText(this.detected, localized("languages.not-recognized"));
    else setText(this.detected, localized("languages.detected", { language: this.name(this.#detected), percent: Math.round(found.confidence) }));
    this.#before = this.detectedSource;
    this.#update();
  }

  get canSwap() {
    return this.#fits(this.target, this.detectedSource);
  }

  swap() {
    this.#set(this.target, this.detectedSource);
  }

  /** Whether a model translates from this language. */
  translatesFrom(code) {
    return this.#targets(code).length > 0;
  }

  /** Returns the languages into which a language is translated. */
  targetsOf(code) {
    return this.#targets(code);
  }

  chooseSource(code) {
    this.#choose(code, this.target, this.onChange);
  }

  chooseTarget(code) {
    this.#choose(this.source, code, this.onChange);
  }

  use(source, target) {
    if (this.#fits(source, target)) this.#set(source, target);
  }

  #choose(source, target, onChange) {
    this.#set(source, target);
    onChange();
  }

  #set(source, target) {
    const targets = this.#targets(source);
    const candidates = [target, this.#before, ...targets]; // choosing the target as source swaps the two
    const into = candidates.find((code) => targets.includes(code)) ?? "";
    this.targetSelect.replaceChildren(...this.#options(targets));
    this.targetSelect.value = into;
    if (source !== AUTO) this.#forget();
    this.sourceSelect.value = source;
    this.#before = this.detectedSource;
    this.#remember();
    this.#update();
  }

  /** Returns the options for languages by name; above many of them, those that were used last. */
  #options(codes) {
    const options = (some) => some.map((code) => option(code, capitalized(this.name(code))));
    const all = options(codes).sort(byName);
    const recent = load("recent languages", []).filter((code) => codes.includes(code));
    if (codes.length <= MANY || !recent.length) return all;
    const group = (label, children) => element("optgroup", { label }, ...children);
    return [group(localized("languages.recent"), options(recent)), group(localized("languages.all"), all)];
  }

  #forget() {
    this.#detected = "";
    setText(this.detected, "");
  }

  #targets(source) {
    const all = source === AUTO ? [...this.#known.values()].flatMap(({ targets }) => targets) : this.#known.get(source)?.targets;
    return [...new Set(all)].filter((code) => this.#known.has(code) && code !== source);
  }

  #fits(source, target) {
    return Boolean(source && target) && this.#targets(source).includes(target);
  }

  #update() {
    const able = this.canSwap;
    const names = { source: this.name(this.target), target: this.name(this.detectedSource) };
    const why = this.detectedSource ? localized("languages.no-way-back", names) : localized("languages.unknown");
    this.swapButton.setAttribute("aria-disabled", String(!able));
    this.swapButton.title = able ? localized("languages.swap") : why;
  }

  #remember() {
    save("languages", [this.source, this.target]);
    const used = [this.source, this.target].filter((code) => code && code !== AUTO);
    save("recent languages", [...new Set([...used, ...load("recent languages", [])])].slice(0, RECENT));
    history.replaceState(null, "", `#${this.source}/${this.target}`);
  }

  #fragment() {
    return decodeURIComponent(location.hash.slice(1)).split("/");
  }
}

/** Whether a detected language, or null, is a guess. */
export function isGuess(found) {
  return found !== null && found.confidence < GUESS;
}

/** Returns the language of a glossary or memory for a language of the page: they have no regions. */
export function primary(code) {
  const [language] = code.split("-");
  return language === "no" ? "nb" : language;
}

function option(code, name) {
  return element("option", { value: code }, name);
}

function byName(left, right) {
  return left.textContent.localeCompare(right.textContent, interfaceLanguage);
}
