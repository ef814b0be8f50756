"""Weights in safetensors files, written and read by safetensors itself."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    save_file({name: tensor.detach().contiguous() for name, tensor in weights.items()}, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    return load_file(path)
