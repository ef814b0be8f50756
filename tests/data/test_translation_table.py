"""IBM model 1: equal to the textbook's loop on any sentences."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.data.translation_table import EMPTY, TranslationTable, learn_translation_table

DAS, HAUS, BUCH, EIN, THE, HOUSE, BOOK, A = range(4, 12)
PAIRS = [((DAS, HAUS), (THE, HOUSE)), ((DAS, BUCH), (THE, BOOK)), ((EIN, BUCH), (A, BOOK))]

Pairs = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]


def table(found: TranslationTable) -> dict[tuple[int, int], float]:
    sources, targets = np.divmod(found.keys, found.vocabulary_size)
    return dict(zip(zip(sources.tolist(), targets.tolist(), strict=True), found.probabilities.tolist(), strict=True))


def test_best_and_frequent() -> None:
    result = learn_translation_table(PAIRS, 12, 1)
    sources, targets = result.best(2)
    assert sources.tolist() == [DAS, DAS, HAUS, HAUS, BUCH, BUCH, EIN, EIN]
    assert targets.tolist() == [THE, HOUSE, THE, HOUSE, BOOK, THE, BOOK, A]  # of equals the lower id
    sources, targets = result.best(1, besides=[THE, BOOK])
    assert list(zip(sources, targets, strict=True)) == [(DAS, HOUSE), (HAUS, HOUSE), (BUCH, A), (EIN, A)]
    assert result.frequent(3).tolist() == [THE, BOOK, HOUSE]
    assert sorted(result.frequent(99).tolist()) == [THE, HOUSE, BOOK, A]


def plain(pairs: Pairs, iterations: int) -> dict[tuple[int, int], float]:
    """As Brown et al. write it."""
    likely: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in pairs:
            for e in target:
                norm = sum(likely[f, e] for f in (EMPTY, *source))
                for f in (EMPTY, *source):
                    counts[f, e] += likely[f, e] / norm
                    totals[f] += likely[f, e] / norm
        likely = defaultdict(float, {(f, e): count / totals[f] for (f, e), count in counts.items()})
    return dict(likely)


TOKENS = st.lists(st.integers(4, 9), max_size=6).map(tuple)


@settings(max_examples=60)
@given(st.lists(st.tuples(TOKENS, TOKENS), max_size=8), st.integers(1, 4), st.sampled_from([1, 20, 10**6]))
def test_equal_to_the_plain_loop_however_the_text_is_cut(pairs: Pairs, iterations: int, cells: int) -> None:
    result = learn_translation_table(pairs, 12, iterations, cells)
    assert table(result) == pytest.approx(plain(pairs, iterations))
    assert result.keys.tolist() == sorted(set(result.keys.tolist()))
    assert result.frequencies.sum() == sum(len(target) for _, target in pairs)
