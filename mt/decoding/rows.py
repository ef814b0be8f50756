"""What all searches share: tables with a line for each sentence, what comes out, and how a caller drives one.

A batch of B sentences with K rows each has R = B x K rows; row r belongs to sentence r // K.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Hypothesis:
    """A finished candidate: its ids without BOS and EOS, and how probable the model holds it.

    `token_log_probabilities` has one entry a token and a last one for EOS; `log_probability` is their sum, and
    `score` that sum divided by the length penalty: the number by which hypotheses are ranked.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]


class Search(Protocol):
    """A search that owns no loop: feed `tokens` to a scorer, hand its scores to `advance`, until all are finished.

    Sentences may be at different steps. A finished sentence may go on being advanced: its results stay as they are.
    """

    @property
    def tokens(self) -> Tensor:
        """int64 [R]: what to feed next."""

    @property
    def finished(self) -> Tensor:
        """bool [B]."""

    @property
    def failed(self) -> Tensor:
        """bool [B]: met a score that is not a number; such a sentence is finished and has no results."""

    def advance(self, logits: Tensor) -> Tensor | None:
        """One step from [R, V]; int64 [R], the row that each row now continues, or None if each continues itself."""

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        """The hypotheses of these finished sentences, each list best first."""

    def select(self, sentences: Tensor) -> None:
        """Keep only these sentences, int64 [B'], in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of another search of the same kind with as many rows a sentence."""


@dataclass
class SentenceTable:
    """A dataclass whose tensors, and tables, hold one entry a sentence in dimension 0; other fields are shared.

    What lies beyond a sentence's own extent in a further dimension is never read, so it is padded with zeros.
    """

    def select(self, sentences: Tensor) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                setattr(self, field.name, value.index_select(0, sentences))
            elif isinstance(value, SentenceTable):
                value.select(sentences)

    def extend(self, other: Self) -> None:
        for field in fields(self):
            value, more = getattr(self, field.name), getattr(other, field.name)
            if isinstance(value, Tensor):
                sizes = [max(pair) for pair in zip(value.shape[1:], more.shape[1:], strict=True)]
                setattr(self, field.name, torch.cat((_padded(value, sizes), _padded(more, sizes))))
            elif isinstance(value, SentenceTable):
                value.extend(more)


def _padded(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """[B, ...] -> [B, *sizes]."""
    missing = [amount for size, had in zip(sizes, tensor.shape[1:], strict=True) for amount in (size - had, 0)]
    return F.pad(tensor, missing[::-1])
