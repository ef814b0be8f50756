"""Scorer that runs the compiled kernels and returns torch tensors, for comparisons with models in torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds
from mt.kernels.library import CpuBatch, CpuModel
from mt.kernels.structs import scores_only


@dataclass
class CompiledState:
    """Decoding state of a CompiledScorer: a batch in the compiled kernels."""

    batch: CpuBatch

    def reorder(self, rows: Tensor) -> None:
        self.batch.reorder(rows.numpy())

    def select(self, sentences: Tensor) -> None:
        self.batch.select(sentences.tolist())

    def extend(self, other: Self) -> None:
        self.batch.extend(other.batch)


@dataclass(frozen=True)
class CompiledScorer:
    """Scorer that computes the logits of the next tokens in the compiled kernels."""

    model: CpuModel
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> CompiledState:
        batch = CpuBatch(self.model)
        batch.join(sources, [scores_only(beams)] * len(sources))
        return CompiledState(batch)

    def step(self, state: CompiledState, tokens: Tensor) -> Tensor:
        return torch.from_numpy(state.batch.logits(tokens.numpy()))
