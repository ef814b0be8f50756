"""Sinusoidal positions (Vaswani et al. 2017, section 3.5), without torch."""

import math

import numpy as np
from numpy.typing import NDArray

from mt.config import ModelConfig


def interleaved_positions(length: int, d_model: int) -> NDArray[np.float32]:
    """Return PE [length, d_model]: PE(pos, 2i) = sin(a), PE(pos, 2i+1) = cos(a), with a = pos / 10000^(2i/d_model)."""
    angle = _angles(length, d_model, d_model)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(length, -1).astype(np.float32)


def positions_of(config: ModelConfig, length: int) -> NDArray[np.float32]:
    """Return the sinusoidal encodings of the first `length` tokens of a sentence, [length, d_model].

    `config.positions` sets their layout. The first token has position `config.first_position`.
    """
    d_model, first = config.d_model, config.first_position
    if config.positions == "interleaved":
        return interleaved_positions(first + length, d_model)[first:]
    angle = _angles(first + length, d_model, d_model if config.positions == "concatenated" else max(1, d_model - 2))
    return np.concatenate((np.sin(angle), np.cos(angle)), axis=1).astype(np.float32)[first:]


def _angles(length: int, d_model: int, denominator: int) -> NDArray[np.float64]:
    """Return the angles pos / 10000^(2i/denominator) for positions pos < length: [length, d_model / 2]."""
    frequency = np.exp(np.arange(0, d_model, 2, dtype=np.float64) * (-math.log(10000.0) / denominator))
    angles: NDArray[np.float64] = np.arange(length, dtype=np.float64)[:, None] * frequency
    return angles
