// "Look inside": the cross-attention of one layer and head over a sentence, as a picture and as text.

import { byId, element } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { localized } from "./messages.js";

const MEAN = "mean";

export class AttentionPanel {
  #controller = new AbortController();
  #answer = null;
  #attention = null;

  /** @param {(sentence, signal) => Promise<object | null>} ask  the attention of a sentence */
  constructor(ask) {
    this.ask = ask;
    for (const name of ["sentence", "layer", "head"]) this[name] = byId(`inside-${name}`);
    this.note = byId("inside-note");
    this.map = byId("map");
    this.sentence.addEventListener("change", () => this.#look());
    this.layer.addEventListener("change", () => this.#draw());
    this.head.addEventListener("change", () => this.#draw());
  }

  /** Shows a sentence of an answer; without `index`, the one that was looked at before. */
  show(answer, index = this.sentence.selectedIndex) {
    this.#answer = answer;
    const labels = (answer?.sentences ?? []).map(({ source }) => shortened(answer.source.slice(...source)));
    this.sentence.replaceChildren(...labels.map((label, place) => element("option", { value: place }, `${place + 1}. ${label}`)));
    this.sentence.selectedIndex = Math.min(Math.max(index, 0), labels.length - 1);
    this.#look();
  }

  async #look() {
    this.#controller.abort();
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    const sentence = this.#answer?.sentences[this.sentence.selectedIndex];
    if (!sentence) return this.#nothing(localized("inside.nothing"));
    const known = sentence.original ?? sentence;
    this.note.textContent = localized("inside.looking");
    try {
      known.attention ??= await this.ask(known, signal);
      if (signal.aborted) return;
      if (!known.attention?.weights?.length) return this.#nothing(localized("inside.none"));
      this.#attention = known.attention;
      this.#offer(known.attention.weights);
      this.#draw();
    } catch (error) {
      if (!signal.aborted) this.#nothing(error.message);
    }
  }

  #nothing(why) {
    this.#attention = null;
    this.note.textContent = why;
    this.map.hidden = true;
    byId("inside-words").hidden = true;
  }

  /** Fills the selects of layer and head and keeps the choice, at first the last layer and the mean. */
  #offer(weights) {
    const [layers, heads] = [weights.length, weights[0].length];
    if (this.layer.length !== layers) {
      this.layer.replaceChildren(...counted(layers));
      this.layer.value = String(layers - 1);
    }
    if (this.head.length !== heads + 1) {
      this.head.replaceChildren(element("option", { value: MEAN }, localized("inside.mean")), ...counted(heads));
    }
  }

  #draw() {
    if (!this.#attention) return;
    const { weights } = this.#attention;
    const [source, target] = [this.#attention.source, this.#attention.target].map((pieces) => pieces.map(withCharacter));
    const heads = weights[Number(this.layer.value)];
    const matrix = this.head.value === MEAN ? mean(heads) : heads[Number(this.head.value)];
    const said = (row, column) => {
      const percent = Math.round(100 * matrix[row][column]);
      return localized("inside.share", { target: readable(target[row]), source: readable(source[column]), percent });
    };
    const pointed = (row, column) => (this.note.textContent = said(row, column));
    this.map.hidden = false;
    this.map.replaceChildren(heatmap(source, target, matrix, pointed));
    this.note.textContent = localized("inside.axes");
    byId("inside-words").hidden = false;
    byId("inside-list").replaceChildren(
      ...matrix.map((weightsOfRow, row) => element("li", {}, said(row, weightsOfRow.indexOf(Math.max(...weightsOfRow))))),
    );
  }
}

function counted(count) {
  return Array.from({ length: count }, (_, place) => element("option", { value: place }, String(place + 1)));
}

/** Returns the mean over the heads of [head][row][column]. */
function mean(heads) {
  return heads[0].map((row, r) => row.map((_, c) => heads.reduce((sum, head) => sum + head[r][c], 0) / heads.length));
}

/** Returns the character of a piece that is one byte, such as "?" for "<0x3F>"; other pieces are unchanged. */
function withCharacter(piece) {
  const byte = Number.parseInt(/^<0x([0-9A-F]{2})>$/.exec(piece)?.[1] ?? "", 16);
  return byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : piece;
}

/** Returns a piece without SentencePiece's mark of a space. */
function readable(piece) {
  if (piece === "</s>") return localized("inside.end");
  return localized("inside.piece", { piece: piece.replaceAll("▁", "") || "␣" });
}

function shortened(text) {
  return text.length > 48 ? `${text.slice(0, 47)}…` : text;
}
