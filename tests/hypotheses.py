"""Comparison of the hypotheses that two implementations of a search find."""

from collections.abc import Sequence

import pytest

from mt.decoding.hypothesis import Hypothesis

ROUNDING = 1e-4
"""Difference between scores that float32 sums in another order explain; the order depends on the processor."""


def assert_same(
    found: Sequence[Sequence[Hypothesis]], expected: Sequence[Sequence[Hypothesis]], rounding: float = ROUNDING
) -> None:
    """Assert that two lists of n-best lists are equal, apart from rounding and hypotheses whose scores tie.

    Numbers of equal tokens, and scores at each rank, differ by at most `rounding` plus a relative 1e-6: hypotheses
    change places only where they tie. One list in eight may have a hypothesis that the other lacks, if it ties with
    the last one there.
    """
    ties = 0
    for ours, theirs in zip(found, expected, strict=True):
        known = {hypothesis.tokens: hypothesis for hypothesis in theirs}
        assert len({hypothesis.tokens for hypothesis in ours}) == len(ours)
        for one, other in zip(ours, theirs, strict=True):
            near = rounding + 1e-6 * abs(other.log_probability)
            assert one.score == pytest.approx(other.score, abs=near), f"{one.tokens} and {other.tokens} do not tie"
            same = known.get(one.tokens)
            if same is None:
                assert one.score == pytest.approx(theirs[-1].score, abs=near), f"{one.tokens} is not expected"
                continue
            assert one.score == pytest.approx(same.score, abs=near)
            assert one.log_probability == pytest.approx(same.log_probability, abs=near)
            assert one.token_log_probabilities == pytest.approx(same.token_log_probabilities, abs=near)
        ties += not {hypothesis.tokens for hypothesis in ours} <= known.keys()
    assert ties <= len(expected) // 8, f"{ties} of {len(expected)} lists have other tokens"
