"""Confidence: the mean probability of tokens, and the line from it to quality."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.checkpoint import Confidence
from mt.scoring.confidence import expected_quality, fit, mean_probability

LOGS = st.lists(st.floats(-30, 0), min_size=1, max_size=9)


def logs(*probabilities: float) -> list[float]:
    return [math.log(each) for each in probabilities]


def test_mean_probability() -> None:
    assert mean_probability(logs(1, 0.5, 0.3)) == pytest.approx(0.6)
    assert mean_probability([]) == 0


@pytest.mark.parametrize(("probability", "expected"), [(0.2, 0), (0.4, 0), (0.5, 0.2), (0.7, 0.6), (0.9, 1), (1, 1)])
def test_quality_on_the_line_within_its_bounds(probability: float, expected: float) -> None:
    line = Confidence(slope=2, intercept=-0.8, sentences=1)
    assert expected_quality(line, logs(probability)) == pytest.approx(expected)


def test_the_line_goes_through_points_on_one() -> None:
    found = fit([logs(0.5), logs(0.7), logs(0.9)], [20, 60, 100])
    assert (found.slope, found.intercept) == pytest.approx((2, -0.8))
    assert found.sentences == 3


@pytest.mark.parametrize(
    ("sure", "quality", "mean"),
    [([0.5, 0.9], [60, 40], 0.5), ([0.7, 0.7], [20, 40], 0.3), ([0.8], [30], 0.3)],
    ids=["it would fall", "all are as sure", "a single one"],
)
def test_where_nothing_can_be_told_apart_all_have_the_mean(
    sure: list[float], quality: list[float], mean: float
) -> None:
    found = fit([logs(each) for each in sure], quality)
    assert found.slope == 0
    assert found.intercept == pytest.approx(mean)


@given(st.lists(st.tuples(LOGS, st.floats(0, 100)), min_size=1, max_size=20), LOGS, LOGS)
def test_surer_is_never_expected_to_be_worse(
    points: list[tuple[list[float], float]], one: list[float], other: list[float]
) -> None:
    line = fit([each for each, _ in points], [quality for _, quality in points])
    low, high = sorted((one, other), key=mean_probability)
    assert 0 <= expected_quality(line, low) <= expected_quality(line, high) <= 1
