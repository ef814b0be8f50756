"""Calibration of confidence on parallel text that the model was not trained on."""

from collections.abc import Sequence
from itertools import groupby

from mt import evaluation
from mt.description import CalibrationPair, Confidence
from mt.errors import DataError
from mt.pipeline.translator import Translator
from mt.scoring.confidence import EXPONENT_OF_SEVERAL_DOMAINS, Observation, fit

CONFIDENCE_PAIRS = 1000


def fit_confidence(
    translator: Translator, pairs: Sequence[CalibrationPair], others: Sequence[CalibrationPair] = ()
) -> Confidence:
    """Translate the sources of `pairs` and `others`, and fit the confidence of the model to the quality of the results.

    The quality is the chrF of each translation against the target of the pair. `pairs` are like the training text:
    their novelty determines which text is unfamiliar. `others` are of other kinds, so that the confidence holds for
    such text too. The model must not have been trained on either.

    Raises: DataError if all sources or all translations are empty.
    """
    observations, quality, novelty, searches = [], [], [], 0
    familiar = set(pairs)
    ordered = sorted((*pairs, *others), key=lambda pair: pair.direction)
    for direction, group in groupby(ordered, key=lambda pair: pair.direction):
        texts = list(group)
        source, target = direction.source, direction.target
        sources = [pair.source for pair in texts]
        results = translator.translate_many(sources, source=source, target=target, sentences=True)
        scores = evaluation.sentence_chrf([result.text for result in results], [pair.target for pair in texts])
        searches += sum(bool(result.sentences) for result in results)
        for pair, result, score in zip(texts, results, scores, strict=True):
            if probabilities := result.sentences and result.alternatives[0].piece_log_probabilities:
                observations.append(Observation(probabilities, len(result.text)))
                quality.append(score)
                if translator.bigrams and pair in familiar:
                    tokens = translator.tokenizer.encode(pair.source)
                    novelty.append(translator.bigrams.novelty(str(source), tokens))
    if not quality and searches:
        raise DataError(
            f"the model writes no word for any of {searches:,} sentences; it has not learned to translate. Train it "
            "for more updates, or with a smaller training.learning_rate or a longer training.warmup_updates"
        )
    if not quality:
        raise DataError(
            f"none of the {len(ordered)} pairs has a source to translate; accepted: at least one source that is not "
            "empty"
        )
    return fit(observations, quality, novelty, EXPONENT_OF_SEVERAL_DOMAINS if others else 1)
