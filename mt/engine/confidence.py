"""How good a translation is likely to be, by how sure the model was of it.

The search gives the probability of each token for free. On Multi30k (en-de, 3+3 layers, beam 5, fitted on the
validation set), their mean ranks the translations of test_2016_flickr by sentence chrF about as well (Spearman 0.638)
as it does together with fifteen more such figures, the least probable token and the margin to the second best among
them (0.643).
"""

import math
from collections.abc import Sequence

import numpy as np

from mt.checkpoint import Confidence


def mean_probability(log_probabilities: Sequence[float]) -> float:
    """Of the tokens of a translation, its end counted. Ordinary ones have about 0.8, those of rubbish under 0.5."""
    return math.fsum(map(math.exp, log_probabilities)) / max(1, len(log_probabilities))


def expected_quality(confidence: Confidence, log_probabilities: Sequence[float]) -> float:
    """The sentence chrF, as a share of one, that translations had of which the model was as sure."""
    line = confidence.intercept + confidence.slope * mean_probability(log_probabilities)
    return min(1.0, max(0.0, line))


def fit(log_probabilities: Sequence[Sequence[float]], chrf: Sequence[float]) -> Confidence:
    """The line of least squares from mean probabilities to sentence chrF (0 to 100) of at least one translation.

    It never falls: where quality does not rise with probability, all are expected to be as good as their mean.
    """
    sure = np.array(list(map(mean_probability, log_probabilities)))
    quality = np.array(chrf) / 100
    spread = float(sure.var())
    slope = max(0.0, float(np.mean((sure - sure.mean()) * (quality - quality.mean()))) / spread) if spread else 0.0
    return Confidence(slope=slope, intercept=float(quality.mean() - slope * sure.mean()), sentences=len(quality))
