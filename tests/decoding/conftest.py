"""A scorer whose logits are a function of the source and of the tokens so far, and of nothing else."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds

Ids = tuple[int, ...]
Table = Callable[[Ids, Ids], list[float]]
"""Source and tokens so far, without BOS -> the logits of the next token."""


@dataclass
class TableState:
    beams: int
    sources: list[Ids]  # a sentence
    rows: list[Ids]  # a row: what it was fed

    def reorder(self, rows: Tensor) -> None:
        order = rows.tolist()
        assert [row // self.beams for row in order] == [row // self.beams for row in range(len(self.rows))]
        self.rows = [self.rows[row] for row in order]

    def select(self, sentences: Tensor) -> None:
        kept = sentences.tolist()
        self.sources = [self.sources[sentence] for sentence in kept]
        self.rows = [self.rows[sentence * self.beams + beam] for sentence in kept for beam in range(self.beams)]

    def extend(self, other: "TableState") -> None:
        self.sources += other.sources
        self.rows += other.rows


@dataclass
class TableScorer:
    table: Table
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    steps: int = 0

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> TableState:
        return TableState(beams, [tuple(source) for source in sources], [()] * (len(sources) * beams))

    def step(self, state: TableState, tokens: Tensor) -> Tensor:
        self.steps += 1
        assert tokens.shape == (len(state.rows),)
        state.rows = [(*row, token) for row, token in zip(state.rows, tokens.tolist(), strict=True)]
        assert all(row[0] == self.special.bos for row in state.rows)
        sources = [source for source in state.sources for _ in range(state.beams)]
        return torch.tensor([self.table(source, row[1:]) for source, row in zip(sources, state.rows, strict=True)])


EOS, A, B = 3, 4, 5


def table_by_hand(source: Ids, tokens: Ids) -> list[float]:
    """The greedy start A (0.6) leads to poor ends; B (0.4) ends well.

    P(A A) = 0.6 * 0.5 * 0.9 = 0.27, P(B) = 0.4 * 0.9 = 0.36, P(A B) = 0.6 * 0.3 * 0.9 = 0.162.
    """
    table = {
        (): {A: 0.6, B: 0.4},
        (A,): {A: 0.5, B: 0.3, EOS: 0.2},
        (B,): {EOS: 0.9, A: 0.1},
        (A, A): {EOS: 0.9, B: 0.1},
        (A, B): {EOS: 0.9, B: 0.1},
    }
    following = table.get(tokens, {EOS: 1.0})
    return [math.log(following[token]) if token in following else -math.inf for token in range(6)]


def random_table(vocabulary: int, spread: float = 2.0) -> Table:
    def table(source: Ids, tokens: Ids) -> list[float]:
        random = Random(repr((source, tokens)))
        return [random.gauss(0, spread) for _ in range(vocabulary)]

    return table


def random_scorer(vocabulary: int, spread: float = 2.0) -> TableScorer:
    return TableScorer(random_table(vocabulary, spread))
