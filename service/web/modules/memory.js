// The translation memory of the selected languages: choice, upload and removal. The service stores its sentences. This
// browser stores the choice for each pair of languages, and the memories without a key, which the service does not list.

import { ServiceError } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { AUTO, primary } from "./languages.js";
import { localized } from "./messages.js";
import { withRetries } from "./retry.js";
import { load, save } from "./storage.js";

const SIMILAR = 70; // smallest similarity, in percent, if similar sentences are adapted
const ENDINGS = [".tmx", ".xliff", ".xlf", ".po", ".tsv"];

export class Memory {
  #chosen = load("memory", {}); // {"en/de": {id, name}}; null where the user chose none
  #own = load("memories", []); // uploaded without a key: {id, name, source, target, units}
  #listed = []; // the key's, as GET /memories returns them
  #offered = []; // the operator's, of which the first that fits is used unless the user chooses

  /** @param {{service, languages}} parts  @param {() => void} onChange  called when another memory is chosen */
  constructor(parts, onChange) {
    Object.assign(this, parts, { onChange });
    this.select = byId("memory-select");
    this.file = byId("memory-file");
    this.bar = byId("memory-progress");
    this.note = byId("memory-note");
    this.lost = byId("memory-lost");
    this.removal = byId("memory-remove");
    this.file.accept = ENDINGS.join(",");
    byId("memory-formats").textContent = ENDINGS.join(", ");
    this.similar = byId("memory-similar");
    this.similar.checked = load("similar", false);
    this.similar.addEventListener("change", () => {
      save("similar", this.similar.checked);
      this.onChange();
    });
    this.select.addEventListener("change", () => this.#choose(this.#fitting().find(({ id }) => id === this.select.value)));
    this.removal.addEventListener("click", () => this.#remove());
    this.file.addEventListener("click", (event) => {
      if (this.languages.detectedSource) return;
      event.preventDefault();
      this.#tell(localized("memory.language-first"), true);
    });
    this.file.addEventListener("change", () => {
      const [file] = this.file.files;
      if (file) this.#upload(file);
      this.file.value = "";
    });
  }

  /** Asks for the memories of the key. */
  async list() {
    try {
      this.#listed = this.service.key() ? await this.service.memories() : [];
    } catch (error) {
      this.#tell(error.message, true);
    }
    this.#draw();
  }

  /** @param {{id, name, source, target, units}[]} memories  of the operator */
  offer(memories) {
    this.#offered = memories;
  }

  /** The chosen memory if its sentences may be changed: with a key, those of the key. */
  get writable() {
    return this.#listed.find(({ id }) => id === this.#current?.id);
  }

  /** Adds sentences `[source, translation]` to a memory. */
  async add(memory, sentences) {
    const lines = sentences.map((texts) => texts.map((text) => text.replace(/\s+/g, " ")).join("\t"));
    const file = new File([lines.join("\n")], "edited.tsv");
    await this.service.putMemory(file, memory.source, memory.target, { name: memory.name });
    await this.list();
  }

  /** Shows the memories of the selected languages, and hides messages about others. */
  show() {
    this.#tell("");
    setText(this.lost, "");
    this.#draw();
  }

  /**
   * Returns the result of `send`, which gets the fields of the chosen memory. If the service does not have the memory
   * any more, its choice is dropped, and `send` is called without it; then the result has `withoutMemory`.
   */
  async applied(source, target, send) {
    const chosen = this.#memoryOf(source, target);
    if (!chosen) return send({});
    try {
      return await send({ memory: chosen.id, ...(this.similar.checked ? { memory_threshold: SIMILAR } : {}) });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 404) throw error;
      this.#forget(chosen.id);
      setText(this.lost, localized("memory.lost", { name: chosen.name }));
      return { ...(await send({})), withoutMemory: true };
    }
  }

  #draw() {
    const chosen = this.#current;
    const options = this.#fitting().map((memory) => element("option", { value: memory.id }, this.#label(memory)));
    this.select.replaceChildren(element("option", { value: "" }, localized("memory.none")), ...options);
    this.select.value = chosen?.id ?? "";
    const [source, target] = [this.languages.source, this.languages.target].map((code) => this.languages.name(code));
    const key = this.languages.source === AUTO ? "memory.into" : "memory.from-into";
    byId("memory-label").textContent = localized(key, { source, target });
    this.removal.disabled = !chosen || this.#offered.includes(chosen);
    setText(byId("memory-badge"), chosen ? localized("memory.on") : "");
    byId("memory-keeping").textContent = localized(this.service.key() ? "memory.until-deleted" : "memory.for-a-week");
  }

  get #current() {
    return this.#memoryOf(this.languages.source, this.languages.target);
  }

  /** Returns the memory that is chosen for two languages; where nothing is chosen, the operator's. */
  #memoryOf(source, target) {
    const chosen = this.#chosen[`${source}/${target}`];
    if (chosen === null) return null;
    const offered = this.#offered.filter((memory) => fits(memory, source, target));
    return offered.find(({ id }) => id === chosen?.id) ?? chosen ?? offered[0] ?? null;
  }

  get #pair() {
    return `${this.languages.source}/${this.languages.target}`;
  }

  /** Returns the memories of the selected languages; of a language that is to be detected, those of all sources. */
  #fitting() {
    const { source, target } = this.languages;
    const known = [...this.#offered, ...this.#listed, ...this.#own].filter((memory) => fits(memory, source, target));
    const chosen = this.#current;
    return chosen && !known.some(({ id }) => id === chosen.id) ? [...known, chosen] : known;
  }

  #label(memory) {
    const { source, units } = memory;
    const name = this.#offered.includes(memory) ? localized("memory.company", { name: memory.name }) : memory.name;
    const from = this.languages.source === AUTO && source ? localized("memory.from", { source: this.languages.name(source) }) : "";
    const facts = [from, units === undefined ? "" : localized("memory.sentences", { count: units })].filter(Boolean);
    return facts.length ? `${name} (${facts.join(", ")})` : name;
  }

  #choose(memory) {
    this.#chosen[this.#pair] = memory ?? null;
    save("memory", this.#chosen);
    this.show();
    this.onChange();
  }

  async #upload(file) {
    const pair = this.#pair;
    const { detectedSource: source, target } = this.languages;
    if (!ENDINGS.some((ending) => file.name.toLowerCase().endsWith(ending))) {
      this.#tell(localized("memory.formats", { name: file.name, formats: ENDINGS.join(", ") }), true);
      return;
    }
    const { signal } = new AbortController();
    const send = () => this.service.putMemory(file, source, target, { signal, onProgress: (share) => this.#progress(file, share) });
    const onWait = (_, seconds) => this.#tell(seconds === null ? localized("error.no-network") : localized("error.busy-seconds", { seconds }));
    this.file.disabled = true;
    this.#progress(file, 0);
    try {
      const { skipped, ...memory } = await withRetries(send, { signal, onWait });
      this.#keep(memory, pair);
      const left = skipped ? ` ${localized("memory.skipped", { count: skipped })}` : "";
      this.#tell(localized("memory.has", { name: memory.name, count: memory.units }) + left);
    } catch (error) {
      this.#tell(localized("memory.not-uploaded", { name: file.name, error: error.message.replace(/^Invalid request: /, "") }), true);
    }
    this.bar.hidden = true;
    this.file.disabled = false;
  }

  /** Adds a memory to the list, and chooses it for a pair of languages. */
  #keep(memory, pair) {
    if (this.service.key()) {
      this.#listed = [...this.#listed.filter(({ id }) => id !== memory.id), memory];
    } else {
      this.#own.push(memory);
      save("memories", this.#own);
    }
    this.#chosen[pair] = memory;
    save("memory", this.#chosen);
    this.show();
    this.onChange();
  }

  async #remove() {
    const { id, name } = this.#current;
    if (!confirm(localized("memory.delete-sure", { name }))) return;
    try {
      await this.service.deleteMemory(id);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 404) return this.#tell(localized("memory.not-deleted", { name, error: error.message }), true);
    }
    this.#forget(id);
    this.#tell(localized("memory.deleted", { name }));
    this.select.focus();
    this.onChange();
  }

  /** Removes a memory from the lists and from the choices. */
  #forget(gone) {
    this.#listed = this.#listed.filter(({ id }) => id !== gone);
    this.#own = this.#own.filter(({ id }) => id !== gone);
    this.#offered = this.#offered.filter(({ id }) => id !== gone);
    this.#chosen = Object.fromEntries(Object.entries(this.#chosen).filter(([, memory]) => memory?.id !== gone));
    save("memories", this.#own);
    save("memory", this.#chosen);
    this.#draw();
  }

  #progress(file, share) {
    this.bar.hidden = false;
    this.#tell(localized(share < 1 ? "memory.sending" : "memory.reading", { name: file.name }));
    if (share < 1) this.bar.value = share;
    else this.bar.removeAttribute("value"); // the duration is unknown
  }

  #tell(text, failed = false) {
    if (this.note.textContent !== text) this.note.textContent = text;
    this.note.classList.toggle("failed", failed);
  }
}

function fits(memory, source, target) {
  return (source === AUTO || memory.source === primary(source)) && memory.target === primary(target);
}
