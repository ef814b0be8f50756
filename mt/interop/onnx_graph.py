"""ONNX graphs of a model, which torch exports from the model's code: the encoder, and one step of the decoder.

Shapes: B sentences, K beams per sentence, R = B x K rows, S source length, T target tokens before the step, L decoder
layers, H heads, D d_model, d_k = D / H, V pieces.
"""

import logging
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.export import Dim

from mt.model.cache import DecoderCache
from mt.model.transformer import Transformer

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram

OPSET = 18  # the lowest version that torch exports

MASK = {"source_mask": "bool [B, S]"}
CROSS = {"cross_keys": "float [L, B, H, S, d_k]", "cross_values": "float [L, B, H, S, d_k]"}
CACHE = "float [L, B, K, H, T, d_k]"
GROWN = "float [L, B, K, H, T + 1, d_k]"
ENCODER = ({"source": "int64 [B, S]", **MASK}, CROSS)
DECODER = (
    {"tokens": "int64 [B, K]", "keys": CACHE, "values": CACHE, **CROSS, **MASK},
    {"logits": "float [B, K, V]", "new_keys": GROWN, "new_values": GROWN},
)
"""Types and shapes of the inputs and of the outputs of the decoder graph. ENCODER has those of the encoder graph."""

AXES = {"B": "sentences", "K": "beams", "S": "source_length", "T": "target_length", "T + 1": "target_length + 1"}
"""Names that axes of variable size have in the ONNX files."""

EXAMPLE = {"B": 2, "K": 3, "S": 7, "T": 5}
"""Sizes of the axes of the example inputs for tracing. All are above 1, because torch makes size 1 a constant."""


def encoder(model: Transformer) -> "ONNXProgram":
    """Export the encoder graph, which computes the keys and values of the decoder's cross-attention."""
    return _export(_Encoder(model), *ENCODER)


def decoder(model: Transformer) -> "ONNXProgram":
    """Export the graph of one decoder step, which computes the logits of the next token of each beam."""
    return _export(_DecoderStep(model), *DECODER)


def _export(graph: "_Encoder | _DecoderStep", inputs: Mapping[str, str], outputs: Mapping[str, str]) -> "ONNXProgram":
    config = graph.model.config
    sizes = {"L": config.decoder_layers, "H": config.heads, "d_k": config.d_model // config.heads, **EXAMPLE}
    axes = {axis: Dim(AXES[axis], min=0 if axis == "T" else 1) for axis in EXAMPLE}
    examples, shapes = [], []
    for described in inputs.values():
        kind, _, shape = described.partition(" ")
        names = shape.strip("[]").split(", ")
        dtype = {"int64": torch.int64, "bool": torch.bool, "float": torch.float32}[kind]
        examples.append(torch.ones([sizes[name] for name in names], dtype=dtype))
        shapes.append({number: axes[name] for number, name in enumerate(names) if name in axes})
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                graph.eval(),
                tuple(examples),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=shapes,
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        finally:
            logger.setLevel(level)
    assert program is not None
    return program


class _Encoder(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, source_mask: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.model.encode(source, source_mask)
        attentions = [layer.cross_attention for layer in self.model.decoder.layers]
        pairs = [attention.keys_values(memory) for attention in attentions if attention is not None]
        keys, values = zip(*pairs, strict=True)
        return torch.stack(keys), torch.stack(values)


class _DecoderStep(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Tensor,
        keys: Tensor,
        values: Tensor,
        cross_keys: Tensor,
        cross_values: Tensor,
        source_mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        sentences_beams = tokens.shape
        cross = list(zip(cross_keys.unbind(0), cross_values.unbind(0), strict=True))
        cache = _ArgumentCache(keys, values, cross, source_mask[:, None, None, :])
        logits = self.model.decode_step(tokens.flatten(), cache).unflatten(0, sentences_beams)
        new_keys, new_values = (
            torch.stack([layer.unflatten(0, sentences_beams) for layer in layers]) for layers in cache.new
        )
        return logits, new_keys, new_values


class _ArgumentCache(DecoderCache):
    """Decoder cache whose tensors are inputs of the graph. All rows have the same length."""

    def __init__(self, keys: Tensor, values: Tensor, cross: list[tuple[Tensor, Tensor]], memory_mask: Tensor) -> None:
        """Store the inputs of the graph.

        `keys` and `values` are [L, B, K, H, T, d_k]; `cross` and `memory_mask` are those of DecoderCache.
        """
        self.beams = keys.shape[2]
        self.cross = cross
        self.memory_mask = memory_mask
        self.new: tuple[list[Tensor], list[Tensor]] = ([], [])  # keys and values of each layer, [R, H, T + 1, d_k]
        self._written = (keys, values)

    @property
    def sentences(self) -> int:
        return self._written[0].shape[1]

    def positions(self, limit: int) -> Tensor:
        return torch.full((self.sentences * self.beams, 1), self._written[0].shape[4])

    def mask(self) -> None:
        return None

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        for new, written, column in zip(self.new, self._written, (keys, values), strict=True):
            new.append(torch.cat((written[layer].flatten(0, 1), column), dim=2))
        return self.new[0][-1], self.new[1][-1]

    def advance(self) -> None:
        pass
