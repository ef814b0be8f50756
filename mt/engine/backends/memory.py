"""Limits on the requests that run together, computed from the free memory of a device."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from mt.engine.scheduler import Limits
from mt.model.transformer import Transformer

TABLE_BYTES = 64
"""Bytes that a search needs for one token of one row, besides keys and values: token, score and parent."""

RESERVE = 4
"""The keys and values of running requests may take 1 / RESERVE of the free memory.

Sentences that move to another static batch exist twice for a moment. The rest is for idle static batches and
activations.
"""


def device_limits(models: Sequence[Transformer], device: torch.device) -> Limits:
    """Return the limits of an engine for these models.

    On a GPU, the limit `cells` follows from the present free memory.
    """
    limits = Limits.of(device.type)
    if device.type != "cuda":
        return limits
    free, _ = torch.cuda.mem_get_info(device)
    return replace(limits, cells=memory_cells(models, free))


def memory_cells(models: Sequence[Transformer], free: int) -> int:
    """Return the number of cells (mt/engine/memory.py) that fit in `free` bytes. Several models form an ensemble."""
    size = TABLE_BYTES
    for model in models:
        weight = model.embedding.tokens.weight
        size += 2 * model.config.decoder_layers * model.config.d_model * weight.element_size()
    return free // (RESERVE * size)
