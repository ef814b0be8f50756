"""Number of floating-point operations of a training step, and the peak operations per second of GPUs."""

import re

from mt.data.batching import TrainingBatch
from mt.model.transformer import Transformer

# Dense bfloat16 operations a second, from NVIDIA's data sheets. A device has the rate of the first key that ends a
# word of its name.
PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "A10": 125e12,
    "L4": 121e12,
    "T4": 65e12,
}


def peak_operations(device_name: str) -> float | None:
    """Return the peak number of bfloat16 operations per second of a GPU, or None if the GPU is unknown."""
    return next((peak for name, peak in PEAKS.items() if re.search(rf"{name}\b", device_name)), None)


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
