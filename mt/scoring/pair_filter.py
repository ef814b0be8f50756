"""Scores of sentence pairs with machine-made targets, by which bad pairs are found and dropped.

Each function returns one score for each pair (source x, target y). A higher score means a better pair. Scores are per
token, so that long and short pairs can be compared. A pair that is too long for a model has the score -inf.
"""

import math
from collections.abc import Sequence

import numpy as np

from mt.languages import Direction
from mt.scoring.language_model import LanguageModelScorer
from mt.scoring.pairs import PairScorer

CHUNK = 10_000  # pairs whose token scores are in memory at a time

TextPair = tuple[str, str]


def round_trip_scores(backward: PairScorer, pairs: Sequence[TextPair], direction: Direction) -> list[float]:
    """Return log p(x | y) per token of x, by a model of the reverse of `direction`."""
    return _mean_log_probabilities(backward, [(target, source) for source, target in pairs], direction.reversed)


def dual_cross_entropy_scores(
    forward: PairScorer, backward: PairScorer, pairs: Sequence[TextPair], direction: Direction
) -> list[float]:
    """Return the negative `dual_cross_entropy` of each pair, by a model of `direction` and one of its reverse."""
    log_probabilities = zip(
        _mean_log_probabilities(forward, pairs, direction),
        round_trip_scores(backward, pairs, direction),
        strict=True,
    )
    return [
        -math.inf if -math.inf in (target, source) else -dual_cross_entropy(-target, -source)
        for target, source in log_probabilities
    ]


def dual_cross_entropy(forward: float, backward: float) -> float:
    """Return the dual conditional cross-entropy of a pair (Junczys-Dowmunt 2018, equation 1). Lower is better.

    `forward` is the cross-entropy per token of y given x, and `backward` that of x given y. The value is high if a
    cross-entropy is high, or if the two models disagree.
    """
    return abs(forward - backward) + (forward + backward) / 2


def language_model_scores(scorer: LanguageModelScorer, pairs: Sequence[TextPair]) -> list[float]:
    """Return log p(y) per token of y, EOS included, by a language model of the target language."""
    scores = [-math.inf] * len(pairs)
    indices = [index for index, (_, target) in enumerate(pairs) if scorer.fits(target)]
    for index, scored in zip(indices, scorer.score([pairs[index][1] for index in indices]), strict=True):
        scores[index] = scored.mean
    return scores


def drop_lowest(pairs: Sequence[TextPair], scores: Sequence[float], fraction: float) -> list[TextPair]:
    """Return the pairs without the given fraction of them, those with the lowest scores, and without scores of -inf."""
    selected = select_highest(np.array(scores), len(pairs) - int(fraction * len(pairs)))
    return [pair for pair, keep in zip(pairs, selected, strict=True) if keep]


def select_highest(scores: np.ndarray, keep: int) -> np.ndarray:
    """Return a boolean mask that is True for the `keep` highest scores. Scores of -inf are never selected.

    Of equal scores, the earlier ones are selected first.
    """
    highest = np.argsort(-scores, kind="stable")[:keep]
    selected = np.zeros(len(scores), dtype=bool)
    selected[highest] = True
    return selected & ~np.isneginf(scores)


def _mean_log_probabilities(scorer: PairScorer, pairs: Sequence[TextPair], direction: Direction) -> list[float]:
    """Return log p(y | x) per token of y, EOS included, by a model of `direction`."""
    scores = [-math.inf] * len(pairs)
    indices = [index for index, pair in enumerate(pairs) if scorer.fits(*pair, direction)]
    for begin in range(0, len(indices), CHUNK):
        chunk = indices[begin : begin + CHUNK]
        sources, targets = ([pairs[index][side] for index in chunk] for side in (0, 1))
        for index, scored in zip(chunk, scorer.score(sources, targets, direction), strict=True):
            scores[index] = scored.mean
    return scores
