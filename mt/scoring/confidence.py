"""Expected quality of a translation, from the probabilities of its tokens and from its source.

On Multi30k (en-de, 3+3 layers, beam 5, fitted on the validation set), the mean token probability ranks the translations
of test_2016_flickr by sentence chrF with a Spearman correlation of 0.638. Fifteen more features of the search, such as
the least probable token and the margin to the second hypothesis, raise it to 0.643 only. The characters per token help
across domains: text of unknown words consists of short pieces. Text unlike the training text gets no estimate: a small
model is sure of fluent nonsense.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mt.description import Confidence
from mt.source_bigrams import SourceBigrams

EXPONENT_OF_SEVERAL_DOMAINS = 3
"""Exponent of the mean token probability, if text of other kinds than the training text is fitted too.

A power bends the line where the probabilities of such text are low. Without such text, nothing there is fitted, and the
line itself is more careful (docs/experiments/text-integrity.md).
"""
DOUBTFUL = 55  # a sentence with a lower confidence, in percent, should be checked (docs/serve.md)
FAMILIAR_SHARE = 0.97  # share of the fitted sentences that get an estimate; those with the highest novelty get none


@dataclass(frozen=True)
class Observation:
    """Properties of a translation. `log_probabilities` has an entry for each token, EOS included."""

    log_probabilities: Sequence[float]
    characters: int


@dataclass(frozen=True)
class Expectation:
    """Expected sentence chrF of a translation, from 0 to 1, or None if it cannot be estimated.

    `unfamiliar` is true if it cannot be estimated because the source is unlike the training text.
    """

    quality: float | None
    unfamiliar: bool = False


@dataclass(frozen=True)
class QualityEstimator:
    """Estimator of the quality of translations. `bigrams` are those of the training text, or None if unknown."""

    confidence: Confidence
    bigrams: SourceBigrams | None = None

    def expectation(self, language: str, tokens: Sequence[int], observation: Observation) -> Expectation:
        """Return the expected quality of a translation. `tokens` are the ids of its source, without tags and EOS."""
        if self.bigrams is not None and self.bigrams.novelty(language, tokens) > self.confidence.max_novelty:
            return Expectation(None, unfamiliar=True)
        return Expectation(expected_quality(self.confidence, observation))


def mean_probability(log_probabilities: Sequence[float]) -> float:
    """Return the mean token probability. Ordinary translations have about 0.8, bad translations less than 0.5."""
    return math.fsum(map(math.exp, log_probabilities)) / max(1, len(log_probabilities))


def expected_quality(confidence: Confidence, observation: Observation) -> float:
    """Return the expected sentence chrF of a translation, from 0 to 1."""
    power, token_length = _features(observation, confidence.exponent)
    quality = confidence.intercept + confidence.slope * power + confidence.token_length * token_length
    return min(1.0, max(0.0, quality))


def fit(
    observations: Sequence[Observation], chrf: Sequence[float], novelty: Sequence[float] = (), exponent: int = 1
) -> Confidence:
    """Fit the parameters of `expected_quality` to the sentence chrF (0 to 100) of observations, by least squares.

    If the quality would not rise with the probability, all translations get the mean chrF. `novelty` contains the
    novelty of the sources that are like the training text. `max_novelty` of the result is the FAMILIAR_SHARE quantile
    of these values.
    """
    features = np.array([_features(observation, exponent) for observation in observations])
    quality = np.array(chrf) / 100
    means, centered = features.mean(0), features - features.mean(0)
    # The smallest solution: 0 for a feature that is the same in all observations.
    weights, *_ = np.linalg.lstsq(centered, quality - quality.mean(), rcond=1e-9)
    if weights[0] <= 0:
        weights = np.zeros(2)
    slope, token_length = map(float, weights)
    return Confidence(
        slope=slope,
        exponent=exponent,
        intercept=float(quality.mean() - weights @ means),
        token_length=token_length,
        max_novelty=float(np.quantile(novelty, FAMILIAR_SHARE, method="higher")) if novelty else 1.0,
        sentences=len(quality),
    )


def _features(observation: Observation, exponent: int) -> tuple[float, float]:
    """Return (mean token probability)**exponent, and ln of the characters per token. EOS counts as one of both."""
    tokens = max(1, len(observation.log_probabilities))
    return mean_probability(observation.log_probabilities) ** exponent, math.log((observation.characters + 1) / tokens)
