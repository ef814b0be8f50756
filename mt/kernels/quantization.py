"""Weights in int8 with one float32 scale for each output row: the numbers that the compiled kernels compute with.

A matrix W [N, M] is stored as Q, int8 [N, M], under its name, and s, float32 [N], under its name followed by `_scale`.
W[n, m] is about Q[n, m] * s[n]. These products are exact in float32, and quantizing them gives the same Q and s.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

SCALE = "_scale"
LARGEST = 127
SMALLEST_SCALE = 1e-32
"""Rows with a smaller scale are stored as zeros."""


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 [N, M] and the scales [N] of a finite weight [N, M], as `quantise_weights` of cpu/linear.hpp does."""
    weight = weight.detach().float()
    scale = weight.abs().amax(1) / LARGEST
    scale = ((scale.view(torch.int32) + 0x80) & ~0xFF).view(torch.float32)  # 16 significant bits
    scale = torch.where(scale > SMALLEST_SCALE, scale, 0.0)
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    return (weight * inverse.unsqueeze(1)).round().to(torch.int8), scale


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a model with each matrix in int8. Vectors and tables of positions remain in float32."""
    stored: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.dim() == 2 and "positions" not in name:
            stored[name], stored[name + SCALE] = quantize(tensor)
        else:
            stored[name] = tensor.float()
    return stored


def dequantize_weights(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in floats. `flaws` must have found no fault in `stored`."""
    scales = {name + SCALE for name, tensor in stored.items() if tensor.dtype == torch.int8}
    return {
        name: tensor * stored[name + SCALE].unsqueeze(1) if tensor.dtype == torch.int8 else tensor
        for name, tensor in stored.items()
        if name not in scales
    }


def flaws(stored: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield a message for each int8 tensor, or scales of one, that `quantize` cannot have written."""
    for name, tensor in stored.items():
        if tensor.dtype != torch.int8:
            continue
        scale = stored.get(name + SCALE)
        if tensor.dim() != 2:
            yield f"{name} is int8 with the shape {list(tensor.shape)}; accepted: a matrix"
        elif scale is None:
            yield f"{name} is int8 and {name + SCALE} is missing"
        elif scale.dtype != torch.float32 or scale.shape != tensor.shape[:1]:
            accepted = f"{torch.float32} {list(tensor.shape[:1])}"
            yield f"{name + SCALE} is {scale.dtype} {list(scale.shape)}; accepted: {accepted}"
        elif not bool((scale.isfinite() & (scale >= 0)).all()):
            yield f"{name + SCALE} has values that are negative or not finite"
        elif bool((tensor < -LARGEST).any()):
            yield f"{name} has the value {int(tensor.min())}; accepted: -{LARGEST} to {LARGEST}"
