"""Tables that map weight names of one format to another; a table uses every weight of both exactly once."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Row:
    """Row of a table: each weight in `targets` is the concatenation of `sources` along the first dimension.

    Several sources form a fused matrix (queries, keys and values); several targets are tied.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]


Table = Sequence[Row]


def parameter_rows(source: str, target: str, kinds: Sequence[str] = ("weight", "bias")) -> Iterator[Row]:
    """Yield the rows of the weight and the bias of a layer, whose names in the two formats are given."""
    return (Row((f"{source}.{kind}",), (f"{target}.{kind}",)) for kind in kinds)


def find_misplaced(table: Table, sources: Collection[str], targets: Collection[str]) -> Iterator[str]:
    """Yield a message for each source or target that is not in the table exactly once."""
    for side, names, used in (
        ("the source", sources, Counter(name for row in table for name in row.sources)),
        ("the target", targets, Counter(name for row in table for name in row.targets)),
    ):
        verb = "placed" if side == "the source" else "filled"
        yield from (f"{name} of {side} is not {verb}" for name in names if name not in used)
        yield from (f"{name} is missing in {side}" for name in used if name not in names)
        yield from (f"{name} of {side} is {verb} {times} times" for name, times in used.items() if times > 1)


def place(table: Table, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the target weights by name. The table must be correct (`find_misplaced`); tied targets share a tensor."""
    placed = {}
    for row in table:
        tensors = [weights[name] for name in row.sources]
        joined = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
        placed.update(dict.fromkeys(row.targets, joined))
    return placed


def drop_tied_copies(
    weights: Mapping[str, Tensor], ties: Sequence[tuple[str, str]]
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights without the second name of each tie, and a message for each tie whose weights differ.

    A file may store tied weights under one name or under both.
    """
    kept, wrong = dict(weights), []
    for name, copy in ties:
        if copy in kept and name not in kept:
            kept[name] = kept[copy]
        elif copy in kept and not torch.equal(kept[name], kept[copy]):
            wrong.append(f"{copy} differs from {name}, although the options tie the two; accepted: equal weights")
    return {name: weight for name, weight in kept.items() if name not in {copy for _, copy in ties}}, wrong
