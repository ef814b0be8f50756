"""Limits of the requests that fit in the memory of a device."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from mt.engine.scheduler import Limits
from mt.model.transformer import AnyModel

TABLE_BYTES = 64
"""Bytes of a cell in the tables of a search: token, score, path."""

RESERVE = 4
"""Free memory in relation to the keys and values of running requests.

Sentences that move exist twice. The remainder is for idle static memory and for activations.
"""


def device_limits(models: Sequence[AnyModel], device: torch.device) -> Limits:
    """Return the limits of requests that models decode together, with the memory that is free on a GPU now."""
    limits = Limits.of(device.type)
    if device.type != "cuda":
        return limits
    free, _ = torch.cuda.mem_get_info(device)
    return replace(limits, cells=memory_cells(models, free))


def memory_cells(models: Sequence[AnyModel], free: int) -> int:
    """Return the number of cells (mt/engine/memory.py) that fit in `free` bytes if `models` decode together."""
    size = TABLE_BYTES
    for model in models:
        weight = model.embedding.tokens.weight
        size += 2 * model.config.decoder_layers * model.config.d_model * weight.element_size()
    return free // (RESERVE * size)
