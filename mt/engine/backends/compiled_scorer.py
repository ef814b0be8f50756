"""Scores of the next tokens from the compiled kernels, for the searches in torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds
from mt.engine.backends.one_thread import one_torch_thread
from mt.engine.backends.torch import SearchBatch, SearchDecoder
from mt.engine.requests import Request
from mt.kernels.library import NO_TOKEN, CpuBatch, CpuModel, SearchParams


@dataclass
class CompiledState:
    """Decoding state of a `CompiledScorer`."""

    batch: CpuBatch

    def reorder(self, rows: Tensor) -> None:
        self.batch.reorder(rows.numpy())

    def select(self, sentences: Tensor) -> None:
        self.batch.select(sentences.tolist())

    def extend(self, other: Self) -> None:
        self.batch.extend(other.batch)


@dataclass(frozen=True)
class CompiledScorer:
    """Scorer that takes the logits of the next tokens from the kernels."""

    model: CpuModel
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> CompiledState:
        batch = CpuBatch(self.model, beams)
        batch.join(sources, [SearchParams(longest=1, shortest=1, n_best=1, first=NO_TOKEN)] * len(sources))
        return CompiledState(batch)

    def step(self, state: CompiledState, tokens: Tensor) -> Tensor:
        return torch.from_numpy(state.batch.logits(tokens.numpy()))


class CompiledSearchBatch(SearchBatch[CompiledState]):
    """A search in torch with the scores of the kernels. Engines in several threads may each run one."""

    def advance(self) -> list[int]:
        with one_torch_thread():
            return super().advance()


def begin(model: CpuModel, requests: Sequence[Request]) -> CompiledSearchBatch:
    """Return the batch of a search in torch, with the scores of the kernels."""
    batch = SearchDecoder(CompiledScorer(model)).begin(requests)
    return CompiledSearchBatch(batch.scorer, batch.search, batch.state)
