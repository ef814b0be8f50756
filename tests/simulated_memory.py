"""Print how many sentences GPUs with little memory decode together, from the sizes of their tensors.

python -m tests.simulated_memory
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.decoding.options import SpecialIds
from mt.engine.backends.memory import memory_cells
from mt.engine.backends.static_batch import StaticBatch
from mt.engine.memory import LEAST
from mt.engine.scheduler import Limits
from mt.kernels.cuda.graphs import Eager
from mt.kernels.cuda.static_decoder import Shape, StaticDecoder
from mt.model.skip_initialization import SkipInitialization
from mt.model.transformer import Transformer

GIB = 1 << 30
CONTEXT = GIB // 2  # assumed for CUDA's context and libraries
BEAMS = 4
MODELS = {
    "base": (ModelConfig.model_validate({"size": "base", "max_length": 1024}), 32_000),
    "big": (ModelConfig.model_validate({"size": "big", "max_length": 1024}), 32_000),
    "NLLB-200 600M": (
        ModelConfig(encoder_layers=12, decoder_layers=12, d_model=1024, d_ff=4096, heads=16, max_length=1024),
        256_206,
    ),
}


@dataclass(frozen=True)
class DecoderBytes:
    """Bytes of a model's decoder: weights, and what a step over a static batch of `shape` needs."""

    model: Transformer
    decoder: StaticDecoder

    @classmethod
    def of(cls, config: ModelConfig, vocabulary: int, dtype: torch.dtype) -> "DecoderBytes":
        usual = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with SkipInitialization(), torch.inference_mode():
                model = Transformer(config, vocabulary).eval()
                return cls(model, StaticDecoder(model))
        finally:
            torch.set_default_dtype(usual)

    @property
    def weights(self) -> int:
        """Bytes of the model, and of the joined weights that steps read."""
        storages: dict[int, int] = {}
        for tensor in tensors(self.decoder):
            storages[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return sum(storages.values())

    def batch(self, shape: Shape) -> int:
        """Bytes of a static batch. The tables of a search do not depend on the model."""
        tiny = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, heads=1)
        small = StaticDecoder(Transformer(tiny, 64))
        tables = StaticBatch(small, shape, True, SpecialIds(), Eager(torch.device("cpu"))).bytes - small.bytes(shape)
        return self.decoder.bytes(shape) + tables

    def step(self, shape: Shape) -> int:
        """Bytes of logits and log-probabilities in float32."""
        return 2 * 4 * shape.slots * shape.rows * self.decoder.vocabulary


def tensors(value: object) -> list[Tensor]:
    """Return the tensors in modules and in nested objects of the project."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part)]
    return tensors(list(vars(value).values())) if type(value).__module__.startswith("mt.kernels") else []


def sentences_together(decoder: DecoderBytes, free: int, tokens: int) -> int:
    """Return how many sentences of up to `tokens` tokens run together, each with a translation of as many."""
    cells = memory_cells([decoder.model], free)
    return max(1, min(Limits.of("cuda").rows // BEAMS, cells // ((BEAMS + 1) * tokens)))


def main() -> None:
    print("| model | numbers | weights | GPU | sentences of 126 tokens | their memory | of 1,022 tokens |")
    print("|---|---|---|---|---|---|---|")
    for name, (config, vocabulary) in MODELS.items():
        for dtype in (torch.bfloat16, torch.float32):
            decoder = DecoderBytes.of(config, vocabulary, dtype)
            for memory in (8, 12, 16, 24):
                free = memory * GIB - CONTEXT - decoder.weights
                short, long = (sentences_together(decoder, free, tokens) for tokens in (LEAST, 8 * LEAST))
                shape = Shape(short, BEAMS, LEAST, LEAST)
                used = decoder.batch(shape) + decoder.step(shape)
                fits = "" if CONTEXT + decoder.weights + 2 * used <= memory * GIB else " (!)"
                numbers = str(dtype).removeprefix("torch.")
                sizes = f"{decoder.weights / 1e9:.2f} GB | {memory} GiB | {short} | {used / 1e9:.2f} GB{fits} | {long}"
                print(f"| {name} | {numbers} | {sizes} |")


if __name__ == "__main__":
    main()
