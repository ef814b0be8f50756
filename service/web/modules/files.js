// Files that are chosen or dropped, sent, and offered for download when they are translated.

import { byId, element } from "./dom.js";
import { localized } from "./messages.js";
import { withRetries } from "./retry.js";

export class Files {
  /** @param {{service, languages, models, formality, glossary, memory, tools}} parts */
  constructor(parts) {
    Object.assign(this, parts);
    this.input = byId("file-input");
    this.list = byId("jobs");
    this.veil = byId("dropping");
    this.enabled = false;
    this.input.addEventListener("change", () => {
      this.translate([...this.input.files]);
      this.input.value = "";
    });
    addEventListener("dragenter", (event) => this.#over(event));
    addEventListener("dragover", (event) => this.#over(event));
    addEventListener("dragleave", (event) => event.relatedTarget === null && (this.veil.hidden = true));
    addEventListener("drop", (event) => this.#dropped(event));
  }

  /** @param {string[]} formats  endings of names, such as ".docx" */
  offer(formats) {
    this.enabled = true;
    this.formats = formats.map((format) => format.toLowerCase());
    this.input.accept = formats.join(",");
    byId("files-lead").textContent = localized("files.lead", { formats: formats.join(", ") });
  }

  translate(files) {
    if (!files.length) return;
    this.tools.open("files");
    for (const file of files) this.#translate(file);
  }

  #over(event) {
    if (!this.enabled || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    byId("dropping-text").textContent = localized("files.drop", { language: this.languages.name(this.languages.target) });
    this.veil.hidden = false;
  }

  #dropped(event) {
    this.veil.hidden = true;
    if (!this.enabled || !event.dataTransfer?.files.length) return;
    event.preventDefault();
    this.translate([...event.dataTransfer.files]);
  }

  async #translate(file) {
    const job = new FileJob(file, () => this.#translate(file));
    this.list.prepend(job.row);
    if (!this.formats.some((format) => file.name.toLowerCase().endsWith(format))) {
      job.failed(localized("files.unknown", { formats: this.formats.join(", ") }), false);
      return;
    }
    const { source, target } = this.languages;
    const { signal } = job.controller;
    const options = { signal, onProgress: (share) => job.progress(share) };
    const fields = { source, target, ...this.models.fields, ...this.formality.fields, ...asText(this.glossary.fields) };
    const send = () => this.memory.applied(source, target, (memory) => this.service.translateFile(file, { ...fields, ...memory }, options));
    try {
      const answer = await withRetries(send, { signal, onWait: (_, seconds) => job.waiting(seconds) });
      job.done(answer, target);
    } catch (error) {
      if (signal.aborted) job.row.remove();
      else job.failed(error.message, true);
    }
  }
}

/** Returns the fields for a form, whose values are texts: JSON of all others. */
function asText(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));
}

/** A row of the list: one file and its progress. */
class FileJob {
  constructor(file, again) {
    this.file = file;
    this.again = again;
    this.controller = new AbortController();
    this.bar = element("progress", { max: 1, value: 0, "aria-label": localized("files.sending-name", { name: file.name }) });
    this.state = element("span", { class: "state" }, localized("files.sending"));
    this.action = button(localized("cancel"), file, () => this.controller.abort());
    this.row = element("li", {}, element("span", { class: "file-name" }, file.name), this.state, this.bar, this.action);
  }

  progress(share) {
    this.state.textContent = share < 1 ? localized("files.sending") : localized("files.translating");
    if (share < 1) this.bar.value = share;
    else this.bar.removeAttribute("value"); // the duration is unknown
  }

  waiting(seconds) {
    this.state.textContent = seconds === null ? localized("error.no-network") : localized("error.busy-seconds", { seconds });
  }

  /** Offers the translated file and its sentences. */
  done({ translatedFileUrl: url, tmxUrl, sentences: all, doubtful: count, withoutMemory }, target) {
    const done = localized(withoutMemory ? "files.done-without-memory" : "files.done");
    const doubt = count ? localized("files.doubtful", { count, all }) : all && count === 0 ? localized("files.none-doubtful") : "";
    this.state.textContent = doubt ? `${done}. ${doubt}` : done;
    this.bar.remove();
    const dot = this.file.name.lastIndexOf(".");
    const stem = `${this.file.name.slice(0, dot)}_${target}`;
    const suffix = this.file.name.slice(dot);
    const name = stem + suffix + (suffix.toLowerCase() === ".pdf" ? ".docx" : ""); // as the service names the file
    const file = element("a", { class: "button", href: stored(url), download: name }, localized("files.download"), hidden(` ${name}`));
    const tmx = element("a", { class: "button subtle", href: stored(tmxUrl), download: `${stem}.tmx` }, localized("files.tmx"), hidden(` ${name}`));
    this.action.replaceWith(element("span", { class: "actions" }, tmx, file));
  }

  failed(message, retry) {
    this.state.textContent = message;
    this.row.classList.add("failed");
    this.bar.remove();
    const leave = () => this.row.remove();
    const repeat = () => {
      leave();
      this.again();
    };
    this.action.replaceWith(retry ? button(localized("again"), this.file, repeat) : button(localized("remove"), this.file, leave));
  }
}

/** The address of a stored file, relative to the page: the service may not know the scheme that its proxy offers. */
function stored(url) {
  return url && `download_file/${url.slice(url.lastIndexOf("/") + 1)}`;
}

function button(label, file, onclick) {
  return element("button", { type: "button", class: "subtle", onclick }, label, hidden(` ${file.name}`));
}

function hidden(text) {
  return element("span", { class: "hidden" }, text);
}
