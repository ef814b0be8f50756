from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.decoding.backtrace import best_hypotheses
from mt.decoding.hypothesis import Hypothesis

INF = float("inf")


def plain(
    totals: np.ndarray, parents: np.ndarray, tokens: np.ndarray, penalty: np.ndarray, steps: int, count: int
) -> list[Hypothesis]:
    """The hypotheses of one sentence: all ends are sorted, and the parents are followed one by one."""
    beams = parents.shape[1]
    if np.isnan(totals[steps - 1]).any():
        return []
    scores = (totals[:steps, beams:] / penalty[:steps, None]).tolist()
    ends = [(-score, step, beam) for step, line in enumerate(scores) for beam, score in enumerate(line)]
    hypotheses = []
    for negative, step, beam in sorted(end for end in ends if end[0] < INF)[:count]:
        ids, sums = [], [float(totals[step, beams + beam])]
        for before in reversed(range(step)):
            ids.append(int(tokens[before, beam]))
            sums.append(float(totals[before, beam]))
            beam = parents[before, beam]
        sums.append(0.0)
        log_probs = tuple(later - earlier for earlier, later in pairwise(reversed(sums)))
        hypotheses.append(Hypothesis(tuple(reversed(ids)), -negative, sums[0], log_probs))
    return hypotheses


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.integers(1, 4), st.integers(1, 9))
@settings(max_examples=100)
def test_many_sentences_have_the_hypotheses_of_each(seed: int, sentences: int, beams: int, most: int) -> None:
    """Scores with many ties, steps without an end, sentences of different lengths, and some with a NaN."""
    random = np.random.default_rng(seed)
    shape = (sentences, most, beams)
    totals = -random.integers(0, 4, (sentences, most, 2 * beams)).astype(np.float32)
    totals[:, :, beams:][random.random(shape) < 0.5] = -np.inf
    parents, tokens = random.integers(0, beams, shape), random.integers(4, 90, shape)
    penalty = np.broadcast_to(np.arange(1, most + 1, dtype=np.float32), shape[:2]) ** np.float32(0.5)
    steps, counts = random.integers(1, most + 1, sentences), random.integers(1, 5, sentences)
    spoilt = np.flatnonzero(random.random(sentences) < 0.1)
    totals[spoilt, steps[spoilt] - 1, 0] = np.nan
    found = best_hypotheses(totals, parents, tokens, penalty, steps, counts)
    rows = zip(totals, parents, tokens, penalty, steps, counts, strict=True)
    assert found == [plain(*row) for row in rows]
