"""Batches that run in the compiled kernels for CPUs, and the scorer over them for searches that those lack."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis
from mt.engine.batches import Batch, SearchDecoder
from mt.engine.messages import Request
from mt.engine.scheduler import Kind
from mt.kernels.library import CpuBatch, CpuModel, CpuShortlist, Wish
from mt.kernels.shortlist import Shortlist


def wish(options: SearchOptions, source_length: int) -> Wish:
    return Wish(
        longest=options.longest(source_length),
        shortest=options.shortest(source_length),
        n_best=options.n_best,
        gnmt=options.normalization is Normalization.GNMT,
        length_penalty=options.length_penalty,
    )


@dataclass
class CompiledBatch:
    """Beam or greedy search inside the kernels: equal to SearchBatch."""

    batch: CpuBatch

    def advance(self) -> list[int]:
        return self.batch.advance(1)[1]

    def results(self, places: Sequence[int]) -> list[list[Hypothesis]]:
        return [
            [Hypothesis(f.tokens, f.score, f.log_probability, f.each) for f in self.batch.results(place)]
            for place in places
        ]

    def select(self, places: Sequence[int]) -> None:
        self.batch.select(places)

    def extend(self, other: Self) -> None:
        self.batch.extend(other.batch)


@dataclass
class CompiledState:
    """A batch as the state of a scorer."""

    batch: CpuBatch

    def reorder(self, rows: Tensor) -> None:
        self.batch.reorder(rows)

    def select(self, sentences: Tensor) -> None:
        self.batch.select(sentences.tolist())

    def extend(self, other: Self) -> None:
        self.batch.extend(other.batch)


@dataclass(frozen=True)
class CompiledScorer:
    """Next-token scores from the kernels."""

    model: CpuModel
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> CompiledState:
        batch = CpuBatch(self.model, beams)
        batch.join(sources, [Wish(longest=1, shortest=1, n_best=1)] * len(sources))
        return CompiledState(batch)

    def step(self, state: CompiledState, tokens: Tensor) -> Tensor:
        return state.batch.logits(tokens)


@dataclass(frozen=True)
class CompiledDecoder:
    """Begins batches in the kernels where the search is theirs, and else searches over their scores.

    Only the kernels' own search keeps to the shortlist.
    """

    model: CpuModel
    shortlist: CpuShortlist | None = None

    def keeping_to(self, shortlist: Shortlist) -> Self:
        return replace(self, shortlist=CpuShortlist(self.model, shortlist))

    def kind(self, request: Request) -> Kind:
        asked = request.options
        looking = asked.no_repeat_ngram or asked.repetition_penalty != 1
        worded = request.wording is not None
        return Kind(asked.rows, asked.beams, not (asked.sample or request.prefix or looking or worded), worded)

    def begin(self, requests: Sequence[Request]) -> Batch:
        if not self.kind(requests[0]).plain:
            return SearchDecoder(CompiledScorer(self.model)).begin(requests)
        batch = CpuBatch(self.model, requests[0].options.rows, self.shortlist)
        batch.join(
            [request.source for request in requests],
            [wish(request.options, len(request.source)) for request in requests],
        )
        return CompiledBatch(batch)
