"""Confidence: its features, the fit to quality, and text that is too unlike the training text."""

import math

import numpy as np
import pytest

from mt.description import Confidence
from mt.scoring.confidence import Expectation, Observation, QualityEstimator, expected_quality, fit
from mt.source_bigrams import SourceBigrams


def observed(*probabilities: float, characters: int | None = None) -> Observation:
    """By default, as many characters as tokens, EOS included."""
    length = len(probabilities) - 1 if characters is None else characters
    return Observation([math.log(probability) for probability in probabilities], length)


LINE = Confidence(slope=2, intercept=-0.8, sentences=1)
CURVE = Confidence(slope=2, exponent=3, intercept=-0.1, sentences=1)
LONG_TOKENS = Confidence(slope=0.5, intercept=0, token_length=0.1, sentences=1)


@pytest.mark.parametrize(
    ("parameters", "observation", "expected"),
    [
        *((LINE, observed(p), q) for p, q in ((0.2, 0), (0.4, 0), (0.5, 0.2), (0.7, 0.6), (0.9, 1), (1, 1))),
        (CURVE, observed(0.5), 0.15),
        (LONG_TOKENS, observed(1, 1, characters=5), 0.5 + 0.1 * math.log(3)),
    ],
)
def test_expected_quality_by_hand(parameters: Confidence, observation: Observation, expected: float) -> None:
    assert expected_quality(parameters, observation) == pytest.approx(expected)


def test_the_fit_goes_through_points_and_recovers_its_parameters() -> None:
    line = fit([observed(0.5), observed(0.7), observed(0.9)], [20, 60, 100])
    assert (line.slope, line.intercept) == pytest.approx((2, -0.8))
    assert (line.token_length, line.sentences) == (0, 3)
    curve = fit([observed(0.5), observed(0.6), observed(0.9)], [12.5, 21.6, 72.9], exponent=3)
    assert (curve.slope, curve.intercept, curve.exponent) == pytest.approx((1, 0, 3))
    random = np.random.default_rng(1)
    parameters = Confidence(slope=0.6, intercept=-0.1, token_length=0.05, sentences=1)
    observations = [
        observed(*random.uniform(0.5, 0.9, random.integers(1, 20)), characters=int(random.integers(5, 90)))
        for _ in range(50)
    ]
    fitted = fit(observations, [100 * expected_quality(parameters, each) for each in observations])
    for name in ("slope", "intercept", "token_length"):
        assert getattr(fitted, name) == pytest.approx(getattr(parameters, name))


@pytest.mark.parametrize(
    ("sure", "quality", "mean"),
    [([0.5, 0.9], [60, 40], 0.5), ([0.7, 0.7], [20, 40], 0.3), ([0.8], [30], 0.3)],
    ids=["it would fall", "all are as sure", "a single one"],
)
def test_indistinguishable_sentences_have_the_mean(sure: list[float], quality: list[float], mean: float) -> None:
    fitted = fit([observed(each) for each in sure], quality)
    assert fitted.slope == 0
    assert fitted.intercept == pytest.approx(mean)


def test_97_of_100_fitted_sentences_are_familiar() -> None:
    observations = [observed(0.5 + number / 400) for number in range(101)]
    fitted = fit(observations, list(range(101)), novelty=[number / 100 for number in range(101)])
    assert fitted.max_novelty == pytest.approx(0.97)
    assert fit(observations, list(range(101))).max_novelty == 1  # a model without bigrams


@pytest.mark.parametrize(("language", "tokens"), [("en", [5, 7, 6]), ("de", [5, 6, 7])], ids=["domain", "language"])
def test_text_unlike_the_training_text_has_no_value(language: str, tokens: list[int]) -> None:
    bigrams = SourceBigrams.build([np.array([5, 6, 7])] * 2, np.array([0, 0]), ["en"])
    estimator = QualityEstimator(Confidence(slope=1, intercept=0, max_novelty=0.5, sentences=1), bigrams)
    assert estimator.expectation("en", [5, 6, 7], observed(1.0)) == Expectation(1.0)
    assert estimator.expectation(language, tokens, observed(0.75)) == Expectation(None, unfamiliar=True)
