// The right pane: the translation. Each sentence is a button, and its words are pieces that can be highlighted.

import { level } from "./confidence.js";
import { element } from "./dom.js";
import { describeSentence, matchKind } from "./match.js";
import { cut, occurrences } from "./ranges.js";

const KEPT = "kept"; // in the place of a link's id: the words stand in the source

export class OutputPane {
  /** @param {{output, placeholder, notes}} parts  of index.html */
  constructor(parts, { onOpen, onWord }) {
    Object.assign(this, parts);
    this.current = 0;
    this.editing = false; // whether each sentence is a text field
    this.shown = { sentences: 0, end: 0 };
    this.output.addEventListener("click", (event) => {
      const sentence = event.target.closest(".sentence");
      if (sentence && !this.editing && document.getSelection().isCollapsed) onOpen(Number(sentence.dataset.index), sentence);
    });
    this.output.addEventListener("keydown", (event) => this.#key(event, onOpen, onWord));
    this.output.addEventListener("focusin", (event) => {
      const sentence = event.target.closest(".sentence");
      if (sentence) this.#reach(Number(sentence.dataset.index));
    });
  }

  /** Shows an answer. Returns the pieces of the source text for the other pane. */
  show(answer, language) {
    const links = numbered(answer);
    this.current = Math.min(this.current, Math.max(answer.sentences.length - 1, 0));
    this.output.lang = language;
    this.output.replaceChildren(
      ...interleaved(answer.text, answer.sentences, "target", (sentence, index) => this.#sentence(answer, sentence, index, links)),
    );
    this.notes.replaceChildren(...answer.sentences.map((sentence, index) => this.#note(sentence, index)));
    this.placeholder.hidden = answer.text !== "";
    this.#remember(answer);
    const bySource = [...answer.sentences].sort((left, right) => left.source[0] - right.source[0]);
    return interleaved(answer.source, bySource, "source", (sentence) => {
      const own = links.get(sentence).map(({ id, source }) => ({ id, range: source }));
      return element("span", {}, ...pieces(answer.source, sentence.source, own));
    });
  }

  /** Adds what an answer has gained since it was shown. What is there already keeps its focus and selection. */
  extend(answer) {
    const fresh = answer.sentences.slice(this.shown.sentences);
    const nodes = interleaved(answer.text, fresh, "target", (sentence, index) => {
      return this.#sentence(answer, sentence, this.shown.sentences + index, new Map([[sentence, []]]));
    }, this.shown.end);
    const notes = fresh.map((sentence, index) => this.#note(sentence, this.shown.sentences + index));
    this.output.append(...nodes);
    this.notes.append(...notes);
    this.placeholder.hidden = answer.text !== "";
    this.#remember(answer);
  }

  /** Makes each sentence a text field until the next answer is shown. @param {(number: number) => string} label */
  edit(label) {
    this.editing = true;
    for (const sentence of this.output.querySelectorAll(".sentence")) {
      for (const name of ["aria-haspopup", "aria-describedby"]) sentence.removeAttribute(name);
      sentence.contentEditable = "plaintext-only";
      sentence.setAttribute("role", "textbox");
      sentence.setAttribute("tabindex", "0");
      sentence.setAttribute("aria-label", label(Number(sentence.dataset.index) + 1));
    }
  }

  /** Marks a sentence by its confidence, or as the reader's own wording, which has no marks. */
  mark(index, sentence) {
    this.sentence(index).className = classes(sentence);
  }

  /** Returns the element of a sentence. */
  sentence(index) {
    return this.output.querySelector(`[data-index="${index}"]`);
  }

  focus() {
    this.sentence(this.current)?.focus();
  }

  #note(sentence, index) {
    return element("p", { id: `note-${index}` }, describeSentence(sentence));
  }

  #remember(answer) {
    this.shown = { sentences: answer.sentences.length, end: answer.text.length };
  }

  #sentence(answer, sentence, index, links) {
    const own = links.get(sentence).map(({ id, target }) => ({ id, range: target }));
    const attributes = {
      class: classes(sentence),
      role: "button",
      tabindex: index === this.current ? 0 : -1,
      "data-index": index,
      "aria-haspopup": "dialog",
      "aria-describedby": describeSentence(sentence) ? `note-${index}` : null,
    };
    const kept = occurrences(answer.text, sentence.target, sentence.untranslated);
    return element("span", attributes, ...pieces(answer.text, sentence.target, own, kept));
  }

  /** Puts one sentence, the last visited, into the tab order, so that Tab leaves the text after one step. */
  #reach(index) {
    if (!this.editing) this.sentence(this.current)?.setAttribute("tabindex", "-1");
    this.current = index;
    this.sentence(index)?.setAttribute("tabindex", "0");
  }

  #key(event, onOpen, onWord) {
    const sentence = event.target.closest(".sentence");
    if (!sentence || this.editing || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const word = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") onOpen(this.current, sentence);
    else if (step) this.sentence(this.current + step)?.focus();
    else if (word) onWord(getComputedStyle(this.output).direction === "rtl" ? -word : word, sentence);
    else return;
    event.preventDefault();
  }
}

function classes(sentence) {
  return ["sentence", level(sentence), matchKind(sentence.match), sentence.original && "reworded"].filter(Boolean).join(" ");
}

/** Returns the links of each sentence, each with an id. */
function numbered(answer) {
  let next = 0;
  return new Map(answer.sentences.map((each) => [each, each.links.map((link) => ({ id: next++, ...link }))]));
}

/** Returns the text from `begin` on as nodes: the result of `make` for each sentence, and plain text between them. */
function interleaved(text, sentences, side, make, begin = 0) {
  const nodes = [];
  let read = begin;
  sentences.forEach((sentence, index) => {
    const [from, to] = sentence[side];
    if (from < read) return; // overlaps the sentence before: text must occur once
    nodes.push(text.slice(read, from), make(sentence, index));
    read = to;
  });
  nodes.push(text.slice(read));
  return nodes;
}

/** Returns a range of the text as nodes: pieces with links, pieces of the ranges `kept` as untranslated, and plain text. */
function pieces(text, range, links, kept = []) {
  const marks = kept.map((each) => ({ id: KEPT, range: each }));
  return cut(range, [...links, ...marks]).map(({ begin, end, links: ids }) => {
    const words = text.slice(begin, end);
    if (!ids.length) return words;
    const linked = ids.filter((id) => id !== KEPT);
    const classes = [linked.length ? "piece" : "", ids.includes(KEPT) ? "untranslated" : ""].filter(Boolean);
    return element("span", { class: classes.join(" "), "data-links": linked.join(" ") || null }, words);
  });
}
