"""What a search asks next-token scores of: a model, or an ensemble."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds


class DecodingState(Protocol):
    """What a scorer keeps between steps: B sentences x K beams = R rows, row r belonging to sentence r // K."""

    def reorder(self, rows: Tensor) -> None:
        """Row r continues from row rows[r], int64 [R], which is of the same sentence."""

    def select(self, sentences: Tensor) -> None:
        """Keep only these sentences, int64 [B'], with all their beams."""

    def extend(self, other: Self) -> None:
        """Append the other's sentences, which may be at another step."""


State = TypeVar("State", bound=DecodingState)


class Scorer(Protocol[State]):
    """Scores of the next token, step by step."""

    @property
    def special(self) -> SpecialIds: ...

    @property
    def device(self) -> torch.device: ...

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> State:
        """Read B sources, ids that end with EOS; each is to have `beams` rows."""

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """Append tokens [R] to the rows; logits or log-probabilities of the next ones, [R, V]."""


class Model(Protocol[State]):
    """The part of an encoder-decoder that scoring needs. Masks are True where a token is real."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """[B, S] -> memory [B, S, D]."""

    def start(self, memory: Tensor, source_mask: Tensor, beams: int) -> State: ...

    def decode_step(self, tokens: Tensor, cache: State) -> Tensor:
        """[R] -> logits [R, V]."""

    def __call__(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """[B, S], [B, S], [B, T] -> logits [B, T, V]."""


@dataclass(frozen=True)
class ModelScorer(Generic[State]):
    """One model. `device` is where its weights are."""

    model: Model[State]
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> State:
        with torch.inference_mode():
            source = padded(sources, self.special.pad, self.device)
            mask = real(sources, self.device)
            return self.model.start(self.model.encode(source, mask), mask, beams)

    def step(self, state: State, tokens: Tensor) -> Tensor:
        with torch.inference_mode():
            return self.model.decode_step(tokens, state)


@dataclass
class EnsembleState:
    """The states of the members of an ensemble, which move together."""

    members: tuple[Any, ...]

    def reorder(self, rows: Tensor) -> None:
        for member in self.members:
            member.reorder(rows)

    def select(self, sentences: Tensor) -> None:
        for member in self.members:
            member.select(sentences)

    def extend(self, other: Self) -> None:
        for member, more in zip(self.members, other.members, strict=True):
            member.extend(more)


@dataclass(frozen=True)
class EnsembleScorer:
    """The average of the probabilities of several scorers with one vocabulary (as in Sutskever et al. 2014)."""

    scorers: tuple[Scorer[Any], ...]

    @property
    def special(self) -> SpecialIds:
        return self.scorers[0].special

    @property
    def device(self) -> torch.device:
        return self.scorers[0].device

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> EnsembleState:
        return EnsembleState(tuple(scorer.start(sources, beams) for scorer in self.scorers))

    def step(self, state: EnsembleState, tokens: Tensor) -> Tensor:
        each = [
            torch.log_softmax(scorer.step(member, tokens), 1, dtype=torch.float32)
            for scorer, member in zip(self.scorers, state.members, strict=True)
        ]
        return torch.stack(each).logsumexp(0) - math.log(len(each))


def padded(sentences: Sequence[Sequence[int]], pad: int, device: torch.device) -> Tensor:
    """B lists of ids -> int64 [B, S]."""
    width = max(map(len, sentences))
    return torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sentences], dtype=torch.int64, device=device)


def real(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """B lists of ids -> bool [B, S], True where `padded` put an id."""
    lengths = torch.tensor([len(ids) for ids in sentences], device=device)
    return torch.arange(max(map(len, sentences)), device=device) < lengths[:, None]
