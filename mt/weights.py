"""Reading and writing of torch tensors as safetensors files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from mt.arrays import reading, writing
from mt.errors import ModelError


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write named tensors to a safetensors file. The file gets the access permissions of its folder."""
    with writing(path):
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file by name, on the CPU.

    Raises:
        ModelError: The file is missing, truncated or of another format.
    """
    with reading(path), safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of each tensor over several weight files (Vaswani et al. 2017, section 6.1).

    Raises:
        ModelError: A file cannot be loaded, or its tensors have other names or shapes than those of the first file.
    """
    total = {name: tensor.double() for name, tensor in load_weights(paths[0]).items()}
    for path in paths[1:]:
        weights = load_weights(path)
        if {name: w.shape for name, w in weights.items()} != {name: t.shape for name, t in total.items()}:
            raise ModelError(
                f"{path}: the tensors have other names or shapes than in {paths[0]}; accepted: checkpoints of one model"
            )
        for name, tensor in weights.items():
            total[name] += tensor
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
