"""Cross-entropy with label smoothing."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mt.data.batching import Batch
from mt.model.transformer import Transformer
from mt.tokenizer import PAD


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """The sum over N tokens of the cross-entropy with (1 - e) * one-hot + e / V (Szegedy et al. 2016, section 7).

    logits [N, V], labels [N] -> a scalar, computed in fp32.
    """
    return cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=smoothing)


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """The summed loss of a batch. Logits are computed for real target tokens only, never for padding."""
    memory = model.encode(batch.source, batch.source_mask)
    states = model.decode(batch.target, memory, batch.source_mask)  # [B, T, D]
    real = batch.labels != PAD
    return smoothed_cross_entropy(model.embedding.project(states[real]), batch.labels[real], smoothing)


def precision_context(device: torch.device, precision: str) -> torch.autocast:
    """bf16 autocast, or none."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
