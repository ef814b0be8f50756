"""Weights and JSON of model directories, written and read by safetensors and json themselves."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    save_file({name: tensor.detach().contiguous() for name, tensor in weights.items()}, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    return load_file(path)


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    weights = load_weights(folder / "model.safetensors")
    change(weights)
    save_weights(folder / "model.safetensors", weights)


def edit_json(path: Path, **changes: object) -> None:
    """Change values of an object in a file, which is made if there is none."""
    values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}), encoding="utf-8")
