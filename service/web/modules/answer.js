// The service's answer as the page uses it, with JavaScript's offsets and a value for every field: the service leaves out
// those that are null.

import { converter } from "./ranges.js";

/**
 * @typedef {object} Sentence
 * @property {[number, number]} source  range in the source text
 * @property {[number, number]} target  range in the translation
 * @property {number | null} quality  0 to 100, or null if unknown
 * @property {number | null} match  similarity to a sentence of the translation memory, 0 to 1; null without a match
 * @property {string[]} untranslated  words and clauses of the source that were not translated, or the whole sentence
 * @property {string[]} alternatives  other translations, best first; empty until the page asks for them
 * @property {{source: [number, number], target: [number, number]}[]} links  aligned words
 * @property {object | null} attention  {source: pieces, target: pieces, weights: [layer][head][target][source]}; null until the page asks for it
 * @property {string} wording  its text in the translation
 * @property {Sentence | null} original  the service's translation, if the reader chose another
 */

/** Returns the answer to one text. `source` is the text as it was sent. */
export function read(response, source) {
  const text = response.translatedText;
  return {
    source,
    text,
    detected: response.detectedLanguage ?? null,
    bridge: response.bridge ?? "",
    models: response.models ?? [],
    sentences: sentences(response.segments, source, text),
  };
}

/** The answer of a stream that has not ended; it grows with each event `{index, source, translatedText, quality}`.
 *  Their texts include the space around them and join to the translation. */
export class PartialAnswer {
  text = "";
  sentences = [];
  detected = null;
  bridge = "";
  models = [];

  constructor(source) {
    this.source = source;
    this.inSource = converter(source);
  }

  add(event) {
    const [begin, end] = this.inSource(event.source);
    const place = moved(trimmedRange(this.source.slice(begin, end)), begin);
    const target = moved(trimmedRange(event.translatedText), this.text.length);
    this.text += event.translatedText;
    if (target[0] < target[1]) this.sentences.push(withText(sentence(place, target, event), this.text));
  }
}

/** Returns the answer with a sentence's wording replaced; the original wording restores its other properties. */
export function withWording(answer, index, wording) {
  const before = answer.sentences[index];
  const original = before.original ?? before;
  const [begin, end] = before.target;
  const change = wording.length - (end - begin);
  const shift = (range) => (range[0] >= end ? moved(range, change) : range);
  const text = answer.text.slice(0, begin) + wording + answer.text.slice(end);
  const target = [begin, begin + wording.length];
  const sentences = answer.sentences.map((other, place) =>
    place === index ? withChosenWording(original, wording, target) : moveSentence(other, shift),
  );
  return { ...answer, text, sentences };
}

function withChosenWording(original, wording, target) {
  if (wording !== original.wording) {
    return { ...original, target, quality: null, unfamiliar: false, match: null, untranslated: [], links: [], attention: null, original, wording };
  }
  const shift = (range) => moved(range, target[0] - original.target[0]);
  return { ...moveSentence(original, shift), original: null };
}

function moveSentence(sentence, shift) {
  const links = sentence.links.map((link) => ({ source: link.source, target: shift(link.target) }));
  return { ...sentence, target: shift(sentence.target), links };
}

function sentences(segments, source, text) {
  const inSource = converter(source);
  const inTarget = converter(text);
  return segments
    .map((segment) => {
      const links = (segment.alignment ?? []).map(([left, right]) => ({ source: inSource(left), target: inTarget(right) }));
      return { ...sentence(inSource(segment.source), inTarget(segment.target), segment), links };
    })
    .filter(({ target }) => target[0] < target[1])
    .sort((left, right) => left.target[0] - right.target[0])
    .map((each) => withText(each, text));
}

function sentence(source, target, { quality, unfamiliar, match, untranslated }) {
  return {
    source,
    target,
    quality: quality ?? null,
    unfamiliar: unfamiliar ?? false,
    match: match ?? null,
    untranslated: untranslated ?? [],
    alternatives: [],
    links: [],
    attention: null,
    original: null,
  };
}

function withText(sentence, text) {
  return { ...sentence, wording: text.slice(...sentence.target) };
}

function moved([begin, end], by) {
  return [begin + by, end + by];
}

/** Returns the range of a text without the space around it. */
function trimmedRange(text) {
  const begin = text.length - text.trimStart().length;
  return [begin, begin + text.trim().length];
}
