"""The comparison of hypotheses itself."""

import pytest

from mt.decoding.hypothesis import Hypothesis
from tests.hypotheses import assert_same


def test_ties_may_change_places_and_nothing_else() -> None:
    first, tie, last = (
        Hypothesis((number,), score, score, (score, 0.0)) for number, score in ((4, -1.0), (5, -1.000001), (6, -2.0))
    )
    assert_same([[first, tie, last]], [[tie, first, last]])
    for wrong in ([[first, last, tie]], [[first, tie]], [[first, first, last]], [[first, tie, last], []]):
        with pytest.raises((AssertionError, ValueError)):
            assert_same(wrong, [[first, tie, last]])
    with pytest.raises(AssertionError):
        assert_same([[Hypothesis((4,), -1.0, -1.0, (-0.9, -0.1))]], [[first]])
    assert_same([[first]] * 7 + [[tie]], [[first]] * 8)  # a tie at the last rank
    for wrong in ([[first]] * 6 + [[tie]] * 2, [[first]] * 7 + [[last]]):
        with pytest.raises(AssertionError):
            assert_same(wrong, [[first]] * 8)
