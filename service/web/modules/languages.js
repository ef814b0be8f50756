// The two languages: what can be chosen, which is remembered, and what stands in the page's address (#en/de).

import { element, say } from "./dom.js";
import { load, save } from "./storage.js";

export const AUTO = "auto";

export class Languages {
  #known = new Map();
  #heard = "";
  #before = ""; // the source language of the moment before a select changed

  /** @param {{sourceSelect, targetSelect, swapButton, detected}} parts  of index.html */
  constructor(parts, { onChange, onSwap }) {
    Object.assign(this, parts, { onChange });
    this.sourceSelect.addEventListener("change", () => this.#chosen(this.source, this.target, onChange));
    this.targetSelect.addEventListener("change", () => this.#chosen(this.source, this.target, onChange));
    this.swapButton.addEventListener("click", () => this.canSwap && onSwap());
    addEventListener("hashchange", () => {
      const [source, target] = this.#fragment();
      if (this.#fits(source, target)) this.#chosen(source, target, onChange);
      else this.#remember();
    });
  }

  /** @param {{code: string, name: string, targets: string[]}[]} list  as GET /languages gives it */
  offer(list, preferred) {
    this.#known = new Map(list.map((language) => [language.code, language]));
    const sources = list.filter(({ targets }) => targets.some((code) => this.#known.has(code)));
    this.sourceSelect.replaceChildren(
      option(AUTO, "Detect language"),
      ...sources.map(({ code, name }) => option(code, name)).sort(byName),
    );
    const first = [sources[0]?.code, sources[0]?.targets[0]];
    const usual = sources.length > 1 ? [preferred, first] : [first]; // one language need not be detected
    const wishes = [this.#fragment(), load("languages", []), ...usual];
    const [source, target] = wishes.find((wish) => this.#fits(...wish)) ?? [AUTO, list[0]?.code];
    this.#set(source, target);
  }

  get source() {
    return this.sourceSelect.value;
  }

  get target() {
    return this.targetSelect.value;
  }

  /** What the source language is, as far as anybody knows: chosen or detected, or "". */
  get spoken() {
    return this.source === AUTO ? this.#heard : this.source;
  }

  name(code) {
    return this.#known.get(code)?.name ?? code;
  }

  /** Says what was detected; null where nothing was. */
  heard(found) {
    this.#heard = found?.language ?? "";
    const sure = typeof found?.confidence === "number" && found.confidence > 0 ? ` (${Math.round(found.confidence)}%)` : "";
    say(this.detected, found ? `Detected: ${this.name(this.#heard)}${sure}` : "");
    this.#before = this.spoken;
    this.#update();
  }

  get canSwap() {
    return this.#fits(this.target, this.spoken);
  }

  swap() {
    this.#set(this.target, this.spoken);
  }

  use(source, target) {
    if (this.#fits(source, target)) this.#set(source, target);
  }

  #chosen(source, target, told) {
    this.#set(source, target);
    told();
  }

  #set(source, target) {
    const targets = this.#targets(source);
    const wishes = [target, this.#before, ...targets]; // English chosen where English was the target: the other way round
    const into = wishes.find((code) => targets.includes(code)) ?? "";
    this.targetSelect.replaceChildren(...targets.map((code) => option(code, this.name(code))).sort(byName));
    this.targetSelect.value = into;
    if (source !== AUTO) this.#forget();
    this.sourceSelect.value = source;
    this.#before = this.spoken;
    this.#remember();
    this.#update();
  }

  #forget() {
    this.#heard = "";
    say(this.detected, "");
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
    const why = this.spoken ? `Nothing translates from ${this.name(this.target)} into ${this.name(this.spoken)} here` : "The language is not known yet";
    this.swapButton.setAttribute("aria-disabled", String(!able));
    this.swapButton.title = able ? "Swap the languages" : why;
  }

  #remember() {
    save("languages", [this.source, this.target]);
    history.replaceState(null, "", `#${this.source}/${this.target}`);
  }

  #fragment() {
    return decodeURIComponent(location.hash.slice(1)).split("/");
  }
}

function option(code, name) {
  return element("option", { value: code }, name);
}

function byName(left, right) {
  return left.textContent.localeCompare(right.textContent, "en");
}
