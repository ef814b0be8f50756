// The translation memory of the selected languages: choice, upload and removal. The service stores its sentences. This
// browser stores the choice for each pair of languages, and the memories without a key, which the service does not list.

import { ServiceError } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { AUTO } from "./languages.js";
import { withRetries } from "./retry.js";
import { load, save } from "./storage.js";

const ENDINGS = [".tmx", ".xliff", ".xlf", ".po", ".tsv"];

export class Memory {
  #chosen = load("memory", {}); // {"en/de": {id, name}}
  #own = load("memories", []); // uploaded without a key: {id, name, source, target, units}
  #listed = []; // the key's, as GET /memories returns them

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
    this.select.addEventListener("change", () => this.#choose(this.#fitting().find(({ id }) => id === this.select.value)));
    this.removal.addEventListener("click", () => this.#remove());
    this.file.addEventListener("click", (event) => {
      if (this.languages.detectedSource) return;
      event.preventDefault();
      this.#tell("Choose the language to translate from first: a memory has two languages.", true);
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

  /** Shows the memories of the selected languages, and hides messages about others. */
  show() {
    this.#tell("");
    setText(this.lost, "");
    this.#draw();
  }

  /**
   * Returns the result of `send`, which gets the field of the chosen memory. If the service does not have the memory
   * any more, its choice is dropped, and `send` is called without it; then the result has `withoutMemory`.
   */
  async applied(source, target, send) {
    const chosen = this.#chosen[`${source}/${target}`];
    if (!chosen) return send({});
    try {
      return await send({ memory: chosen.id });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 404) throw error;
      this.#forget(chosen.id);
      const why = "is not on the service any more: it was deleted, or it expired after a week";
      setText(this.lost, `The memory “${chosen.name}” ${why}. Texts are translated without it.`);
      return { ...(await send({})), withoutMemory: true };
    }
  }

  #draw() {
    const chosen = this.#chosen[this.#pair];
    const options = this.#fitting().map((memory) => element("option", { value: memory.id }, this.#label(memory)));
    this.select.replaceChildren(element("option", { value: "" }, "No memory"), ...options);
    this.select.value = chosen?.id ?? "";
    const { source, target } = this.languages;
    const from = source === AUTO ? "" : ` from ${this.languages.name(source)}`;
    byId("memory-label").textContent = `Memory${from} into ${this.languages.name(target)}`;
    this.removal.disabled = !chosen;
    setText(byId("memory-badge"), chosen ? "on" : "");
    byId("memory-keeping").textContent = this.service.key() ? "until you delete it" : "for a week";
  }

  get #pair() {
    return `${this.languages.source}/${this.languages.target}`;
  }

  /** Returns the memories of the selected languages; of a language that is to be detected, those of all sources. */
  #fitting() {
    const { source, target } = this.languages;
    const fits = (memory) => (source === AUTO || memory.source === primary(source)) && memory.target === primary(target);
    const known = [...this.#listed, ...this.#own].filter(fits);
    const chosen = this.#chosen[this.#pair];
    return chosen && !known.some(({ id }) => id === chosen.id) ? [...known, chosen] : known;
  }

  #label({ name, source, units }) {
    const from = this.languages.source === AUTO && source ? `from ${this.languages.name(source)}` : "";
    const facts = [from, units === undefined ? "" : counted(units, "sentence")].filter(Boolean);
    return facts.length ? `${name} (${facts.join(", ")})` : name;
  }

  #choose(memory) {
    if (memory) this.#chosen[this.#pair] = memory;
    else delete this.#chosen[this.#pair];
    save("memory", this.#chosen);
    this.show();
    this.onChange();
  }

  async #upload(file) {
    const pair = this.#pair;
    const { detectedSource: source, target } = this.languages;
    if (!ENDINGS.some((ending) => file.name.toLowerCase().endsWith(ending))) {
      this.#tell(`${file.name} is not a translation memory. Accepted: ${ENDINGS.join(", ")}.`, true);
      return;
    }
    const { signal } = new AbortController();
    const send = () => this.service.putMemory(file, source, target, { signal, onProgress: (share) => this.#progress(file, share) });
    const onWait = (_, seconds) => this.#tell(seconds === null ? "No network. Goes on when it is back." : `Busy: trying again in ${seconds} s`);
    this.file.disabled = true;
    this.#progress(file, 0);
    try {
      const { skipped, ...memory } = await withRetries(send, { signal, onWait });
      this.#keep(memory, pair);
      const left = skipped ? ` ${counted(skipped, "sentence")} left out: empty or too long.` : "";
      this.#tell(`${memory.name} has ${counted(memory.units, "sentence")} now.${left}`);
    } catch (error) {
      this.#tell(`${file.name} was not uploaded: ${error.message.replace(/^Invalid request: /, "")}`, true);
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
    const { id, name } = this.#chosen[this.#pair];
    if (!confirm(`Delete the translation memory “${name}” from the service?`)) return;
    try {
      await this.service.deleteMemory(id);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 404) return this.#tell(`${name} was not deleted: ${error.message}`, true);
    }
    this.#forget(id);
    this.#tell(`${name} was deleted.`);
    this.select.focus();
    this.onChange();
  }

  /** Removes a memory from the lists and from the choices. */
  #forget(gone) {
    this.#listed = this.#listed.filter(({ id }) => id !== gone);
    this.#own = this.#own.filter(({ id }) => id !== gone);
    this.#chosen = Object.fromEntries(Object.entries(this.#chosen).filter(([, { id }]) => id !== gone));
    save("memories", this.#own);
    save("memory", this.#chosen);
    this.#draw();
  }

  #progress(file, share) {
    this.bar.hidden = false;
    this.#tell(share < 1 ? `Sending ${file.name} …` : `Reading ${file.name} …`);
    if (share < 1) this.bar.value = share;
    else this.bar.removeAttribute("value"); // the duration is unknown
  }

  #tell(text, failed = false) {
    if (this.note.textContent !== text) this.note.textContent = text;
    this.note.classList.toggle("failed", failed);
  }
}

/** Returns the language of a memory for a language of the page: memories have no regions. */
function primary(code) {
  const [language] = code.split("-");
  return language === "no" ? "nb" : language;
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
