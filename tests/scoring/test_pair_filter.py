"""Scores of pairs by hand, and by small models; which pairs are dropped."""

import math
from pathlib import Path

import numpy as np
import pytest

from mt.languages import Direction
from mt.scoring import pair_filter
from mt.scoring.language_model import LanguageModelScorer
from mt.scoring.pair_filter import (
    drop_lowest,
    dual_cross_entropy,
    dual_cross_entropy_scores,
    language_model_scores,
    round_trip_scores,
    select_highest,
)
from mt.scoring.pairs import PairScorer
from tests.conftest import sentences, write_model

EN_DE = Direction("en", "de")
TOO_LONG = "dog " * 300
PAIRS = [*zip(sentences(6), sentences(6, seed=1), strict=True), (TOO_LONG, "The dog."), ("The dog.", TOO_LONG)]


@pytest.fixture(scope="module")
def forward(small_model: Path) -> PairScorer:
    return PairScorer.load(small_model, "cpu")


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> PairScorer:
    folder = write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en", "en-de"], seed=5, max_length=512)
    return PairScorer.load(folder, "cpu")


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (1.0, 1.0, 1.0),  # the models agree: the mean
        (3.0, 3.0, 3.0),  # both find the pair less probable
        (1.0, 3.0, 4.0),  # 2 + 4 / 2
        (3.0, 1.0, 4.0),  # symmetric
        (0.0, 2.0, 3.0),  # worse than (1, 1), although the sum is the same
    ],
)
def test_dual_cross_entropy_by_hand(forward: float, backward: float, expected: float) -> None:
    assert dual_cross_entropy(forward, backward) == expected


def test_the_source_given_the_translation(backward: PairScorer) -> None:
    scores = round_trip_scores(backward, PAIRS, EN_DE)
    for (source, target), score in zip(PAIRS[:6], scores, strict=False):
        (scored,) = backward.score([target], [source], Direction("de", "en"))
        assert score == pytest.approx(scored.log_probability / len(scored.token_log_probabilities), rel=1e-5)
    assert len({*scores[:6]}) == 6


def test_both_sides_given_each_other(
    forward: PairScorer, backward: PairScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_filter, "CHUNK", 4)
    scores = dual_cross_entropy_scores(forward, backward, PAIRS, EN_DE)
    for (source, target), score in zip(PAIRS[:6], scores, strict=False):
        (there,) = forward.score([source], [target], EN_DE)
        (back,) = backward.score([target], [source], Direction("de", "en"))
        assert score == pytest.approx(-dual_cross_entropy(-there.mean, -back.mean), rel=1e-5)


def test_the_translation_alone(small_language_model: Path) -> None:
    scorer = LanguageModelScorer.load(small_language_model, "cpu")
    scores = language_model_scores(scorer, PAIRS)
    assert scores[:6] == pytest.approx([scorer.score([target])[0].mean for _, target in PAIRS[:6]], rel=1e-5)
    assert math.isfinite(scores[6])  # only its source is too long
    assert scores[7] == -math.inf


def test_what_is_too_long_for_one_of_the_models(forward: PairScorer, backward: PairScorer) -> None:
    assert list(map(math.isfinite, round_trip_scores(backward, PAIRS[6:], EN_DE))) == [True, True]
    assert dual_cross_entropy_scores(forward, backward, PAIRS[6:], EN_DE) == [-math.inf, -math.inf]
    much_too_long = [(TOO_LONG * 3, TOO_LONG * 3)]
    assert dual_cross_entropy_scores(forward, backward, much_too_long, EN_DE) == [-math.inf]


@pytest.mark.parametrize(
    ("scores", "fraction", "kept"),
    [
        ((-1.0, -3.0, -2.0, -4.0), 0.5, "ac"),
        ((-1.0, -3.0, -2.0, -4.0), 0.49, "abc"),  # 0.49 x 4 is rounded down
        ((-1.0, -3.0, -2.0, -4.0), 0.0, "abcd"),
        ((-2.0, -2.0, -2.0, -2.0), 0.25, "abc"),  # of equal ones, the last
        ((-1.0, -math.inf, -math.inf, -4.0), 0.25, "ad"),  # what has no score is dropped in any case
    ],
)
def test_the_lowest_are_dropped(scores: tuple[float, ...], fraction: float, kept: str) -> None:
    pairs = [(name, name.upper()) for name in "abcd"]
    assert drop_lowest(pairs, scores, fraction) == [(name, name.upper()) for name in kept]


def test_the_highest_are_chosen_of_equal_ones_the_first() -> None:
    scores = np.array([0.5, -np.inf, 2.0, 0.5, 0.5, -1.0])
    assert np.flatnonzero(select_highest(scores, 3)).tolist() == [0, 2, 3]
    assert np.flatnonzero(select_highest(scores, 9)).tolist() == [0, 2, 3, 4, 5]
