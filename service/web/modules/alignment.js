// The word alignment: pointing at a word in one pane highlights the aligned words in both, joined by lines.

import { svgElement } from "./dom.js";
import { isolated } from "./messages.js";

export class AlignmentHighlighter {
  #lit = [];
  #byLink = null; // the pieces of each link: {left, right}

  /** @param {{field, mirror, output, panes, threads, readout, announcer}} parts  of index.html */
  constructor(parts) {
    Object.assign(this, parts);
    this.output.addEventListener("pointerover", (event) => this.highlight(event.target.closest(".piece")));
    this.output.addEventListener("pointerleave", () => this.clear());
    this.output.addEventListener("focusout", () => this.clear());
    this.field.addEventListener("pointermove", (event) => this.highlight(this.#pieceAt(event)));
    this.field.addEventListener("pointerleave", () => this.clear());
    this.field.addEventListener("blur", () => this.clear());
    document.addEventListener("selectionchange", () => this.#highlightAtCaret());
    addEventListener("resize", () => this.clear());
    this.panes.addEventListener("scroll", () => this.clear(), { capture: true });
  }

  /** Highlights a piece and those aligned with it; null removes the highlight. */
  highlight(piece) {
    if (piece === (this.#lit[0] ?? null)) return;
    this.clear();
    if (!piece) return;
    this.#byLink ??= [...linked(this.mirror, "left"), ...linked(this.output, "right")].reduce(joined, new Map());
    const links = piece.dataset.links.split(" ").map((id) => this.#byLink.get(id));
    const [left, right] = ["left", "right"].map((side) => [...new Set(links.flatMap((link) => link[side]))]);
    this.#lit = [piece, ...left, ...right];
    for (const each of this.#lit) each.classList.add("lit");
    piece.classList.add("pointed");
    this.#draw(left, right);
    const words = (parts) => isolated(parts.map((each) => each.textContent.trim()).join(" … "));
    this.readout.textContent = `${words(left)} → ${words(right)}`;
  }

  /** Forgets the pieces of an earlier answer. */
  renew() {
    this.clear();
    this.#byLink = null;
  }

  clear() {
    for (const each of this.#lit) each.classList.remove("lit", "pointed");
    this.#lit = [];
    this.threads.replaceChildren();
    this.readout.textContent = "";
  }

  /** Highlights the next or the previous word of a sentence, for keyboards. */
  step(direction, sentence) {
    const pieces = [...sentence.querySelectorAll(".piece")];
    const place = pieces.findIndex((piece) => piece.classList.contains("pointed"));
    const next = place === -1 ? (direction > 0 ? 0 : pieces.length - 1) : place + direction;
    if (!pieces[next]) return;
    this.highlight(pieces[next]);
    this.announcer.textContent = this.readout.textContent;
  }

  /** Returns the piece behind the text field at the pointer. */
  #pieceAt(event) {
    const elements = document.elementsFromPoint(event.clientX, event.clientY);
    return elements.find((each) => each.classList.contains("piece") && this.mirror.contains(each)) ?? null;
  }

  /** Highlights the piece at the caret of the text field. */
  #highlightAtCaret() {
    if (document.activeElement !== this.field) return;
    const caret = this.field.selectionStart;
    if (caret !== this.field.selectionEnd) return;
    let read = 0;
    const walker = document.createTreeWalker(this.mirror, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      read += node.data.length;
      if (caret < read) {
        this.highlight(node.parentElement.closest(".piece"));
        return;
      }
    }
    this.clear();
  }

  #draw(left, right) {
    const frame = this.panes.getBoundingClientRect();
    const beside = matchMedia("(min-width: 48rem)").matches;
    const ends = (piece) => {
      const box = piece.getClientRects()[0] ?? piece.getBoundingClientRect();
      return { x: box.left - frame.left + box.width / 2, top: box.top - frame.top, bottom: box.bottom - frame.top };
    };
    const inView = ({ top, bottom }) => bottom > 0 && top < frame.height;
    for (const from of left.map(ends).filter(inView)) {
      for (const to of right.map(ends).filter(inView)) {
        this.threads.append(svgElement("path", { d: beside ? sideways(from, to) : downwards(from, to) }));
      }
    }
  }
}

/** Yields [link, side, piece] for each link of each piece below `root`. */
function* linked(root, side) {
  for (const piece of root.querySelectorAll(".piece")) for (const id of piece.dataset.links.split(" ")) yield [id, side, piece];
}

function joined(links, [id, side, piece]) {
  if (!links.has(id)) links.set(id, { left: [], right: [] });
  links.get(id)[side].push(piece);
  return links;
}

/** Returns a curve that leaves one word below and enters the other from below. */
function sideways(from, to) {
  const [a, b] = [from.bottom + 1, to.bottom + 1];
  const reach = Math.abs(to.x - from.x) * 0.35;
  return `M${from.x} ${a}C${from.x + reach * 0.4} ${a + 34} ${to.x - reach * 0.4} ${b + 34} ${to.x} ${b}`;
}

function downwards(from, to) {
  const half = (to.top - from.bottom) / 2;
  return `M${from.x} ${from.bottom}C${from.x} ${from.bottom + half} ${to.x} ${to.top - half} ${to.x} ${to.top}`;
}
