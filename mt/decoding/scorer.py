"""Scorers compute the scores of the next tokens, with one model or with an ensemble.

Shapes: B sentences, K beams per sentence, R = B x K rows (row r belongs to sentence r // K), S source length, T target
length, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds
from mt.model.cache import DecoderCache
from mt.model.transformer import Transformer


class DecodingState(Protocol):
    """State of a scorer between two steps of a search: one entry for each of R rows."""

    def reorder(self, rows: Tensor) -> None:
        """Replace the state of each row r by the state of row rows[r], a row of the same sentence.

        `rows` is int64 [R].
        """

    def select(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices, int64 [B'], in this order, with all their beams."""

    def extend(self, other: Self) -> None:
        """Append the sentences of `other`, which may be at another step."""


State = TypeVar("State", bound=DecodingState)


class Scorer(Protocol[State]):
    """Computation of the scores of the next tokens step by step."""

    @property
    def special(self) -> SpecialIds: ...

    @property
    def device(self) -> torch.device: ...

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> State:
        """Encode B sources, each a list of ids that ends with EOS. Return a state with `beams` rows for each source."""

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """Append the newest token of each row, `tokens` [R], and return scores [R, V] of the next tokens.

        The scores are logits or log-probabilities.
        """


@dataclass(frozen=True)
class ModelScorer:
    """Scorer that uses one encoder-decoder. Its weights are on `device`."""

    model: Transformer
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> DecoderCache:
        with torch.inference_mode():
            source = padded(sources, self.special.pad, self.device)
            mask = token_mask(sources, self.device)
            return self.model.start(self.model.encode(source, mask), mask, beams)

    def step(self, state: DecoderCache, tokens: Tensor) -> Tensor:
        with torch.inference_mode():
            return self.model.decode_step(tokens, state)


@dataclass
class EnsembleState:
    """States of all models of an ensemble."""

    members: tuple[Any, ...]

    def reorder(self, rows: Tensor) -> None:
        for member in self.members:
            member.reorder(rows)

    def select(self, sentences: Tensor) -> None:
        for member in self.members:
            member.select(sentences)

    def extend(self, other: Self) -> None:
        for member, added in zip(self.members, other.members, strict=True):
            member.extend(added)


@dataclass(frozen=True)
class EnsembleScorer:
    """Scorer that averages the probabilities of several scorers with the same vocabulary (Sutskever et al. 2014)."""

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
        log_probs = [
            torch.log_softmax(scorer.step(member, tokens), 1, dtype=torch.float32)
            for scorer, member in zip(self.scorers, state.members, strict=True)
        ]
        return torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))


def padded(sentences: Sequence[Sequence[int]], pad: int, device: torch.device) -> Tensor:
    """Return B lists of ids as int64 [B, S]. Shorter lists are filled up with `pad`."""
    width = max(map(len, sentences), default=0)
    return torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sentences], dtype=torch.int64, device=device)


def token_mask(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return the mask of `padded(sentences)`, bool [B, S]: True on ids, False on padding."""
    lengths = torch.tensor([len(ids) for ids in sentences], device=device)
    return torch.arange(max(map(len, sentences)), device=device) < lengths[:, None]
