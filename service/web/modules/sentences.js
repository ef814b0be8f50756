// The sentences of a translated file beside their translations, which can be edited.

import { level } from "./confidence.js";
import { byId, element, setText } from "./dom.js";
import { describeMatch } from "./match.js";
import { withRetries } from "./retry.js";

const DOUBTS = { unsure: "less sure", doubtful: "doubtful: check it", unfamiliar: "confidence unknown" };
const GROWS = CSS.supports("field-sizing", "content"); // a field takes the height of its text

export class Sentences {
  #edited = new Set(); // ids of documents
  #starts = []; // numbers of the first sentences of the pages up to the current one
  #rows = [];
  #controller = new AbortController();

  /** @param {Service} service */
  constructor(service) {
    this.service = service;
    this.view = byId("sentences");
    this.heading = byId("sentences-heading");
    this.note = byId("sentences-note");
    this.list = byId("sentences-list");
    this.previous = byId("sentences-previous");
    this.next = byId("sentences-next");
    this.previous.addEventListener("click", () => this.#turn(() => this.#starts.pop()));
    this.next.addEventListener("click", () => this.#turn(() => this.#starts.push(this.page.next)));
    byId("sentences-file").addEventListener("click", () => this.download(this.id, "file"));
    byId("sentences-tmx").addEventListener("click", () => this.download(this.id, "tmx"));
    byId("sentences-close").addEventListener("click", () => this.#close());
  }

  /** Returns whether a translation of this document was edited. */
  edited(id) {
    return this.#edited.has(id);
  }

  /** Shows the first sentences of a document. `opener` gets the focus when the view is closed. */
  async open(id, opener) {
    if (!(await this.#saved())) return;
    Object.assign(this, { id, opener });
    this.#starts = [0];
    this.view.hidden = false;
    await this.#show();
    this.view.scrollIntoView({ block: "start" });
    this.heading.focus({ preventScroll: true });
  }

  /** Saves the edited document ("file") or its sentences ("tmx") as a file of the user. */
  async download(id, kind) {
    try {
      if (!(await this.#saved())) return;
      const { blob, name } = await this.service.document(id, kind);
      const url = URL.createObjectURL(blob);
      element("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      this.note.textContent = error.message;
    }
  }

  async #close() {
    if (!(await this.#saved())) return;
    this.view.hidden = true;
    this.#rows = [];
    this.opener.focus();
  }

  async #turn(change) {
    if (!(await this.#saved())) return;
    change();
    await this.#show();
    this.heading.focus();
  }

  async #show() {
    this.#controller.abort();
    this.#controller = new AbortController();
    const { signal } = this.#controller;
    this.view.setAttribute("aria-busy", "true");
    try {
      this.page = await this.service.documentPage(this.id, this.#starts.at(-1), signal);
      this.#draw(this.page);
    } catch (error) {
      if (signal.aborted) return;
      this.#rows = [];
      this.list.replaceChildren();
      this.note.textContent = error.message;
    }
    this.view.setAttribute("aria-busy", "false");
  }

  #draw(page) {
    const { segments, count } = page;
    const acts = (number, place) => ({
      send: (text, onWait) => this.#send(number, text, onWait),
      go: (step) => this.#go(place + step),
    });
    this.#rows = segments.map((segment, place) => new Row(segment, page, acts(segment.number, place)));
    this.heading.textContent = `Sentences of ${page.name}`;
    this.note.textContent = "";
    this.list.replaceChildren(...this.#rows.map((row) => row.item));
    this.#rows.forEach((row) => row.fit());
    const [first, last] = [segments[0]?.number, segments.at(-1)?.number];
    byId("sentences-range").textContent = segments.length ? `${first + 1} to ${last + 1} of ${count}` : "No sentences";
    this.previous.disabled = this.#starts.length === 1;
    this.next.disabled = page.next === undefined;
  }

  async #send(number, text, onWait) {
    const { id } = this;
    const { signal } = new AbortController();
    const segment = await withRetries(() => this.service.editSentence(id, number, text), { signal, onWait });
    this.#edited.add(id);
    return segment;
  }

  /** Waits until all edits are saved; returns false, and points at it, if one cannot be saved. */
  async #saved() {
    await Promise.all(this.#rows.map((row) => row.save()));
    const failed = this.#rows.find((row) => row.unsaved);
    failed?.field.focus();
    return !failed;
  }

  #go(place) {
    const row = this.#rows[place];
    if (row) row.field.focus();
    else if (place < 0) this.heading.focus();
    else (this.next.disabled ? byId("sentences-file") : this.next).focus();
  }
}

/** A sentence, the field of its translation, and what there is to know about it. */
class Row {
  #work = Promise.resolve();

  /** @param {{send: (text: string, onWait) => Promise<object>, go: (step: number) => void}} acts */
  constructor(segment, { source, target }, acts) {
    Object.assign(this, acts);
    const id = `sentence-${segment.number}`;
    const about = `${id}-source ${id}-state`;
    this.field = element("textarea", { lang: target, dir: "auto", rows: 1, spellcheck: true, maxlength: 20000, "aria-describedby": about });
    this.field.setAttribute("aria-label", `Translation of sentence ${segment.number + 1}`);
    this.state = element("p", { class: "pair-state", id: `${id}-state` });
    this.item = element(
      "li",
      {},
      element("span", { class: "pair-number", "aria-hidden": "true" }, String(segment.number + 1)),
      element("p", { class: "pair-source", id: `${id}-source`, lang: source, dir: "auto" }, segment.source),
      element("div", { class: "pair-target" }, this.field, this.state),
    );
    this.field.addEventListener("input", () => this.fit());
    this.field.addEventListener("change", () => this.save());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.#take(segment);
  }

  get unsaved() {
    return oneLine(this.field.value) !== this.segment.target;
  }

  /** Sends the translation if it was changed; several changes are sent in order. Shows an error, and never throws. */
  save() {
    this.#work = this.#work.then(() => this.#saveNow());
    return this.#work;
  }

  fit() {
    if (GROWS) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }

  async #saveNow() {
    const text = oneLine(this.field.value);
    if (!this.unsaved) return;
    this.#tell("Saving …");
    const wait = (_, seconds) => this.#tell(seconds === null ? "No network. Goes on when it is back." : `Busy: trying again in ${seconds} s`);
    try {
      const segment = await this.send(text, wait);
      byId("result").textContent = `Sentence ${segment.number + 1} is saved.`;
      if (oneLine(this.field.value) === text) this.#take(segment);
      else this.segment = segment; // the field was changed meanwhile
    } catch (error) {
      this.#tell(`Not saved: ${error.message}`, true);
      byId("result").textContent = `Sentence ${this.segment.number + 1} is not saved: ${error.message}`;
    }
  }

  #take(segment) {
    this.segment = segment;
    this.field.value = segment.target;
    this.fit();
    const doubt = level(segment.quality ?? null, segment.unfamiliar);
    const facts = segment.edited
      ? ["Edited"]
      : [describeMatch(segment.match ?? null), DOUBTS[doubt] ?? ""];
    this.item.dataset.level = segment.edited ? "" : doubt;
    this.#tell(facts.filter(Boolean).join(", "));
  }

  #tell(text, failed = false) {
    setText(this.state, text);
    this.state.classList.toggle("failed", failed);
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter") {
      event.preventDefault();
      this.save();
      this.go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.#take(this.segment);
    }
  }
}

/** Returns a text as the service stores it. */
function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}
