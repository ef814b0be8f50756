"""Scores of pairs by a small model; which pairs are dropped."""

import math

import pytest

from mt.languages import Direction
from mt.scoring import pair_filter
from mt.scoring.pair_filter import drop_lowest, round_trip_scores
from mt.scoring.pairs import PairScorer
from tests.conftest import sentences, write_model

EN_DE = Direction("en", "de")
TOO_LONG = "dog " * 300
PAIRS = [*zip(sentences(6), sentences(6, seed=1), strict=True), (TOO_LONG, "The dog."), ("The dog.", TOO_LONG)]


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> PairScorer:
    folder = write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en", "en-de"], seed=5, max_length=512)
    return PairScorer.load(folder, "cpu")


def test_the_source_given_the_translation(backward: PairScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_filter, "CHUNK", 4)
    scores = round_trip_scores(backward, PAIRS, EN_DE)
    for (source, target), score in zip(PAIRS[:6], scores, strict=False):
        (scored,) = backward.score([target], [source], Direction("de", "en"))
        assert score == pytest.approx(scored.log_probability / len(scored.token_log_probabilities), rel=1e-5)
    assert len({*scores[:6]}) == 6


def test_pairs_that_are_too_long_for_the_model(backward: PairScorer) -> None:
    assert list(map(math.isfinite, round_trip_scores(backward, PAIRS[6:], EN_DE))) == [True, True]
    assert (
        round_trip_scores(backward, [(TOO_LONG * 3, "The dog."), ("The dog.", TOO_LONG * 3)], EN_DE) == [-math.inf] * 2
    )


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
