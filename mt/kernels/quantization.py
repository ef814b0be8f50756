"""Weights in int8 with one float32 scale per output row, as the compiled kernels use them.

A matrix W [N, M] is stored as Q, int8 [N, M], under its name, and s, float32 [N], under its name followed by `_scale`.
W[n, m] is about Q[n, m] * s[n]. These products are exact in float32, so that quantizing them gives Q and s again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mt.arrays import Array, Arrays

SCALE = "_scale"
LARGEST = 127
SMALLEST_SCALE = 1e-32
"""A row whose scale would be smaller is stored as zeros."""
ROWS = 1024  # number of rows that are rounded at a time


def quantize(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize a finite weight [N, M] as `quantise_weights` of cpu/linear.hpp does.

    Return int8 [N, M] and scales [N].
    """
    rounded, scale = np.empty(weight.shape, np.int8), np.empty(len(weight), np.float32)
    for begin in range(0, len(weight), ROWS):  # in blocks of rows, to keep temporary arrays small
        rows = slice(begin, begin + ROWS)
        rounded[rows], scale[rows] = _quantize_rows(weight[rows])
    return rounded, scale


def _quantize_rows(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    scale = abs(weight).max(1) / np.float32(LARGEST)
    scale = ((scale.view(np.int32) + 0x80) & ~0xFF).view(np.float32)  # 16 significant bits
    scale[scale <= SMALLEST_SCALE] = 0
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    return np.rint(weight * inverse[:, None]).astype(np.int8), scale


def float_layout(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and shape of each stored array if weights of these shapes are stored in float32."""
    return {name: ("float32", shape) for name, shape in shapes.items()}


def int8_layout(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and shape of each stored array if weights of these shapes are stored in int8."""
    layout = {}
    for name, shape in shapes.items():
        layout[name] = ("int8" if _is_rounded(name, shape) else "float32", shape)
        if _is_rounded(name, shape):
            layout[name + SCALE] = ("float32", shape[:1])
    return layout


def quantize_weights(weights: Iterable[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    """Yield all weights, with float32 matrices converted to int8 and scales.

    Vectors and position tables stay float32.
    """
    for name, array in weights:
        if _is_rounded(name, array.shape):
            rounded, scale = quantize(array)
            yield from ((name, rounded), (name + SCALE, scale))
        else:
            yield name, array


def _is_rounded(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and "positions" not in name


@dataclass(frozen=True)
class Int8Weights(Mapping[str, Array]):
    """Weights that are stored in int8 and read as float32. Each access computes the array.

    `stored` must have passed `flaws`.
    """

    stored: Arrays

    def __getitem__(self, name: str) -> Array:
        array, scale = self.stored[name], self.stored.get(name + SCALE)
        return array if scale is None else array * scale[:, None]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.stored if not (name.endswith(SCALE) and name.removesuffix(SCALE) in self.stored))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def flaws(stored: Arrays) -> Iterator[str]:
    """Yield a message about each int8 array, or its scales, that `quantize` cannot have written."""
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
        elif array.size and array.min() < -LARGEST:
            yield f"{name} has the value {int(array.min())}; accepted: -{LARGEST} to {LARGEST}"
