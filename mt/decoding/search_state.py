"""The interface of a search, and the base class of tables with one entry for each sentence.

Shapes: B sentences, K rows per sentence, R = B x K rows (row r belongs to sentence r // K), V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from mt.decoding.hypothesis import Hypothesis


class Search(Protocol):
    """A search that the caller advances step by step.

    Until all sentences are finished, the caller computes scores for the tokens that follow `tokens`, and passes them to
    `advance`. Sentences may be at different steps. `advance` does not change the results of a finished sentence. A
    sentence with a NaN score is finished and has no results.
    """

    @property
    def tokens(self) -> Tensor:
        """Newest token of each row, int64 [R]: the next input of the model."""

    @property
    def finished(self) -> Tensor:
        """Bool tensor [B], True for each sentence whose search has finished."""

    def advance(self, logits: Tensor) -> Tensor | None:
        """Choose the next token of each row by `logits` [R, V].

        Returns int64 [R]: row r now continues the tokens of row result[r]. None means that each row continues its own
        tokens.
        """

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of these finished sentences, best first."""

    def select(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices, int64 [B'], in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of `other`, a search of the same class with the same number of rows per sentence."""


@dataclass
class SentenceTable:
    """Base of dataclasses whose tensors have one entry for each sentence, in dimension 0.

    A field can also be a nested SentenceTable. Fields of other types are the same for all sentences. `extend` pads the
    other dimensions of the smaller tensors with zeros, which are never read.
    """

    def select(self, sentences: Tensor) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                setattr(self, field.name, value.index_select(0, sentences))
            elif isinstance(value, SentenceTable):
                value.select(sentences)
        self._update()

    def extend(self, other: Self) -> None:
        for field in fields(self):
            value, added = getattr(self, field.name), getattr(other, field.name)
            if isinstance(value, Tensor):
                sizes = [max(pair) for pair in zip(value.shape[1:], added.shape[1:], strict=True)]
                setattr(self, field.name, torch.cat((_padded(value, sizes), _padded(added, sizes))))
            elif isinstance(value, SentenceTable):
                value.extend(added)
        self._update()

    def _update(self) -> None:
        """Recompute the fields that depend on which sentences are in the table."""


def _padded(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Pad `tensor` [B, ...] with zeros to [B, *sizes]."""
    missing = [amount for size, old in zip(sizes, tensor.shape[1:], strict=True) for amount in (size - old, 0)]
    return F.pad(tensor, missing[::-1])
