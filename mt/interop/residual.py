"""Permutation of the residual stream of a model, from interleaved to concatenated sinusoidal positions.

The residual stream is a vector of D numbers: the sum of embeddings, positions and sublayer outputs. A permutation of
its dimensions leaves the outputs of a model unchanged if it is applied to all weights that write, read or normalise
the vector. The permutation here moves all sines of the positions before all cosines.
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

READS = re.compile(r"(tokens|query|key|value|inner)\.weight|embedding\.output")  # [..., D]
WRITES = re.compile(r"(output|outer)\.(weight|bias)|norm\.(weight|bias)")  # [D, ...]
APART = re.compile(r"(query|key|value|inner)\.bias|embedding\.bias")


def sines_first(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the weights of a model with interleaved positions to those of a model with concatenated positions."""
    return {name: _sorted(name, weight) for name, weight in weights.items()}


def _sorted(name: str, weight: Tensor) -> Tensor:
    matches = [pattern.search(name) is not None for pattern in (READS, WRITES, APART)]
    assert sum(matches) == 1, f"{name} matches {sum(matches)} of the three patterns; accepted: one"
    if matches[2]:
        return weight
    axis = weight.dim() - 1 if matches[0] else 0
    size = weight.shape[axis]
    return weight.index_select(axis, torch.cat((torch.arange(0, size, 2), torch.arange(1, size, 2))))
