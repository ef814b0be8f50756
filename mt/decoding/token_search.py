"""The part that greedy search and beam search have in common: which searches can run together, and their beginning.

Shapes: B sentences, T steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from mt.decoding.constraints import Constraints
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.decoding.scores import length_penalties
from mt.decoding.search_state import SentenceTable


@dataclass
class TokenSearch(SentenceTable):
    """Base of searches over B sentences. Sentences may be at different steps."""

    special: SpecialIds
    constraints: Constraints
    penalty: Tensor  # [B, T + 1] the length penalty of a hypothesis that ends at step t
    steps: Tensor  # [B]

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        prefixes: Sequence[Sequence[int]],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Return a search before its first step. All sentences must have the same number of rows.

        Raises:
            RequestError: A prefix is invalid (see `check_prefixes`).
        """
        check_prefixes(prefixes, options, special)
        assert all(sentence.rows == options[0].rows for sentence in options)
        constraints = Constraints.start(source_lengths, options, prefixes, device)
        width = int(constraints.last.max()) + 2  # includes one unused column, to which finished sentences write
        common = TokenSearch(
            special,
            constraints,
            penalty=length_penalties(options, width, device),
            steps=torch.zeros(len(options), dtype=torch.int64, device=device),
        )
        return cls(**vars(common), **cls._tables(options, common))

    @classmethod
    def _tables(cls, options: Sequence[SearchOptions], common: "TokenSearch") -> dict[str, Any]:
        """Return the tensors of the fields that a subclass adds, by name, before the first step.

        They are on the device of the tensors in `common`.
        """
        raise NotImplementedError
