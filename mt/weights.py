"""Files of named tensors as safetensors, for torch."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from mt.arrays import opened
from mt.errors import ModelError, problems

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
Weights = Mapping[str, Tensor]


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write tensors, by name, to a safetensors file, with the access permissions of its folder."""
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in weights.items()}, path)
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be written ({error}); accepted: a disk with free space") from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors grants access to the owner only


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, on the CPU.

    Raises: ModelError if the file is missing, truncated or of another format.
    """
    with opened(path), safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def check_weights(weights: Mapping[str, Tensor], model: nn.Module, path: Path) -> None:
    """Check that `weights`, which were read from `path`, are valid for `model`.

    Raises: ModelError with a list of all tensors that are missing, unknown, not finite, or of a wrong shape or type.
    """
    expected = model.state_dict()
    wrong = [f"{name} is missing" for name in expected if name not in weights]
    wrong += [f"{name} is unknown" for name in weights if name not in expected]
    for name in expected.keys() & weights.keys():
        if weights[name].shape != expected[name].shape:
            wrong.append(f"{name} has the shape {list(weights[name].shape)}, not {list(expected[name].shape)}")
        elif weights[name].dtype not in FLOATS:
            wrong.append(f"{name} has the type {weights[name].dtype}; accepted: {', '.join(map(str, FLOATS))}")
        elif not bool(weights[name].isfinite().all()):
            wrong.append(f"{name} has values that are not finite")
    if wrong:
        raise ModelError(problems(f"{path} does not fit its config.json", sorted(wrong)))


def average_weights(paths: Sequence[Path], plain: Callable[[Weights], Weights] = dict) -> dict[str, Tensor]:
    """Return the mean of each tensor over several weight files (Vaswani et al. 2017, section 6.1).

    The function `plain` is applied to the weights of each file first. Raises: ModelError if a file cannot be loaded,
    or if its tensors have other names or shapes than those of the first file.
    """
    total = {name: tensor.double() for name, tensor in plain(load_weights(paths[0])).items()}
    for path in paths[1:]:
        weights = plain(load_weights(path))
        if {name: w.shape for name, w in weights.items()} != {name: t.shape for name, t in total.items()}:
            raise ModelError(
                f"{path}: the tensors have other names or shapes than in {paths[0]}; accepted: checkpoints of one model"
            )
        for name, tensor in weights.items():
            total[name] += tensor
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
