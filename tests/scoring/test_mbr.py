"""Minimum Bayes risk, by hand on three candidates and through a translator."""

from dataclasses import replace
from pathlib import Path

import pytest

from mt import Translator
from mt.decoding.options import SearchOptions
from mt.evaluation import expected_chrf
from mt.pipeline.results import Alternative, Failure
from mt.scoring.mbr import MinimumBayesRisk


def drawn(*texts: str) -> tuple[Alternative, ...]:
    """Candidates, the most probable first."""
    return tuple(Alternative(text, -1.0 - place, -1.0 - place, (), ()) for place, text in enumerate(texts))


def texts(found: tuple[Alternative, ...]) -> list[str]:
    return [each.text for each in found]


def test_what_is_most_like_the_others_is_chosen() -> None:
    """By characters alone, "x" shares nothing, and "ab" and "a" have chrF2 5/6 and 5/9 of each other."""
    assert texts(MinimumBayesRisk()(drawn("x", "a", "ab"))) == ["ab"]
    assert texts(MinimumBayesRisk(keep=3)(drawn("x", "a", "ab"))) == ["ab", "a", "x"]
    assert texts(MinimumBayesRisk(keep=2)(drawn("x", "a", "ab"))) == ["ab", "a"]


def test_what_was_drawn_often_counts_often_and_is_listed_once() -> None:
    assert texts(MinimumBayesRisk(keep=9)(drawn("ab", "x", "x", "a", "x"))) == ["x", "ab", "a"]


def test_of_equal_ones_the_more_probable_comes_first() -> None:
    assert texts(MinimumBayesRisk(keep=3)(drawn("x", "y", "z"))) == ["x", "y", "z"]
    assert texts(MinimumBayesRisk()(drawn("only"))) == ["only"]


@pytest.mark.parametrize("keep", [1, 3])
def test_each_sentence_of_a_text_is_chosen_by_itself(small_model: Path, keep: int) -> None:
    translator = Translator.load(small_model, "cpu")
    draws = SearchOptions(sample=True, n_best=8, top_k=5, max_length=12)
    text = "The dog sees the cat.  The cat!"
    (every,) = translator.stream([text], options=draws)
    planner = replace(translator.planner(options=draws), choose=MinimumBayesRisk(keep))
    (chosen,) = translator.run(planner, [text])
    assert not isinstance(every, Failure) and not isinstance(chosen, Failure)
    for before, after in zip(every.sentences, chosen.sentences, strict=True):
        candidates = [each.text for each in before.alternatives]
        assert len(candidates) == 8
        expected = dict(zip(candidates, expected_chrf(candidates), strict=True))
        assert [each.text for each in after.alternatives] == sorted(expected, key=lambda text: -expected[text])[:keep]
    assert chosen.text == "  ".join(each.text for each in chosen.sentences) != every.text
