"""The tree of a search: a model of two words by hand, then random models against the plain search."""

import math
from typing import Any

import pytest

from mt.decoding.options import SearchOptions
from mt.insight.search_record import ALIVE, FINISHED, PRUNED, SearchTree, record_search
from tests.decoding.conftest import EOS, A, B, Ids, TableScorer, random_table, table_by_hand
from tests.decoding.reference import decode

SOURCE = (7, EOS)


def fates(tree: SearchTree) -> dict[Ids, tuple[str, float]]:
    return {tree.tokens(node): (node.fate, round(math.exp(node.total), 3)) for node in tree.nodes[1:]}


def reason(tree: SearchTree, *tokens: int) -> str:
    [node] = [node for node in tree.nodes if tree.tokens(node) == tokens]
    return node.reason


def test_every_fate_by_hand() -> None:
    tree = record_search(TableScorer(table_by_hand), SOURCE, SearchOptions(beam_size=2, length_penalty=0))
    assert fates(tree) == {
        (A,): (ALIVE, 0.6),
        (B,): (ALIVE, 0.4),
        (A, A): (PRUNED, 0.3),  # the search ends
        (A, B): (PRUNED, 0.18),  # the search ends
        (B, A): (PRUNED, 0.04),  # third of the continuations
        (A, EOS): (PRUNED, 0.12),  # fourth of 0.36, 0.3, 0.18, 0.12
        (B, EOS): (FINISHED, 0.36),
    }
    assert tree.stop == "no live hypothesis can exceed the score -1.022: its bound is -1.204"  # log 0.36, log 0.3
    assert reason(tree, A, A) == reason(tree, A, B) == f"the search ended: {tree.stop}"
    assert reason(tree, B, A) == "rank 3 of the continuations: -3.22 is below rank 2, -1.71"  # log 0.04, log 0.18
    assert reason(tree, A, EOS) == "EOS, -2.12, is not among the best 2 of all continuations"
    assert reason(tree, B, EOS) == "EOS is among the best 2 of all continuations; score -1.022, rank 1 of 1 finished"
    assert [tree.tokens(node) for node in tree.nodes if node.is_best] == [(), (B,), (B, EOS)]


OFTEN, MOSTLY = [
    [math.log(value) if value else -math.inf for value in (0, 0, 0, *values)]
    for values in ((0.8, 0.11, 0.09), (0.9, 0.06, 0.04))
]


@pytest.mark.parametrize(
    ("logits", "options", "stop"),
    [
        ([0.0, 0.0, 0.0, -9.0, 2.0, 1.0], {"length_penalty": 0, "max_length": 1}, "the maximum length of 1 tokens"),
        ([0.0, 0.0, 0.0, -9.0, 2.0, 1.0], {"length_penalty": 0, "max_length": 2}, "the maximum length of 2 tokens"),
        ([-math.inf, 0.0, 0.0, 0.0], {}, "no hypothesis has an allowed continuation"),
        (  # EOS has 0.8: the second is finished at step 2, when a live one could only win by length; log 0.11^2 / 2
            OFTEN,
            {"length_penalty": 1, "max_length_offset": 100},
            "2 hypotheses are finished, and at its present length the best live one scores -2.207, not above -0.223",
        ),
        (  # log 0.9 - log 0.06 = 2.7
            MOSTLY,
            {"length_penalty": 1, "max_length_offset": 100},
            "all live hypotheses are more than 2.5 below one that has ended",
        ),
    ],
)
def test_the_end_of_a_search(logits: list[float], options: dict[str, Any], stop: str) -> None:
    tree = record_search(TableScorer(lambda *_: logits), SOURCE, SearchOptions(beam_size=2, **options))
    assert tree.stop == stop
    if length := options.get("max_length"):  # every hypothesis ends, of which there are one and then two
        ends = [node for node in tree.nodes if node.step == length and node.token == EOS]
        assert [node.fate for node in ends] == [FINISHED] * length
        assert ends[0].reason.startswith(f"EOS at {stop}")
    elif not options:
        assert [hypothesis.tokens for hypothesis in tree.hypotheses] == [()]


def test_a_failed_search_has_no_hypotheses() -> None:
    tree = record_search(TableScorer(lambda *_: [math.nan] * 6), SOURCE, SearchOptions(beam_size=2))
    assert tree.hypotheses == []


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("n_best", [1, 5])
def test_random_models(beam_size: int, n_best: int) -> None:
    """The finished nodes, best first, are the results of the search; kept nodes are at most the beam size."""
    options = SearchOptions(beam_size=beam_size, n_best=min(n_best, beam_size), max_length=8)
    for seed in range(5):
        scorer, source = TableScorer(random_table(9)), (seed, EOS)
        tree = record_search(scorer, source, options)
        [expected] = decode(scorer, [source], options)  # with one beam this is greedy search, a class of its own
        assert [hypothesis.tokens for hypothesis in tree.hypotheses] == [hypothesis.tokens for hypothesis in expected]
        assert tree.hypotheses == expected or beam_size == 1
        finished = sorted((node for node in tree.nodes if node.score is not None), key=lambda node: -(node.score or 0))
        best = [(tree.tokens(node)[:-1], node.score) for node in finished[: options.n_best]]
        assert best == [(hypothesis.tokens, hypothesis.score) for hypothesis in tree.hypotheses]
        for step in range(1, tree.nodes[-1].step + 1):
            kept = [node for node in tree.nodes if node.step == step and node.fate == ALIVE]
            pruned = [node for node in tree.nodes if node.step == step and node.reason.startswith("rank")]
            assert len(kept) <= beam_size
            assert min((node.total for node in kept), default=0) >= max((node.total for node in pruned), default=-99)
