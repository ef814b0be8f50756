"""Fits the confidence of a model: what mean probability of tokens goes with what quality."""

from collections.abc import Sequence
from itertools import groupby

from mt import evaluation
from mt.checkpoint import CalibrationPair, Confidence
from mt.engine.confidence import fit
from mt.engine.translator import Translator
from mt.errors import DataError

CONFIDENCE_PAIRS = 1000


def fit_confidence(translator: Translator, pairs: Sequence[CalibrationPair]) -> Confidence:
    """From texts that the model was not trained on, each a sentence. Raises DataError if there are none to translate.

    They are translated as a user's would be, with the model's own search.
    """
    sure, quality = [], []
    for direction, group in groupby(sorted(pairs, key=lambda pair: pair.direction), key=lambda pair: pair.direction):
        source, target = direction.split("-")
        texts = list(group)
        found = translator.translate([pair.source for pair in texts], source=source, target=target, sentences=True)
        scores = evaluation.sentence_chrf([each.text for each in found], [pair.target for pair in texts])
        for each, score in zip(found, scores, strict=True):
            if each.sentences:
                sure.append(each.alternatives[0].piece_log_probabilities)
                quality.append(score)
    if not quality:
        raise DataError(f"none of {len(pairs)} pairs has anything to translate; accepted: sentences and translations")
    return fit(sure, quality)
