"""Tables that map the weight names of one format to those of another format.

Each name occurs exactly once in a table.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.config import ModelConfig


@dataclass(frozen=True)
class Row:
    """Row of a table: each weight in `targets` is the concatenation of the weights `sources` along the first dimension.

    Several sources form a fused matrix (queries, keys and values). Several targets are tied, so they get equal weights.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]


Table = Sequence[Row]


def parameter_rows(source: str, target: str) -> Iterator[Row]:
    """Yield the rows for the weight and the bias of a layer. `source` and `target` are its names in the two formats."""
    return (Row((f"{source}.{kind}",), (f"{target}.{kind}",)) for kind in ("weight", "bias"))


def embedding_rows(source: str, target: str, output: str, config: ModelConfig) -> Iterator[Row]:
    """Yield the rows for the embeddings of source and target and for the output layer.

    The three strings are the names of these weights in the other format.
    """
    yield Row((target,), ("embedding.tokens.weight",))
    if not config.tie_source:
        yield Row((source,), ("source_embedding.tokens.weight",))
    if not config.tie_output:
        yield Row((output,), ("embedding.output",))


def find_misplaced(table: Table, sources: Collection[str], targets: Collection[str]) -> Iterator[str]:
    """Yield a message for each name that `table` lacks or contains more than once, or that only `table` contains.

    `sources` and `targets` are the names of all weights in the two formats.
    """
    for side, unused, repeated, names, used in (
        ("the source model", "has no counterpart", "used", sources, Counter(n for row in table for n in row.sources)),
        ("the target model", "gets no weight", "set", targets, Counter(n for row in table for n in row.targets)),
    ):
        yield from (f"{name} of {side} {unused}" for name in names if name not in used)
        yield from (f"{name} is missing in {side}" for name in used if name not in names)
        yield from (f"{name} of {side} is {repeated} {times} times" for name, times in used.items() if times > 1)


def rename_weights(table: Iterable[Row], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights under the target names of `table`. Tied targets share a tensor.

    `find_misplaced` must have found nothing.
    """
    renamed = {}
    for row in table:
        tensors = [weights[name] for name in row.sources]
        joined = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
        renamed.update(dict.fromkeys(row.targets, joined))
    return renamed


def drop_tied_copies(
    weights: Mapping[str, Tensor], ties: Sequence[tuple[str, str]]
) -> tuple[dict[str, Tensor], list[str]]:
    """Remove the second weight of each pair in `ties`. Return the other weights, and a message for each unequal pair.

    A file may store tied weights under one name or under both. If it has only the second name, the weight is returned
    under the first.
    """
    kept, wrong = dict(weights), []
    for name, copy in ties:
        if copy in kept and name not in kept:
            kept[name] = kept[copy]
        elif copy in kept and not torch.equal(kept[name], kept[copy]):
            wrong.append(f"{copy} differs from {name}, although the options tie the two; accepted: equal weights")
    return {name: weight for name, weight in kept.items() if name not in {copy for _, copy in ties}}, wrong
