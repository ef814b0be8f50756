// The page: creates its parts and connects them. All state is in `Page` and its parts.

import { Alternatives } from "./alternatives.js";
import { PartialAnswer, read, withWording } from "./answer.js";
import { Service } from "./api.js";
import { AttentionPanel } from "./attention.js";
import { copy } from "./clipboard.js";
import { announcement, level, summary, worst } from "./confidence.js";
import { byId, setText } from "./dom.js";
import { Editing } from "./editing.js";
import { Files } from "./files.js";
import { Formality } from "./formality.js";
import { Glossary } from "./glossary.js";
import { History } from "./history.js";
import { Key } from "./key.js";
import { LanguageSearch } from "./language-search.js";
import { Languages } from "./languages.js";
import { AlignmentHighlighter } from "./alignment.js";
import { LiveTranslation } from "./live.js";
import { matchKind } from "./match.js";
import { Memory } from "./memory.js";
import { localized, startMessages } from "./messages.js";
import { Models } from "./models.js";
import { OtherLanguage } from "./other-language.js";
import { OutputPane } from "./output.js";
import { withRetries } from "./retry.js";
import { scrollTogether } from "./scrolling.js";
import { startShortcuts } from "./shortcuts.js";
import { SourcePane, tick } from "./source.js";
import { load, save } from "./storage.js";
import { Suggestion } from "./suggestion.js";
import { startTheme } from "./theme.js";
import { Tools } from "./tools.js";
import { ErrorBanner } from "./errors.js";

const SETTLED = 1200; // milliseconds after which an answer is announced and added to the history
const FRAME = 150; // milliseconds between two updates of a streamed translation
const STREAMED = 600; // characters from which a translation is streamed

class Page {
  #answer = null;
  #partial = null; // the answer of a stream that has not ended
  #settling = 0;
  #drawing = 0;
  #pause = 0; // milliseconds without a key after which a text is sent, as the service sets it

  constructor() {
    startMessages(() => save("text", this.source.text, () => sessionStorage));
    this.key = new Key(byId("key-form"), () => this.begin());
    this.service = new Service(() => this.key.value);
    this.errors = new ErrorBanner(byId("trouble"), {
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
    const search = new LanguageSearch();
    search.attach(byId("source-search"), byId("source-language"));
    search.attach(byId("target-search"), byId("target-language"));
    const [field, mirror, output] = [byId("source-text"), byId("mirror"), byId("output")];
    this.source = new SourcePane(
      { field, mirror, count: byId("count"), clear: byId("clear") },
      { onInput: (pasted) => this.translate(pasted ? 0 : this.#pause), onNow: () => this.translate() },
    );
    this.alignment = new AlignmentHighlighter({
      ...{ field, mirror, output },
      ...{ panes: byId("panes"), threads: byId("threads"), readout: byId("readout"), announcer: byId("result") },
    });
    this.output = new OutputPane(
      { output, placeholder: byId("placeholder"), notes: byId("notes") },
      {
        onOpen: (index, anchor) => this.alternatives.open(this.#answer.sentences[index], index, anchor),
        onWord: (direction, sentence) => this.alignment.step(direction, sentence),
      },
    );
    this.editing = new Editing({
      output: this.output,
      onInput: (index, wording) => {
        this.#answer = withWording(this.#answer, index, wording);
        this.output.mark(index, this.#answer.sentences[index]);
        this.#showConfidence(this.#answer);
      },
      onEnd: () => this.#show(this.#answer),
    });
    this.suggestion = new Suggestion({
      send: ({ source }, wording) => this.#suggest(source, wording),
      onSent: (wording) => {
        this.alternatives.choose(wording);
        byId("result").textContent = localized("suggestion.thanks");
      },
    });
    this.alternatives = new Alternatives({
      suggestion: this.suggestion,
      ask: (sentence, wanted, signal) => this.#askAlternatives(sentence, wanted, signal),
      onChoose: (index, wording) => this.#choose(index, wording),
      onInside: (index) => this.#lookInside(index),
    });
    this.attention = new AttentionPanel((sentence, signal) => this.#askAttention(sentence, signal));
    this.models = new Models(() => this.translate());
    this.otherLanguage = new OtherLanguage(
      { message: byId("other-language"), text: byId("other-language-text"), button: byId("other-language-button") },
      this.languages,
      (text, signal) => this.service.detect(text, signal),
    );
    this.glossary = new Glossary(this.languages, () => this.translate(this.#pause));
    this.formality = new Formality(() => this.translate());
    this.memory = new Memory({ service: this.service, languages: this.languages }, () => this.translate());
    this.history = new History(this.languages, (entry) => this.#recall(entry));
    const { service, languages, models, formality, glossary, memory, tools } = this;
    this.files = new Files({ service, languages, models, formality, glossary, memory, tools });
    this.live = new LiveTranslation((job, signal, onPart) => this.#send(job, signal, onPart), {
      begun: () => this.#busy(true),
      part: (job, part) => this.#partly(job, part),
      done: (job, answer) => this.#done(job, answer),
      waiting: (error, seconds) => this.errors.waiting(error, seconds),
      failed: (job, error) => this.#failed(job, error),
    });
    this.#wire();
    this.source.text = load("text", this.source.text, () => sessionStorage); // the page begins anew in another language
    save("text", null, () => sessionStorage);
  }

  /** Requests the service's settings and starts. */
  async begin() {
    this.errors.clear();
    const { signal } = new AbortController();
    const ask = () => Promise.all([this.service.settings(signal), this.service.languages(signal), this.service.models(signal)]);
    try {
      const [settings, languages, models] = await withRetries(ask, { signal, onWait: (...why) => this.errors.waiting(...why) });
      this.errors.clear();
      if (settings.keyRequired) this.key.ask();
      this.#pause = settings.frontendTimeout;
      this.source.limitTo(settings.charLimit);
      this.models.list = models;
      this.languages.offer(languages, [settings.language.source.code, settings.language.target.code]);
      this.files.offer(settings.supportedFilesFormat);
      if (settings.suggestions) this.suggestion.enable();
      this.glossary.offer(settings.glossary);
      this.memory.offer(settings.memories);
      this.formality.offer(settings.formality);
      this.ready = true;
      this.#showModel();
      this.glossary.show();
      this.memory.list();
      this.history.show();
      this.translate();
    } catch (error) {
      this.errors.failed(error);
    }
  }

  /** Sends the text after a pause, or clears the translation if there is no text. */
  translate(delay = 0) {
    clearTimeout(this.#settling);
    clearTimeout(this.#drawing);
    this.#drawing = 0;
    this.alternatives.close();
    this.alignment.clear();
    if (!this.ready) return;
    const { text } = this.source;
    if (text.trim() && !this.source.tooLong && this.languages.target) {
      this.live.ask({ text, source: this.languages.source, target: this.languages.target }, delay);
      return;
    }
    this.live.cancel();
    this.otherLanguage.hide();
    this.#busy(false);
    this.errors.clear();
    this.#showNothing();
    if (this.source.tooLong) this.errors.tell(this.source.tooLongMessage);
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
        byId("result").textContent = localized("translation.copied");
      }
    };
    byId("clear").addEventListener("click", clear);
    byId("store").addEventListener("click", () => this.#store());
    byId("copy").addEventListener("click", copied);
    byId("jump").addEventListener("click", (event) => {
      event.preventDefault(); // the fragment of the address holds the languages
      byId("target-pane").scrollIntoView();
      this.output.focus();
    });
    byId("pick").addEventListener("click", () => byId("file-input").click());
    this.tools.onOpen("inside", () => this.attention.show(this.#answer));
    scrollTogether(byId("source-stack"), byId("output"));
    startTheme(byId("theme"));
    startShortcuts(byId("shortcuts"), byId("shortcuts-button"), {
      KeyS: () => this.languages.canSwap && this.swap(),
      KeyC: copied,
      KeyX: clear,
      KeyT: () => this.output.focus(),
    });
  }

  #languagesChanged() {
    this.otherLanguage.hide();
    this.#showModel();
    this.glossary.show();
    this.memory.show();
    this.translate();
  }

  /** Shows the models of the selected languages. */
  #showModel() {
    this.models.show(this.languages.source, this.languages.target);
    this.formality.show(this.languages.target);
  }

  #body(text, source, target, options) {
    return { q: text, source, target, ...options, ...this.models.fields, ...this.formality.fields, ...this.glossary.fields };
  }

  async #send({ text, source, target }, signal, onPart) {
    this.#partial = null;
    const options = { quality: true, untranslated: true, alignment: true, segments: true, ...(text.length > STREAMED ? { stream: true } : {}) };
    const response = await this.memory.applied(source, target, (memory) =>
      this.service.translate(this.#body(text, source, target, { ...options, ...memory }), { signal, onSegment: onPart }),
    );
    return read(response, text);
  }

  #partly(job, part) {
    if (!this.#partial) this.#show((this.#partial = new PartialAnswer(job.text)));
    this.#partial.add(part);
    this.#drawing ||= setTimeout(() => {
      this.#drawing = 0;
      this.output.extend(this.#partial);
    }, FRAME);
  }

  #done(job, answer) {
    this.#busy(false);
    this.errors.clear();
    this.#showWay(job.source === "auto" ? answer.detected : null, answer);
    this.#show(answer);
    this.#settling = setTimeout(() => this.#settled(job), SETTLED);
  }

  #failed(job, error) {
    this.#busy(false);
    this.otherLanguage.hide();
    this.#showNothing();
    if (job.source === "auto" && this.models.chosen && error.code === "unsupported_language") {
      this.errors.tell(localized("model.unfit", { model: this.models.chosen }));
    } else this.errors.failed(error);
  }

  /** Shows that nothing is translated. */
  #showNothing() {
    const nothing = read({ translatedText: "", segments: [] }, this.source.text);
    this.#showWay(null, nothing);
    this.#show(nothing);
  }

  /** Shows the detected language of a text, and the models and the third language by which it was translated. */
  #showWay(detected, { models, bridge }) {
    this.languages.setDetected(detected);
    this.models.showUsed(models);
    setText(byId("bridge"), bridge ? localized("languages.bridge", { language: this.languages.name(bridge) }) : "");
  }

  #show(answer) {
    this.editing.stop();
    clearTimeout(this.#drawing); // a newer part is drawn later
    this.#drawing = 0;
    this.#answer = answer;
    this.source.show(answer.source, this.output.show(answer, this.languages.target), this.languages.detectedSource);
    this.alignment.renew();
    byId("copy").hidden = !answer.text;
    byId("edit").hidden = !answer.sentences.length || answer === this.#partial;
    this.#offerStoring();
    this.#showConfidence(answer);
  }

  /** Shows what is to be checked in an answer, and what its marks mean. */
  #showConfidence(answer) {
    setText(byId("confidence"), summary(answer));
    byId("confidence").dataset.level = worst(answer);
    this.#showLegend(new Set(answer.sentences.flatMap((sentence) => [
      level(sentence), matchKind(sentence.match), sentence.untranslated.length ? "untranslated" : "",
    ])));
  }

  /** Returns the sentences `[source, wording]` that the user has changed or chosen. */
  get #changed() {
    const { source, sentences } = this.#answer;
    const changed = sentences.filter(({ original, wording }) => original && wording.trim());
    return changed.map((sentence) => [source.slice(...sentence.source), sentence.wording]);
  }

  /** Offers to store changed sentences, if the chosen memory is the user's. */
  #offerStoring() {
    const memory = this.memory.writable?.name;
    const { length: count } = this.#changed;
    setText(byId("store"), memory && count ? localized("edit.store", { count, memory }) : "");
    setText(byId("store-note"), "");
  }

  async #store() {
    const memory = this.memory.writable;
    setText(byId("store"), "");
    setText(byId("store-note"), localized("edit.storing"));
    try {
      await this.memory.add(memory, this.#changed);
      setText(byId("store-note"), localized("edit.stored", { memory: memory.name }));
    } catch (error) {
      setText(byId("store-note"), error.message);
    }
  }

  /** Explains the lines and signs of the sentences of these levels. */
  #showLegend(levels) {
    const items = [...byId("legend").children];
    for (const item of items) item.hidden = !levels.has(item.dataset.level);
    byId("legend").hidden = items.every((item) => item.hidden);
  }

  /** Announces a final answer, adds it to the history, and updates an open attention panel. */
  #settled(job) {
    const answer = this.#answer;
    byId("result").textContent = announcement(answer);
    this.history.remember({ source: this.languages.detectedSource || job.source, target: job.target, text: job.text, translation: answer.text });
    if (this.tools.isOpen("inside")) this.attention.show(answer);
    this.otherLanguage.check(job, answer);
  }

  #busy(busy) {
    byId("target-pane").setAttribute("aria-busy", String(busy));
    if (busy) this.errors.clear();
  }

  #sentenceJob({ source }, options) {
    const text = this.#answer.source.slice(...source);
    return this.#body(text, this.languages.detectedSource || this.languages.source, this.languages.target, options);
  }

  async #askAlternatives(sentence, wanted, signal) {
    const response = await this.service.translate(this.#sentenceJob(sentence, { alternatives: wanted }), { signal });
    const own = sentence.match === null ? [] : [response.translatedText]; // the model's, in place of the memory's
    return [...own, ...response.alternatives];
  }

  async #askAttention(sentence, signal) {
    const options = { segments: true, attention: true };
    const response = await this.service.translate(this.#sentenceJob(sentence, options), { signal });
    return response.segments[0]?.attention ?? null;
  }

  #suggest(range, wording) {
    const { detectedSource, source, target } = this.languages;
    return this.service.suggest({ q: this.#answer.source.slice(...range), s: wording, source: detectedSource || source, target });
  }

  #choose(index, wording) {
    this.#show(withWording(this.#answer, index, wording));
    this.output.sentence(index)?.focus();
  }

  #lookInside(index) {
    this.tools.open("inside");
    this.attention.show(this.#answer, index);
    this.attention.sentence.focus();
  }

  #recall(entry) {
    this.languages.use(entry.source, entry.target);
    this.source.text = entry.text;
    this.#languagesChanged();
    this.source.field.focus();
  }
}

new Page().begin();
