"""Packing of tensors of several types into one tensor, so that one copy moves all data of a sentence."""

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

WORD = 8
"""Number of bytes of an int64. Each table begins at a multiple of this number."""


class PackedTables:
    """Layout of one int64 tensor [B, words] that contains several tensors [B, ...] ("tables") of several types."""

    def __init__(self, examples: Mapping[str, Tensor]) -> None:
        """Create a layout for tables with the names, types and shapes of `examples`.

        The size of dimension 0 may differ from that in `examples`.
        """
        self._parts: dict[str, tuple[int, int, Tensor]] = {}
        self.words = 0
        for name, table in examples.items():
            begin, size = self.words, prod(table.shape[1:]) * table.element_size()
            self.words += -(-size // WORD)
            self._parts[name] = begin, self.words, table

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Return the tables by name, as views of `rows` [B, words]."""
        views = {}
        for name, (begin, end, like) in self._parts.items():
            flat = rows[:, begin:end].view(like.dtype)[:, : prod(like.shape[1:])]
            views[name] = flat.view(len(rows), *like.shape[1:])
        return views

    def pack(self, tables: Mapping[str, Tensor]) -> Tensor:
        """Pack tables on the host into int64 [B, words].

        If a table is smaller than its example, the remaining values are zero.
        """
        rows = torch.zeros(len(next(iter(tables.values()))), self.words, dtype=torch.int64)
        for name, view in self.views(rows).items():
            copy_part(tables[name], view)
        return rows


def copy_part(source: Tensor, target: Tensor) -> None:
    """Copy `source` to `target`, both [B, ...], as far as their shapes overlap.

    Other entries of `target` do not change.
    """
    part = common_part(source, target)
    target[part].copy_(source[part])


def common_part(a: Tensor, b: Tensor) -> tuple[slice, ...]:
    """Return slices for both tensors: all of dimension 0, and the smaller of the two sizes in each other dimension."""
    return (slice(None), *map(slice, map(min, a.shape[1:], b.shape[1:])))
