"""Number of floating-point operations of a training step, and the peak operations per second of GPUs."""

import re

from mt.data.batching import TrainingBatch
from mt.model.transformer import Transformer

PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "GH200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "A10": 125e12,
    "L4": 121e12,
    "T4": 65e12,
}
"""Dense 16-bit operations per second, from NVIDIA's data sheets. A GPU has the rate of the first entry whose words are
all words of its name."""


def peak_operations(device_name: str) -> float | None:
    """Return the peak number of 16-bit operations per second of a GPU, or None if it is unknown or a part of a GPU."""
    words = set(re.findall(r"\w+", device_name))
    if "MIG" in words:
        return None
    return next((peak for name, peak in PEAKS.items() if words.issuperset(name.split())), None)


def batch_operations(model: Transformer, batch: TrainingBatch) -> float:
    """Return the number of floating-point operations of a forward and a backward pass over a batch, without padding.

    Each token takes 6 operations for each weight that it is multiplied with (Kaplan et al. 2020). The products of
    queries, keys and values are not counted, because they are a small part at the lengths of sentences.
    """
    config, sources, targets = model.config, int(batch.source_mask.sum()), len(batch.label_indices)
    square = config.d_model**2
    layer = 4 * square + 2 * config.d_model * config.d_ff  # without cross-attention
    products = (config.decoder_layers * layer + model.vocabulary_size * config.d_model) * targets
    products += config.encoder_layers * layer * sources + config.decoder_layers * 2 * square * (sources + targets)
    return 6.0 * products
