"""A sentence does not depend on its neighbours, whatever its options and whenever it joins."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.decoding.constraints import Constraints
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.decoding.search import start_search
from mt.errors import RequestError
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
temperatures = st.sampled_from([0.5, 1.0, 2.0])
draws = st.fixed_dictionaries({"sample": st.just(True), "temperature": temperatures, "seed": st.integers(0, 3)})
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
def test_in_any_batch_it_comes_out_the_same(wanted: list[tuple[Ids, Ids, SearchOptions]], data: st.DataObject) -> None:
    scorer = random_scorer(VOCABULARY)
    each = enumerate(wanted)
    alone = {number: decode(scorer, [source], options, [prefix])[0] for number, (source, prefix, options) in each}
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


def test_all_problems_are_told_at_once() -> None:
    wrong: dict[str, Any] = {
        "beam_size": 0, "n_best": 0, "length_penalty": -1.0, "max_length_factor": float("nan"),
        "max_length_offset": -1, "max_length": 0, "min_length": 7, "no_repeat_ngram": -1,
        "temperature": 1e-39, "seed": -1,
    }  # fmt: skip
    with pytest.raises(RequestError) as caught:
        SearchOptions(**wrong)
    assert [name for name in wrong if f"{name} is " not in str(caught.value)] == []


@pytest.mark.parametrize("wrong", [{"n_best": 6}, {"temperature": 0.7}])
def test_options_that_would_have_no_effect_or_no_room_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        SearchOptions(**wrong)
    SearchOptions(sample=True, **wrong)


@pytest.mark.parametrize(
    ("options", "source", "prefix", "longest"),
    [
        (SearchOptions(), 7, 0, 24),
        (SearchOptions(max_length=20), 7, 0, 20),
        (SearchOptions(max_length_factor=0, max_length_offset=0, max_length=9), 7, 4, 5),
        (SearchOptions(max_length_factor=1.5, max_length_offset=1), 3, 0, 5),
    ],
)
def test_the_maximum_length_follows_the_source(options: SearchOptions, source: int, prefix: int, longest: int) -> None:
    assert options.longest(source, prefix) == longest


def test_only_what_is_used_is_done() -> None:
    plain, careful = SearchOptions(), SearchOptions(min_length=3, no_repeat_ngram=2)
    constraints = Constraints.start([5], [plain], [[]], CPU)
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)
    constraints.extend(Constraints.start([5], [careful], [[4]], CPU))
    features = constraints.features
    assert (features.minimum, features.prefix, features.ngram) == (True, True, 2)
    constraints.select(torch.tensor([0]))
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)


def test_every_prefix_that_cannot_be_used_is_named() -> None:
    options = [SearchOptions(), SearchOptions(max_length=2), SearchOptions()]
    with pytest.raises(RequestError) as caught:
        check_prefixes([[5, 3], [5, 5], [5]], options, SpecialIds())
    message = str(caught.value)
    assert "sentence 0" in message and "[3]" in message
    assert "sentence 1" in message and "fewer than max_length, 2" in message
    assert "sentence 2" not in message
