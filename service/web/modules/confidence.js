// The confidence of a sentence in words, as a number and by the line under it; never by colour alone.
// The service's number is the expected chrF of the sentence. Of sixty translations of the bundled model, 14 of 17 wrong ones,
// 8 of 18 understandable ones and 3 of 25 right ones are below SURE or have no number.

const SURE = 60;
const DOUBTFUL = 50;
const SPOKEN = 200; // characters of a translation that are announced
const UNFAMILIAR = "Confidence unknown: this text is unlike the text that the model was trained on.";

/** Returns the class of a sentence: "", "unsure", "doubtful" or "unfamiliar". */
export function level(quality, unfamiliar = false) {
  if (quality === null && unfamiliar) return "unfamiliar";
  if (quality === null || quality >= SURE) return "";
  return quality >= DOUBTFUL ? "unsure" : "doubtful";
}

/** Returns a text such as "Confidence 53 of 100, less sure". `unfamiliar`: the text is unlike the training text. */
export function describe(quality, unfamiliar = false) {
  if (quality === null) return unfamiliar ? UNFAMILIAR : "";
  const words = { "": "", unsure: ", less sure", doubtful: ", doubtful" };
  return `Confidence ${Math.round(quality)} of 100${words[level(quality)]}`;
}

/** Returns a text about a whole answer, such as "Confidence 64 of 100, unknown for 1 of 3 sentences". */
export function summary(answer) {
  const { length } = answer.sentences;
  const unknown = answer.sentences.filter(({ quality, unfamiliar }) => quality === null && unfamiliar).length;
  const quality = overall(answer);
  if (quality === null || !unknown) return describe(quality, unknown > 0);
  return `${describe(quality)}, unknown for ${unknown} of ${length} sentences`;
}

/** Returns what a screen reader says of an answer: a short translation, or how much there is to visit. */
export function announcement({ sentences, text }) {
  const unsure = sentences.filter(({ quality, unfamiliar }) => level(quality, unfamiliar)).length;
  const warning = unsure ? ` (${unsure} of ${sentences.length} sentences less sure)` : "";
  return (text.length <= SPOKEN ? text : `Translated: ${sentences.length} sentences`) + warning;
}

/**
 * Returns the service's value for the text, or the mean of its sentences, weighted by length. A text without sentences,
 * such as a text that is in the target language already, has none: nothing was translated.
 */
export function overall(answer) {
  if (!answer.sentences.length) return null;
  if (answer.quality !== null) return answer.quality;
  const known = answer.sentences.filter(({ quality }) => quality !== null);
  const length = ({ target }) => target[1] - target[0];
  const total = known.reduce((sum, sentence) => sum + length(sentence), 0);
  return total ? known.reduce((sum, sentence) => sum + sentence.quality * length(sentence), 0) / total : null;
}
