// How sure the model is of a sentence, said in words, in numbers and by the line under it; never by colour alone.
// The service's figure is the sentence chrF to expect: good translations have about 65, rubbish 40.

const SURE = 55;
const DOUBTFUL = 45;

/** "", "unsure" or "doubtful": the class of a sentence. */
export function level(quality) {
  if (quality === null || quality >= SURE) return "";
  return quality >= DOUBTFUL ? "unsure" : "doubtful";
}

/** "Confidence 48 of 100, less sure". */
export function described(quality) {
  if (quality === null) return "";
  const words = { "": "", unsure: ", less sure", doubtful: ", doubtful" };
  return `Confidence ${Math.round(quality)} of 100${words[level(quality)]}`;
}

/** For the whole text: the service's figure, or the mean of its sentences, weighted by their length. */
export function overall(answer) {
  if (answer.quality !== null) return answer.quality;
  const known = answer.sentences.filter(({ quality }) => quality !== null);
  const length = ({ target }) => target[1] - target[0];
  const total = known.reduce((sum, sentence) => sum + length(sentence), 0);
  return total ? known.reduce((sum, sentence) => sum + sentence.quality * length(sentence), 0) / total : null;
}
