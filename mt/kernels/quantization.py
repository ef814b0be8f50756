"""Weights in int8 with one float32 scale for each output row: the numbers that the compiled kernels compute with.

A matrix W [N, M] is stored as Q, int8 [N, M], under its name, and s, float32 [N], under its name followed by `_scale`.
W[n, m] is about Q[n, m] * s[n]. These products are exact in float32, and quantizing them gives the same Q and s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mt.arrays import Array, Arrays

SCALE = "_scale"
LARGEST = 127
SMALLEST_SCALE = 1e-32
"""Rows with a smaller scale are stored as zeros."""


def quantize(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return int8 [N, M] and the scales [N] of a finite weight [N, M], as `quantise_weights` of cpu/linear.hpp does."""
    scale = abs(weight).max(1) / np.float32(LARGEST)
    scale = ((scale.view(np.int32) + 0x80) & ~0xFF).view(np.float32)  # 16 significant bits
    scale[scale <= SMALLEST_SCALE] = 0
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    return np.rint(weight * inverse[:, None]).astype(np.int8), scale


def quantize_weights(weights: Arrays) -> dict[str, Array]:
    """Return the weights of a model with each matrix in int8. Vectors and tables of positions remain in float32."""
    stored: dict[str, Array] = {}
    for name, array in weights.items():
        if array.ndim == 2 and "positions" not in name:
            stored[name], stored[name + SCALE] = quantize(array.astype(np.float32, copy=False))
        else:
            stored[name] = array.astype(np.float32, copy=False)
    return stored


@dataclass(frozen=True)
class Int8Weights(Mapping[str, Array]):
    """The weights in floats, each computed when it is read. `flaws` must have found no fault in `stored`."""

    stored: Arrays

    def __getitem__(self, name: str) -> Array:
        array, scale = self.stored[name], self.stored.get(name + SCALE)
        return array if scale is None else array * scale[:, None]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.stored if not (name.endswith(SCALE) and name.removesuffix(SCALE) in self.stored))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def flaws(stored: Arrays) -> Iterator[str]:
    """Yield a message for each int8 array and each array of scales that `quantize` cannot have written."""
    for name, array in stored.items():
        if array.dtype != np.int8:
            continue
        scale = stored.get(name + SCALE)
        if array.ndim != 2:
            yield f"{name} is int8 with the shape {list(array.shape)}; accepted: a matrix"
        elif scale is None:
            yield f"{name} is int8 and {name + SCALE} is missing"
        elif scale.dtype != np.float32 or scale.shape != array.shape[:1]:
            accepted = f"float32 {list(array.shape[:1])}"
            yield f"{name + SCALE} is {scale.dtype} {list(scale.shape)}; accepted: {accepted}"
        elif not (np.isfinite(scale) & (scale >= 0)).all():
            yield f"{name + SCALE} has values that are negative or not finite"
        elif (array < -LARGEST).any():
            yield f"{name} has the value {int(array.min())}; accepted: -{LARGEST} to {LARGEST}"
