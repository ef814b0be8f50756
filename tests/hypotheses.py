"""Comparison of the hypotheses that two implementations of a search find."""

from collections.abc import Sequence

import pytest

from mt.decoding.hypothesis import Hypothesis

ROUNDING = 1e-5
"""Difference between float32 values near 1 that sums in another order explain; the order depends on the processor."""


def assert_same(
    found: Sequence[Sequence[Hypothesis]], expected: Sequence[Sequence[Hypothesis]], rounding: float = ROUNDING
) -> None:
    """Assert that two lists of n-best lists are equal, apart from rounding and the order of hypotheses that tie.

    Scores and log-probabilities of the same tokens differ by at most `rounding`, plus a relative 1e-6. At each rank,
    the two scores differ by as much at most, so hypotheses can only change places if their scores tie.
    """
    assert [sorted(one.tokens for one in each) for each in found] == [
        sorted(one.tokens for one in each) for each in expected
    ]
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            same = other if one.tokens == other.tokens else next(each for each in theirs if each.tokens == one.tokens)
            near = rounding + 1e-6 * abs(same.log_probability)
            assert one.score == pytest.approx(other.score, abs=near), f"{one.tokens} and {other.tokens} do not tie"
            assert one.score == pytest.approx(same.score, abs=near)
            assert one.log_probability == pytest.approx(same.log_probability, abs=near)
            assert one.token_log_probabilities == pytest.approx(same.token_log_probabilities, abs=near)
