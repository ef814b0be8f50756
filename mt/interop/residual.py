"""The order of the numbers in the residual stream, which is ours to choose.

What is added up between the layers, embeddings, positions and the outputs of sublayers, is a vector of D numbers.
Whoever permutes it in all that writes to it, reads from it or normalises it has the same model: heads and inner layers
lie behind projections, and notice nothing. So sines and cosines that stand in turn can be sorted, the sines first.
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

READS = re.compile(r"(tokens|query|key|value|inner)\.weight|embedding\.output")  # [..., D]
WRITES = re.compile(r"(output|outer)\.(weight|bias)|norm\.(weight|bias)")  # [D, ...]
APART = re.compile(r"(query|key|value|inner)\.bias|embedding\.bias")


def sines_first(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dictionary of a model with interleaved positions -> that of the same model with concatenated ones."""
    return {name: _sorted(name, weight) for name, weight in weights.items()}


def _sorted(name: str, weight: Tensor) -> Tensor:
    matches = [pattern.search(name) is not None for pattern in (READS, WRITES, APART)]
    assert sum(matches) == 1, f"{name} is of a kind that is not known here"
    if matches[2]:
        return weight
    axis = weight.dim() - 1 if matches[0] else 0
    size = weight.shape[axis]
    return weight.index_select(axis, torch.cat((torch.arange(0, size, 2), torch.arange(1, size, 2))))
