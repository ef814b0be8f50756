"""A sentence does not depend on its neighbours, whatever its options and whenever it joins."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.search import start_search
from tests.decoding.conftest import TableScorer, random_scorer
from tests.decoding.reference import decode

EOS = 3
VOCABULARY = 10
CPU = torch.device("cpu")
Ids = tuple[int, ...]

option_values = st.fixed_dictionaries(
    {
        "length_penalty": st.sampled_from([0.0, 0.6, 1.0]),
        "normalization": st.sampled_from(Normalization),
        "max_length_offset": st.integers(1, 8),
        "min_length": st.sampled_from([0, 0, 4]),
        "no_repeat_ngram": st.sampled_from([0, 0, 1, 2, 3]),
        "max_length": st.sampled_from([12, 30]),
        "max_length_factor": st.just(1.0),
    }
)
draws = st.fixed_dictionaries(
    {"sample": st.just(True), "temperature": st.sampled_from([0.5, 1.0, 2.0]), "seed": st.integers(0, 3)}
)
sentences = st.tuples(
    st.lists(st.integers(4, VOCABULARY - 1), max_size=4).map(lambda ids: (*ids, EOS)),
    st.lists(st.sampled_from([1, 4, 5, 6]), max_size=3).map(tuple) | st.just(()),
)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[Ids, Ids, SearchOptions]]:
    kind, rows, wanted = draw(st.sampled_from(["beam", "sample", "greedy"])), draw(st.integers(2, 4)), []
    for source, prefix in draw(st.lists(sentences, min_size=2, max_size=5)):
        asked: dict[str, Any] = draw(option_values)
        if kind == "beam":
            asked |= {"beam_size": rows, "n_best": draw(st.integers(1, rows))}
        elif kind == "sample":
            asked |= draw(draws) | {"n_best": rows}
        else:
            asked |= {"beam_size": 1}
        wanted.append((source, prefix, SearchOptions(**asked)))
    return wanted


class Run:
    """A search beside a scorer, with the numbers of the sentences in it."""

    def __init__(self, scorer: TableScorer, wanted: list[tuple[Ids, Ids, SearchOptions]], numbers: list[int]) -> None:
        sources, prefixes, options = zip(*(wanted[number] for number in numbers), strict=True)
        self.scorer, self.numbers = scorer, list(numbers)
        self.search = start_search([len(ids) for ids in sources], options, prefixes, SpecialIds(), CPU)
        self.state = scorer.start(sources, options[0].rows)

    def step(self) -> None:
        rows = self.search.advance(self.scorer.step(self.state, self.search.tokens))
        if rows is not None:
            self.state.reorder(rows)

    def extend(self, other: "Run") -> None:
        self.search.extend(other.search)
        self.state.extend(other.state)
        self.numbers += other.numbers

    def settle(self, order: Any) -> dict[int, list[Hypothesis]]:
        """Take the finished sentences out and leave the rest in some order."""
        finished = self.search.finished.tolist()
        done = [place for place, over in enumerate(finished) if over]
        results = dict(zip([self.numbers[place] for place in done], self.search.results(done), strict=True))
        left = order([place for place, over in enumerate(finished) if not over])
        self.search.select(torch.tensor(left, dtype=torch.int64))
        self.state.select(torch.tensor(left, dtype=torch.int64))
        self.numbers = [self.numbers[place] for place in left]
        return results


@settings(max_examples=40)
@given(batches(), st.data())
def test_alone_in_a_batch_or_joined_late_it_comes_out_the_same(
    wanted: list[tuple[Ids, Ids, SearchOptions]], data: st.DataObject
) -> None:
    scorer = random_scorer(VOCABULARY)
    alone = {
        number: decode(scorer, [source], options, [prefix])[0]
        for number, (source, prefix, options) in enumerate(wanted)
    }
    cut = data.draw(st.integers(1, len(wanted) - 1))
    run, late = Run(scorer, wanted, list(range(cut))), Run(scorer, wanted, list(range(cut, len(wanted))))
    for _ in range(data.draw(st.integers(0, 5))):
        run.step()
    for _ in range(data.draw(st.integers(0, 3))):
        late.step()
    found: dict[int, list[Hypothesis]] = {}
    if data.draw(st.booleans()):
        found |= run.settle(lambda left: left)
    run.extend(late)
    while run.numbers:
        for _ in range(3):
            run.step()
        found |= run.settle(lambda left: data.draw(st.permutations(left)))
    assert found == alone
    for number, (_, prefix, options) in enumerate(wanted):
        assert len(found[number]) <= options.n_best
        for hypothesis in found[number]:
            assert hypothesis.tokens[: len(prefix)] == prefix


@pytest.mark.parametrize("options", [SearchOptions(n_best=5), SearchOptions(sample=True, n_best=5)])
@pytest.mark.parametrize(("least", "most"), [(0, 1), (0, 4), (3, 5), (6, 6)])
def test_lengths_are_kept(options: SearchOptions, least: int, most: int) -> None:
    options = replace(options, min_length=least, max_length=most)
    results = decode(random_scorer(VOCABULARY), [(word, EOS) for word in range(4, 14)], options)
    lengths = [len(hypothesis.tokens) + 1 for found in results for hypothesis in found]
    assert all(results) and (min(lengths), max(lengths)) == (max(least, 1), most)


@pytest.mark.parametrize("options", [SearchOptions(), SearchOptions(beam_size=1), SearchOptions(sample=True)])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_fails_its_own_sentence_only(options: SearchOptions, bad: float) -> None:
    good = random_scorer(VOCABULARY)
    options = replace(options, min_length=4)

    def table(source: Ids, tokens: Ids) -> list[float]:
        if source[0] == 9 and len(tokens) == 2:
            return [bad] * VOCABULARY
        return list(good.table(source, tokens))

    sources = [(4, EOS), (9, EOS), (5, EOS)]
    found = decode(TableScorer(table), sources, options)
    assert found[1] == []
    assert [found[0], found[2]] == decode(good, [sources[0], sources[2]], options)
    search = start_search([2], [options], [()], SpecialIds(), CPU)
    search.advance(torch.full((options.rows, VOCABULARY), bad))
    assert (search.finished.tolist(), search.results([0])) == ([True], [[]])
