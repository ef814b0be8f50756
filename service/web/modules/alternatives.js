// The popover with other translations of a sentence.

import { byId, element, setText } from "./dom.js";
import { describeSentence } from "./match.js";
import { localized } from "./messages.js";

const WANTED = 4;
const MARGIN = 12; // pixels between the popover and the edges of the window

export class Alternatives {
  #controller = new AbortController();
  #anchor = null;

  /**
   * @param {{ask: (sentence, wanted: number, signal) => Promise<string[]>, onChoose: (index, wording) => void,
   *   onInside: (index) => void, suggestion: Suggestion}} acts
   */
  constructor(acts) {
    Object.assign(this, acts);
    this.popover = byId("alternatives");
    this.list = byId("alternatives-list");
    this.note = byId("alternatives-note");
    this.popover.addEventListener("toggle", (event) => event.newState === "closed" && this.#closed());
    this.popover.addEventListener("keydown", (event) => this.#key(event));
    byId("alternatives-inside").addEventListener("click", () => {
      this.#anchor = null;
      this.popover.hidePopover();
      this.onInside(this.index);
    });
  }

  /** Opens at the element of a sentence. */
  async open(sentence, index, anchor) {
    if (this.popover.matches(":popover-open")) this.popover.hidePopover();
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    this.index = index;
    this.#anchor = anchor;
    anchor.classList.add("open");
    setText(byId("alternatives-confidence"), describeSentence(sentence));
    const known = sentence.original ?? sentence;
    this.suggestion.begin(sentence);
    this.#offer(known, known.alternatives, sentence);
    this.popover.showPopover();
    this.#place(anchor);
    this.list.querySelector("button")?.focus({ preventScroll: true });
    if (known.alternatives.length) return;
    this.note.textContent = localized("wordings.looking");
    try {
      const found = await this.ask(known, WANTED, signal);
      if (signal.aborted) return;
      known.alternatives = found;
      this.#offer(known, found, sentence);
      this.list.querySelector("button")?.focus({ preventScroll: true });
      this.#place(anchor);
    } catch (error) {
      if (!signal.aborted) this.note.textContent = error.message;
    }
  }

  /** Closes, and shows a wording in place of the sentence. */
  choose(wording) {
    this.close();
    this.onChoose(this.index, wording);
  }

  close() {
    if (this.popover.matches(":popover-open")) this.popover.hidePopover();
  }

  #offer(known, others, current) {
    const wordings = [...new Set([known.wording, ...others])];
    this.list.replaceChildren(...wordings.map((wording) => this.#choice(wording, current.wording)));
    this.note.textContent = wordings.length > 1 ? "" : localized("wordings.none");
  }

  #choice(wording, current) {
    const choose = () => this.choose(wording);
    const attributes = { type: "button", dir: "auto", "aria-pressed": String(wording === current), onclick: choose };
    return element("li", {}, element("button", attributes, element("span", {}, ...compared(wording, current))));
  }

  /** Places the popover below the first line of the sentence, or above it if there is no room. */
  #place(anchor) {
    const line = anchor.getClientRects()[0];
    const { offsetWidth: width, offsetHeight: height } = this.popover;
    const left = Math.max(MARGIN, Math.min(line.left, document.documentElement.clientWidth - width - MARGIN));
    const below = anchor.getBoundingClientRect().bottom + 8;
    const above = line.top - height - 8;
    const top = below + height > innerHeight && above > 0 ? above : below;
    this.popover.style.left = `${left + scrollX}px`;
    this.popover.style.top = `${top + scrollY}px`;
  }

  #closed() {
    this.#controller.abort();
    const anchor = this.#anchor;
    anchor?.classList.remove("open");
    if (document.activeElement === document.body || this.popover.contains(document.activeElement)) anchor?.focus();
  }

  #key(event) {
    const step = event.target.matches("textarea") ? 0 : { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const buttons = [...this.popover.querySelectorAll("button")];
    const next = buttons.indexOf(document.activeElement) + step;
    if (!step || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
  }
}

/** Returns a wording whose words between the first and the last difference to the current one are marked. */
function compared(wording, current) {
  if (wording === current) return [wording];
  const [words, others] = [wording, current].map((text) => text.split(/(?<=\s)/));
  const shorter = Math.min(words.length, others.length);
  let begin = 0;
  while (begin < shorter && words[begin] === others[begin]) begin += 1;
  let end = 0;
  while (end < shorter - begin && words.at(-1 - end) === others.at(-1 - end)) end += 1;
  const middle = words.slice(begin, words.length - end).join("");
  return [words.slice(0, begin).join(""), element("b", {}, middle), words.slice(words.length - end).join("")];
}
