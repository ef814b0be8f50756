"""What a training step costs in floating-point operations, and how many a GPU could do."""

from mt.config import ModelConfig
from mt.data.batching import Batch
from mt.model.transformer import AnyModel, LanguageModel
from mt.tokenizer import PAD

# Dense bfloat16 operations a second, from NVIDIA's data sheets; the first name that a device's name contains counts.
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
    """Operations a second of a GPU at its best, or None if it is not known."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)


def batch_operations(model: AnyModel, batch: Batch) -> float:
    """Of forward and backward over the real tokens of a batch, by a model that translates or a language model."""
    targets = int((batch.labels != PAD).sum())
    if isinstance(model, LanguageModel):
        return language_model_operations(model.config, model.vocabulary_size, targets)
    return training_operations(model.config, model.vocabulary_size, int(batch.source_mask.sum()), targets)


def language_model_operations(config: ModelConfig, vocabulary: int, tokens: int) -> float:
    """`training_operations` of a decoder that attends to nothing but itself."""
    layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff
    return 6.0 * (config.decoder_layers * layer + vocabulary * config.d_model) * tokens


def training_operations(config: ModelConfig, vocabulary: int, source_tokens: int, target_tokens: int) -> float:
    """Of forward and backward over so many real tokens: 6 for each weight that a token meets (Kaplan et al. 2020).

    Attention's own products are left out: they are few at the lengths of sentences.
    """
    square, feed_forward = config.d_model**2, 2 * config.d_model * config.d_ff
    by_source = config.encoder_layers * (4 * square + feed_forward) + config.decoder_layers * 2 * square
    by_target = config.decoder_layers * (6 * square + feed_forward) + vocabulary * config.d_model
    return 6.0 * (by_source * source_tokens + by_target * target_tokens)
