// The page, put together. Everything else is in the modules beside this one; nothing is kept outside of `Page`.

import { Alternatives } from "./alternatives.js";
import { read, readPartial, reworded } from "./answer.js";
import { Service } from "./api.js";
import { Inside } from "./attention.js";
import { copy } from "./clipboard.js";
import { described, level, overall } from "./confidence.js";
import { byId, say } from "./dom.js";
import { Files } from "./files.js";
import { Glossary } from "./glossary.js";
import { History } from "./history.js";
import { Key } from "./key.js";
import { Languages } from "./languages.js";
import { Lights } from "./lights.js";
import { Live } from "./live.js";
import { OutputPane } from "./output.js";
import { retrying } from "./retry.js";
import { startShortcuts } from "./shortcuts.js";
import { SourcePane, tick } from "./source.js";
import { startTheme } from "./theme.js";
import { Tools } from "./tools.js";
import { Trouble } from "./trouble.js";

const PAUSE = 300; // milliseconds without a key after which a text is sent, unless the service says otherwise
const SETTLED = 1200; // milliseconds that an answer stands before it is read out and remembered
const FRAME = 150; // milliseconds between two looks at a translation that is coming in
const STREAMED = 600; // characters from which a text comes sentence by sentence

class Page {
  #answer = null;
  #parts = [];
  #settling = 0;
  #drawing = 0;
  #pause = PAUSE;

  constructor() {
    this.key = new Key(byId("key-form"), () => this.begin());
    this.service = new Service(() => this.key.value);
    this.trouble = new Trouble(byId("trouble"), {
      onRetry: () => (this.ready ? this.translate() : this.begin()),
      onKey: () => this.key.ask(),
    });
    this.ready = false;
    this.tools = new Tools(byId("tools"));
    this.languages = new Languages(
      {
        sourceSelect: byId("source-language"),
        targetSelect: byId("target-language"),
        swapButton: byId("swap"),
        detected: byId("detected"),
      },
      { onChange: () => this.#languagesChanged(), onSwap: () => this.swap() },
    );
    const [field, mirror, output] = [byId("source-text"), byId("mirror"), byId("output")];
    this.source = new SourcePane(
      { field, mirror, count: byId("count"), clear: byId("clear") },
      { onInput: (pasted) => this.translate(pasted ? 0 : this.#pause), onNow: () => this.translate() },
    );
    this.lights = new Lights({
      ...{ field, mirror, output },
      ...{ panes: byId("panes"), threads: byId("threads"), readout: byId("readout") },
    });
    this.output = new OutputPane(
      { output, placeholder: byId("placeholder"), notes: byId("notes") },
      {
        onOpen: (index, anchor) => this.alternatives.open(this.#answer.sentences[index], index, anchor),
        onWord: (direction, sentence) => this.lights.step(direction, sentence),
      },
    );
    this.alternatives = new Alternatives({
      ask: (sentence, wanted, signal) => this.#askAlternatives(sentence, wanted, signal),
      onChoose: (index, wording) => this.#choose(index, wording),
      onInside: (index) => this.#lookInside(index),
    });
    this.inside = new Inside((sentence, signal) => this.#askAttention(sentence, signal));
    this.glossary = new Glossary(this.languages, () => this.translate(this.#pause));
    this.history = new History(this.languages, (entry) => this.#recall(entry));
    this.files = new Files({ service: this.service, languages: this.languages, tools: this.tools });
    this.live = new Live((job, signal, onPart) => this.#send(job, signal, onPart), {
      begun: () => this.#busy(true),
      part: (job, part) => this.#partly(job, part),
      done: (job, answer) => this.#done(job, answer),
      waiting: (error, seconds) => this.trouble.waiting(error, seconds),
      failed: (_, error) => this.#failed(error),
    });
    this.#wire();
  }

  /** Asks the service what it can do, and starts. */
  async begin() {
    this.trouble.clear();
    const { signal } = new AbortController();
    const ask = () => Promise.all([this.service.settings(signal), this.service.languages(signal)]);
    try {
      const [settings, languages] = await retrying(ask, { signal, onWait: (...why) => this.trouble.waiting(...why) });
      this.trouble.clear();
      if (settings.keyRequired) this.key.ask();
      this.#pause = settings.frontendTimeout ?? PAUSE;
      this.source.limitTo(settings.charLimit ?? Infinity);
      this.languages.offer(languages, [settings.language?.source?.code, settings.language?.target?.code]);
      if (settings.filesTranslation) this.files.offer(settings.supportedFilesFormat ?? []);
      else this.#withoutFiles();
      this.ready = true;
      this.glossary.show();
      this.history.show();
      this.translate();
    } catch (error) {
      this.trouble.failed(error);
    }
  }

  /** Sends the text after a pause, or puts the translation away where there is no text. */
  translate(delay = 0) {
    clearTimeout(this.#settling);
    clearTimeout(this.#drawing);
    this.#drawing = 0;
    this.alternatives.close();
    this.lights.clear();
    if (!this.ready) return;
    const { text } = this.source;
    if (text.trim() && !this.source.tooLong && this.languages.target) {
      this.live.ask({ text, source: this.languages.source, target: this.languages.target }, delay);
      return;
    }
    this.live.cancel();
    this.#busy(false);
    this.trouble.clear();
    this.languages.heard(null);
    this.#show(read({ translatedText: "" }, text));
    if (this.source.tooLong) this.trouble.tell("This text is longer than the service takes.");
  }

  swap() {
    const translation = this.#answer?.text ?? "";
    this.languages.swap();
    if (translation) this.source.text = translation;
    this.#languagesChanged();
  }

  #wire() {
    const clear = () => {
      this.source.text = "";
      this.source.field.focus();
      this.translate();
    };
    const copied = async () => {
      if (this.#answer?.text && (await copy(this.#answer.text))) {
        tick(byId("copy"));
        byId("result").textContent = "Copied.";
      }
    };
    byId("clear").addEventListener("click", clear);
    byId("copy").addEventListener("click", copied);
    byId("pick").addEventListener("click", () => byId("file-input").click());
    this.tools.onOpen("inside", () => this.inside.show(this.#answer));
    startTheme(byId("theme"));
    startShortcuts(byId("shortcuts"), byId("shortcuts-button"), {
      KeyS: () => this.languages.canSwap && this.swap(),
      KeyC: copied,
      KeyX: clear,
      KeyT: () => this.output.focus(),
    });
  }

  #withoutFiles() {
    this.tools.remove("files");
    byId("pick").hidden = true;
    this.source.field.placeholder = "Type or paste text";
  }

  #languagesChanged() {
    this.glossary.show();
    this.translate();
  }

  #body(text, source, target, wants) {
    return { q: text, source, target, ...wants, ...this.glossary.fields };
  }

  async #send({ text, source, target }, signal, onPart) {
    this.#parts = [];
    const wants = { quality: true, alignment: true, segments: true, ...(text.length > STREAMED ? { stream: true } : {}) };
    const response = await this.service.translate(this.#body(text, source, target, wants), { signal, onSegment: onPart });
    return read(response, text);
  }

  #partly(job, part) {
    this.#parts.push(part);
    this.#drawing ||= setTimeout(() => {
      this.#drawing = 0;
      this.#show(readPartial(this.#parts, job.text));
    }, FRAME);
  }

  #done(job, answer) {
    this.#busy(false);
    this.trouble.clear();
    this.languages.heard(job.source === "auto" ? answer.detected : null);
    say(byId("bridge"), answer.bridge ? `By way of ${this.languages.name(answer.bridge)}` : "");
    this.#show(answer);
    this.#settling = setTimeout(() => this.#settled(job), SETTLED);
  }

  #failed(error) {
    this.#busy(false);
    this.#show(read({ translatedText: "" }, this.source.text));
    byId("placeholder").hidden = true;
    this.trouble.failed(error);
  }

  #show(answer) {
    clearTimeout(this.#drawing); // what is newer than this comes later
    this.#drawing = 0;
    this.#answer = answer;
    this.lights.clear();
    this.source.show(answer.source, this.output.show(answer, this.languages.target));
    byId("copy").hidden = !answer.text;
    const quality = overall(answer);
    say(byId("confidence"), described(quality));
    byId("confidence").dataset.level = level(quality);
    byId("legend").hidden = answer.sentences.every((sentence) => !level(sentence.quality));
  }

  /** Once the typing has come to rest: read it out, remember it, and look inside if somebody is looking. */
  #settled(job) {
    const answer = this.#answer;
    const unsure = answer.sentences.filter(({ quality }) => level(quality)).length;
    const warning = unsure ? ` (${unsure} of ${answer.sentences.length} sentences less sure)` : "";
    byId("result").textContent = answer.text + warning;
    this.history.remember({ source: this.languages.spoken || job.source, target: job.target, text: job.text, translation: answer.text });
    if (this.tools.isOpen("inside")) this.inside.show(answer);
  }

  #busy(busy) {
    byId("target-pane").setAttribute("aria-busy", String(busy));
    if (busy) this.trouble.clear();
  }

  #sentenceJob({ source }, wants) {
    const text = this.#answer.source.slice(...source);
    return this.#body(text, this.languages.spoken || this.languages.source, this.languages.target, wants);
  }

  async #askAlternatives(sentence, wanted, signal) {
    const response = await this.service.translate(this.#sentenceJob(sentence, { alternatives: wanted }), { signal });
    return response.alternatives ?? [];
  }

  async #askAttention(sentence, signal) {
    const wants = { segments: true, attention: true };
    const response = await this.service.translate(this.#sentenceJob(sentence, wants), { signal });
    return response.segments?.[0]?.attention ?? null;
  }

  #choose(index, wording) {
    this.#show(reworded(this.#answer, index, wording));
    this.output.sentence(index)?.focus();
  }

  #lookInside(index) {
    this.tools.open("inside");
    this.inside.show(this.#answer, index);
    this.inside.sentence.focus();
  }

  #recall(entry) {
    this.languages.use(entry.source, entry.target);
    this.source.text = entry.text;
    this.#languagesChanged();
    this.source.field.focus();
  }
}

new Page().begin();
