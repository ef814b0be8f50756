"""Beam search against tables made by hand, against all sentences there are, and against a plain reference."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.decoding.beam import BeamSearch
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from tests.decoding.conftest import EOS, A, B, Ids, Table, TableScorer, random_scorer
from tests.decoding.reference import decode

SOURCE = (7, EOS)


def log_probs(table: Table, source: Ids, tokens: Ids) -> list[float]:
    scores: list[float] = torch.tensor(table(source, tokens)).log_softmax(0).tolist()
    return scores


@pytest.mark.parametrize("normalization", list(Normalization))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_a_beam_wider_than_all_sentences_finds_them_all(alpha: float, normalization: Normalization) -> None:
    """With two words and at most four tokens there are 1 + 2 + 4 + 8 sentences."""
    scorer = random_scorer(6)
    options = SearchOptions(beam_size=16, n_best=15, length_penalty=alpha, normalization=normalization, max_length=4)
    [found] = decode(scorer, [SOURCE], options)
    every = []
    for words in (words for length in range(4) for words in product((A, B), repeat=length)):
        steps = [*words, EOS]
        each = [log_probs(scorer.table, SOURCE, words[:at])[token] for at, token in enumerate(steps)]
        base = (5 + len(each)) / 6 if normalization is Normalization.GNMT else len(each)
        every.append((sum(each) / base**alpha, words))
    every.sort(reverse=True)
    assert [hypothesis.tokens for hypothesis in found] == [words for _, words in every]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in every], rel=1e-4)
    assert decode(scorer, [SOURCE], replace(options, n_best=1)) == [found[:1]]


def documented_search() -> Callable[..., list[tuple[float, Ids]]]:
    """The plain `beam_search` of docs/understanding/search.md."""
    page = (Path(__file__).parents[2] / "docs" / "understanding" / "search.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    search: Callable[..., list[tuple[float, Ids]]] = names["beam_search"]
    return search


@pytest.mark.parametrize(("beams", "n_best"), [(1, 1), (2, 2), (3, 1), (5, 5)])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_the_search_equals_the_documented_algorithm(beams: int, n_best: int, alpha: float) -> None:
    scorer = random_scorer(9)
    lengths: dict[str, Any] = {"length_penalty": alpha, "max_length_factor": 1, "max_length_offset": 4}
    options = SearchOptions(beam_size=beams, n_best=n_best, **lengths)
    sources = [(word, word + 1, EOS)[word % 2 :] for word in range(10, 26)]
    for source, found in zip(sources, decode(scorer, sources, options), strict=True):

        def following(tokens: Ids, source: Ids = source) -> dict[int, float]:
            return dict(list(enumerate(log_probs(scorer.table, source, tokens)))[EOS:])  # no special token but EOS

        expected = documented_search()(following, EOS, options.longest(len(source)), beams, options.n_best, alpha)
        assert [(*hypothesis.tokens, EOS) for hypothesis in found] == [tokens for _, tokens in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], rel=1e-4)


def test_the_bound_stops_the_search_when_nothing_can_improve() -> None:
    """Two words of P = 0.05 beside EOS of P = 0.9: without a length penalty one step decides."""
    scorer = TableScorer(lambda source, tokens: [-math.inf] * 3 + [math.log(p) for p in (0.9, 0.05, 0.05)])
    options = SearchOptions(beam_size=4, length_penalty=0, max_length=50)
    assert decode(scorer, [SOURCE], options)[0][0].tokens == ()
    assert scorer.steps == 1
    decode(scorer, [SOURCE], replace(options, n_best=4))
    assert scorer.steps > 3


def test_a_sentence_with_no_way_on_ends_empty() -> None:
    scorer = TableScorer(lambda source, tokens: [0.0] * 4 + [1.0])  # one word, which must not be said twice
    options = SearchOptions(beam_size=2, n_best=2, min_length=5, no_repeat_ngram=1)
    assert decode(scorer, [SOURCE], options) == [[]]
    search = BeamSearch.start([2], [options], [()], SpecialIds(), torch.device("cpu"))
    for _ in range(2):
        search.advance(torch.tensor([[0.0, 0, 0, 0, 1]] * 2))
    assert search.finished.tolist() == [True]


@pytest.mark.parametrize(("first", "n_best", "expected"), [(0.93, 1, (A, A)), (0.91, 1, (B,)), (0.93, 2, (B,))])
def test_much_worse_hypotheses_are_dropped(first: float, n_best: int, expected: Ids) -> None:
    """B would win in the end. At first it is ln(0.93 / 0.07) = 2.59, or ln(0.91 / 0.09) = 2.31, worse than A."""

    def table(source: Ids, tokens: Ids) -> list[float]:
        words = {(): {A: first, B: 1 - first}, (B,): {EOS: 1.0}}.get(tokens, {A: 0.999, EOS: 0.001})
        return [math.log(words[token]) if token in words else -math.inf for token in range(6)]

    options = SearchOptions(beam_size=2, n_best=n_best, max_length=3)
    assert decode(TableScorer(table), [SOURCE], options)[0][0].tokens == expected
