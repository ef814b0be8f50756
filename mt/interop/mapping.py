"""Every weight is placed exactly once, or an error names it: what all converters of this package hold to."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Row:
    """One row of a table: the weights `sources`, joined along their first dimension, become each of `targets`.

    Several sources are a fused matrix (queries, keys and values); several targets are tied.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]


Table = Sequence[Row]


def misplaced(table: Table, sources: Collection[str], targets: Collection[str]) -> Iterator[str]:
    """What is wrong with a table for these weights; nothing, if every one of them stands in it exactly once."""
    for side, names, used in (
        ("the source", sources, Counter(name for row in table for name in row.sources)),
        ("the target", targets, Counter(name for row in table for name in row.targets)),
    ):
        verb = "placed" if side == "the source" else "filled"
        yield from (f"{name} of {side} is not {verb}" for name in names if name not in used)
        yield from (f"{name} is missing in {side}" for name in used if name not in names)
        yield from (f"{name} of {side} is {verb} {times} times" for name, times in used.items() if times > 1)


def place(table: Table, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The targets of a table that `misplaced` finds no fault with; tied ones share a tensor."""
    placed = {}
    for row in table:
        tensors = [weights[name] for name in row.sources]
        joined = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
        placed.update(dict.fromkeys(row.targets, joined))
    return placed
