// The match of a sentence in the translation memory, in words and as a sign at the sentence; never by colour alone.

import { describe, describeUntranslated } from "./confidence.js";
import { localized } from "./messages.js";

/** Returns the class of a sentence: "exact", "similar", or "" without a match. */
export function matchKind(match) {
  if (match === null) return "";
  return match === 1 ? "exact" : "similar";
}

/** Returns a text such as "Adapted from a similar sentence of the memory (87% match): check it". `match`: 0 to 1, or null. */
function describeMatch(match) {
  if (match === null) return "";
  return match === 1 ? localized("match.exact") : localized("match.similar", { percent: Math.round(100 * match) });
}

/** Returns what is known about a sentence: its match, its confidence and its words that are not translated. */
export function describeSentence(sentence) {
  return [describeMatch(sentence.match), describe(sentence), describeUntranslated(sentence.untranslated)].filter(Boolean).join(". ");
}
