"""The search for words against all sentences that there are, and sentences that join others against themselves."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
import torch

from mt.decoding.constrained_beam import ConstrainedBeamSearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.term_constraints import UNLIMITED, TermConstraints
from tests.decoding.conftest import TableScorer, random_scorer

EOS, FIRST = 3, 4
CPU = torch.device("cpu")
Ids = tuple[int, ...]


def wording(
    vocabulary: int,
    needed: dict[Ids, int],
    avoided: Sequence[Ids] = (),
    cues: dict[Ids, Sequence[int]] | None = None,
    joined: Sequence[int] = (),
) -> TermConstraints:
    """Words as lists of ids, each once spelt. An id in `joined` goes on with the word before it."""
    words = [*needed, *avoided]
    nodes = 1 + sum(2 + len(word) for word in words)
    columns = np.asarray([1 + 2 * (id not in joined) + 1 for id in range(vocabulary)], dtype=np.int16)
    relevant = sorted({id for word in words for id in word})
    place = {id: 5 + number for number, id in enumerate(relevant)}
    for id, column in place.items():
        columns[id] = column
    following = np.zeros((nodes, 5 + len(relevant)), dtype=np.int32)
    counts = np.zeros_like(following, dtype=np.bool_)
    proposals, completions = np.zeros((nodes, 1), dtype=np.int32), np.zeros((nodes, 2), dtype=np.int32)
    full = np.zeros(nodes, dtype=np.bool_)
    starts, first = [], 1
    for word in words:
        starts.append(first)
        ends = [3, 4, *(place[id] for id in relevant if id not in joined)]
        for node in range(2 + len(word)):
            row, length = first + node, max(0, node - 1)
            following[row, 1:] = first + 1
            following[row, place[word[0]]] = first + 2
            completions[row, 0] = word[0] if len(word) == 1 else 0
            if length == len(word):
                full[row] = True
                counts[row, ends] = True
            elif length:
                following[row, place[word[length]]] = first + 2 + length
                proposals[row, 0] = word[length]
                completions[row, 1] = word[length] if length + 1 == len(word) else 0
        first += 2 + len(word)
    cued = [list((cues or {}).get(word, ())) for word in words]
    return TermConstraints(
        columns=columns,
        following=following,
        counts=counts,
        proposals=proposals,
        completions=completions,
        full=full,
        begins=np.asarray([[word[0]] if word in needed else [0] for word in words], dtype=np.int32),
        costs=np.zeros((len(words), 1), dtype=np.float32),
        cues=np.asarray([each + [0] * (max(1, *map(len, cued)) - len(each)) for each in [*cued, []]][:-1]),
        starts=tuple(starts),
        needed=(*needed.values(), *[0] * len(avoided)),
        allowed=(*[UNLIMITED] * len(needed), *[0] * len(avoided)),
        endings=(0.0,) * len(words),
    )


def search(scorer: TableScorer, source: Ids, options: SearchOptions, constraints: TermConstraints) -> list[Hypothesis]:
    machine = ConstrainedBeamSearch.start([len(source)], [options], [constraints], [()], SpecialIds(), CPU)
    state = scorer.start([source], options.rows)
    while not machine.finished.all():
        rows = machine.advance(scorer.step(state, machine.tokens))
        assert rows is not None
        state.reorder(rows)
    return machine.results([0])[0]


def sentences(vocabulary: int, longest: int) -> Iterator[Ids]:
    for length in range(longest):
        yield from product(range(FIRST, vocabulary), repeat=length)


def log_probability(table: Callable[[Ids, Ids], list[float]], source: Ids, tokens: Ids) -> float:
    steps = [*tokens, EOS]
    return sum(float(torch.tensor(table(source, tokens[:at])).log_softmax(0)[id]) for at, id in enumerate(steps))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize(
    ("needed", "avoided"),
    [({(4,): 2}, []), ({(4,): 1, (5,): 1}, []), ({(4,): 1}, [(5,)]), ({}, [(4,), (5, 6)]), ({(6,): 1}, [(4, 5)])],
)
def test_a_wide_beam_finds_the_best_of_all_sentences(alpha: float, needed: dict[Ids, int], avoided: list[Ids]) -> None:
    """Three words and at most four tokens: 1 + 3 + 9 + 27 sentences."""
    for seed in range(5):
        scorer, source = random_scorer(7, 1.0), (seed + 7, EOS)
        options = SearchOptions(beam_size=120, n_best=40, length_penalty=alpha, max_length=4)
        found = search(scorer, source, options, wording(7, needed, avoided))

        def fits(tokens: Ids) -> bool:
            pairs = set(pairwise(tokens))
            lacks = any(tokens.count(word[0]) < times for word, times in needed.items())
            return not lacks and not any(word[0] in tokens if len(word) == 1 else word in pairs for word in avoided)

        def score(tokens: Ids, scorer: TableScorer = scorer, source: Ids = source) -> float:
            return float(log_probability(scorer.table, source, tokens) / (len(tokens) + 1) ** alpha)

        every = sorted(((score(tokens), tokens) for tokens in sentences(7, 4) if fits(tokens)), reverse=True)
        assert [each.tokens for each in found] == [tokens for _, tokens in every]
        assert [each.score for each in found] == pytest.approx([score for score, _ in every], rel=1e-4)


def test_whatever_the_model_holds_all_words_are_there() -> None:
    random = Random(12)
    options = SearchOptions(beam_size=12, max_length_factor=0, max_length_offset=20)
    for seed in range(12):
        count = random.randrange(1, 4)
        words = {tuple(random.sample(range(FIRST, 12), random.randrange(1, 4))): 1 for _ in range(count)}
        found = search(random_scorer(12, 3.0), (seed, EOS), options, wording(12, words))
        assert found
        for hypothesis in found:
            for word in words:
                at = range(len(hypothesis.tokens) - len(word) + 1)
                assert any(hypothesis.tokens[place : place + len(word)] == word for place in at), (words, hypothesis)


def test_a_word_comes_where_the_one_that_it_displaces_would() -> None:
    """The model says 4 5 6 and nothing else; 7 is to be there instead of 5, and is improbable everywhere."""

    def scores(source: Ids, tokens: Ids) -> list[float]:
        line = {(): 4, (4,): 5, (4, 5): 6, (4, 7): 6}
        likely = line.get(tokens, EOS)
        return [-math.inf] * 3 + [math.log(0.9 if id == likely else 1e-4) for id in range(EOS, 9)]

    options = SearchOptions(beam_size=6, max_length_factor=0, max_length_offset=8)
    [found] = search(TableScorer(scores), (9, EOS), options, wording(9, {(7,): 1}, [(5,)], {(7,): [5]}))
    assert found.tokens == (4, 7, 6)
    assert found.log_probability > -1.0


def test_what_stands_before_a_word_agrees_with_it() -> None:
    """Of the articles 4 and 5 the model takes 4 before 6, which is displaced; the new word 7 goes with 5."""
    table = {(): {4: 0.6, 5: 0.3}, (4,): {6: 0.9, 7: 1e-6}, (5,): {7: 1e-2, 8: 0.9}}

    def scores(source: Ids, tokens: Ids) -> list[float]:
        following = table.get(tokens, {EOS: 0.99})
        return [-math.inf] * 3 + [math.log(following.get(id, 1e-8)) for id in range(EOS, 9)]

    options = SearchOptions(beam_size=6, max_length_factor=0, max_length_offset=6)
    [found] = search(TableScorer(scores), (9, EOS), options, wording(9, {(7,): 1}, [(6,)], {(7,): [6]}))
    assert found.tokens == (5, 7)


def test_a_word_that_must_come_becomes_no_other_word() -> None:
    """After 5, the model always goes on with 6, which makes another word of it."""
    options = SearchOptions(beam_size=6, max_length_factor=0, max_length_offset=6)

    def scores(source: Ids, tokens: Ids) -> list[float]:
        likely = 6 if tokens[-1:] == (5,) else EOS
        return [-math.inf] * 3 + [math.log(0.9 if id == likely else 0.02) for id in range(EOS, 8)]

    [found] = search(TableScorer(scores), (9, EOS), options, wording(8, {(5,): 1}, joined=[6]))
    assert any(id == 5 and after != 6 for id, after in zip(found.tokens, (*found.tokens[1:], EOS), strict=True))


def test_scores_that_are_no_numbers_fail_the_sentence() -> None:
    scorer = TableScorer(lambda source, tokens: [math.nan] * 8)
    assert search(scorer, (9, EOS), SearchOptions(beam_size=4), wording(8, {(5,): 1})) == []
