"""Scores of sentence pairs with machine-made targets, by which bad pairs are found and dropped.

A score is that of a pair (source x, target y). A higher score means a better pair. Scores are per token, so that long
and short pairs can be compared. A pair that is too long for the model has the score -inf.
"""

import math
from collections.abc import Sequence

import numpy as np

from mt.languages import Direction
from mt.scoring.pairs import PairScorer

CHUNK = 10_000  # pairs whose token scores are in memory at a time

TextPair = tuple[str, str]


def round_trip_scores(
    backward: PairScorer, pairs: Sequence[TextPair], direction: Direction, chunk_size: int = CHUNK
) -> list[float]:
    """Return log p(x | y) per token of x, EOS included, by a model of the reverse of `direction`."""
    scores = [-math.inf] * len(pairs)
    reverse = direction.reversed
    indices = [index for index, (source, target) in enumerate(pairs) if backward.fits(target, source, reverse)]
    for begin in range(0, len(indices), chunk_size):
        chunk = indices[begin : begin + chunk_size]
        sources, targets = ([pairs[index][side] for index in chunk] for side in (0, 1))
        for index, scored in zip(chunk, backward.score(targets, sources, reverse), strict=True):
            scores[index] = scored.mean
    return scores


def drop_lowest(pairs: Sequence[TextPair], scores: Sequence[float], fraction: float) -> list[TextPair]:
    """Return the pairs without the given fraction of them, those with the lowest scores, and without scores of -inf.

    Of equal scores, the later ones are dropped first.
    """
    highest = np.argsort(-np.array(scores), kind="stable")[: len(pairs) - int(fraction * len(pairs))]
    return [pairs[index] for index in sorted(highest) if scores[index] != -math.inf]
