// What is to be checked in a translation: the confidence of a sentence in words, as a number and by the line under it (never
// by colour alone), and the words that are not translated.
// The service's number is the expected chrF of the sentence. Of 400 sentences of everyday talk, manuals and the web that the
// bundled model did not see in training, 78 translations are wrong, 124 understandable and 198 right. Below SURE or without
// a number are 63, 63 and 46 of them; below DOUBTFUL 23, 21 and 8.

import { isolated, localized } from "./messages.js";

const SURE = 64;
const DOUBTFUL = 55; // as in mt/scoring/confidence.py, for files
const SPOKEN = 200; // characters of a translation that are announced
const LISTED = 120; // characters of a list of words that are not translated
const NUMBERS = { "": "confidence", unsure: "confidence.unsure", doubtful: "confidence.doubtful" };
const WORDS = { unsure: "confidence.unsure-text", doubtful: "confidence.doubtful-text", unfamiliar: "confidence.unfamiliar" };

/**
 * Returns the class of a sentence: "", "unsure", "doubtful" or "unfamiliar". A sentence that is adapted from a similar one of
 * the memory is never sure: its number is that of the model's translation.
 */
export function level({ quality, unfamiliar, match }) {
  if (quality !== null && quality < DOUBTFUL) return "doubtful";
  if ((quality !== null && quality < SURE) || (match !== null && match < 1)) return "unsure";
  return quality === null && unfamiliar ? "unfamiliar" : "";
}

/** Returns a text such as "Confidence 53 of 100, less sure". `unfamiliar`: the text is unlike the training text. */
export function describe(sentence) {
  const { quality, unfamiliar } = sentence;
  if (quality === null) return unfamiliar ? localized("confidence.unfamiliar") : "";
  return localized(NUMBERS[level(sentence)], { value: Math.round(quality) });
}

/** Returns a text such as "Not translated: Bokmål, Zyklon"; "" if everything is translated. */
export function describeUntranslated(texts) {
  if (!texts.length) return "";
  const list = [...new Set(texts)].join(", ");
  const shown = list.length > LISTED ? `${list.slice(0, LISTED)}…` : list; // cut first: an isolated word ends with a mark
  return localized("untranslated", { texts: shown.split(", ").map(isolated).join(", ") });
}

/** Returns the class of the least sure sentence of an answer; "untranslated" if there is none but words are not translated. */
export function worst({ sentences }) {
  const levels = sentences.map(level);
  const unsure = ["doubtful", "unsure", "unfamiliar"].find((each) => levels.includes(each));
  return unsure ?? (sentences.some(({ untranslated }) => untranslated.length) ? "untranslated" : "");
}

/** Returns a text about a whole answer, such as "2 of 3 sentences not sure"; "" if nothing is to be checked. */
export function summary(answer) {
  const { length: all } = answer.sentences;
  const count = answer.sentences.filter(level).length;
  const untranslated = describeUntranslated(answer.sentences.flatMap((sentence) => sentence.untranslated));
  const unsure = () => (all === 1 ? localized(WORDS[worst(answer)]) : localized("confidence.some", { count, all }));
  return [count ? unsure() : "", untranslated].filter(Boolean).join(". ");
}

/** Returns what a screen reader says of an answer: a short translation, or how much there is to visit. */
export function announcement(answer) {
  const { sentences, text } = answer;
  const warning = summary(answer);
  return (text.length <= SPOKEN ? text : localized("translation.done", { count: sentences.length })) + (warning && ` (${warning})`);
}
