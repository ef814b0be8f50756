"""Checkpoints. A run that resumes from a checkpoint trains the same model as a run without interruption.

The checkpoint of update 1,500 is the directory `checkpoints/00001500`. It is written atomically and contains:

1. `model.safetensors`: all parameters by name.
2. `optimizer.safetensors`: for each trained parameter, Adam's two moments and step count, or Muon's momentum.
3. `state.json`: the fields of `Progress`, such as the position in the data, and the digest of the data.

The states of random generators are not saved: the order of the data depends only on seed and epoch, BPE-dropout and
dropout on seed, epoch and batch. The learning rate depends only on the counters. A run can therefore resume with
another number of processes.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from mt.arrays import Arrays, check_arrays, load_arrays, save_arrays
from mt.config import TrainingConfig
from mt.data.batching import Position
from mt.errors import ModelError, TrainingError, problems
from mt.files import atomic_folder
from mt.training.optimizer import state_keys


@dataclass
class Progress:
    """Progress of a run: counters, position in the data, and scores."""

    updates: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0  # time of training and validation
    measured_from: float = 0.0  # value of `seconds` when the measurement of the time of updates began
    planned_updates: int = 0  # estimate of the updates that fit into the recipe's limits; 0 before the estimate is made
    skipped: int = 0  # number of consecutive skipped updates
    best_score: float = -1.0  # BLEU on the validation set
    best_update: int = 0
    stale_validations: int = 0  # number of validations since the best score
    before: dict[str, float] = field(default_factory=dict)  # metrics of the model to tune, before training


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return all parameters of `model` that are not frozen, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


@dataclass(frozen=True)
class RunState:
    """The objects of a run that a checkpoint saves and restores.

    `data` is the digest of the prepared data.
    """

    model: nn.Module
    optimizers: Sequence[torch.optim.Optimizer]
    progress: Progress
    data: str = ""


def stepped(state: RunState) -> Iterator[tuple[str, nn.Parameter, torch.optim.Optimizer]]:
    """Yield (name, parameter, optimizer) for each parameter that an optimizer updates."""
    names = {parameter: name for name, parameter in trained(state.model).items()}
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield names[parameter], parameter, optimizer


def save_checkpoint(folder: Path, state: RunState) -> Path:
    """Write the checkpoint of the current update, and return its path, which is below `folder`."""
    path = folder / f"{state.progress.updates:08d}"
    tensors: dict[str, Tensor] = {}
    for name, parameter, optimizer in stepped(state):
        tensors |= {f"{key}.{name}": optimizer.state[parameter][key] for key in state_keys(optimizer)}
    with atomic_folder(path) as aside:
        for name, values in (("model", state.model.state_dict()), ("optimizer", tensors)):
            save_arrays(aside / f"{name}.safetensors", {key: value.cpu().numpy() for key, value in values.items()})
        progress = {"data": state.data, **asdict(state.progress)}
        (aside / "state.json").write_text(json.dumps(progress, indent=2), encoding="utf-8")
    return path


def restore_checkpoint(path: Path, state: RunState) -> None:
    """Load a checkpoint into `state`.

    Raises: ModelError or TrainingError if a file is missing, truncated or of another model; TrainingError if the
    prepared data have changed since the checkpoint was written, because the position in the data is then not valid.
    """
    try:
        values = json.loads((path / "state.json").read_text(encoding="utf-8"))
        data = values.pop("data")
        restored = Progress(**{**values, "position": Position(**values["position"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TrainingError(f"{path / 'state.json'} is not a valid state of a training run ({error})") from error
    if data != state.data:
        raise TrainingError(
            f"{path} was trained on other text: a corpus of the recipe has changed since. Restore the former files, "
            "or start a new run with another --run; with [tuning], it can begin with the model of this run"
        )
    expected = state.model.state_dict()
    arrays = load_arrays(path / "model.safetensors")
    check_arrays(arrays, {name: tuple(tensor.shape) for name, tensor in expected.items()}, path / "model.safetensors")
    tensors = as_tensors(load_arrays(path / "optimizer.safetensors"))
    needed = {f"{key}.{name}" for name, _, optimizer in stepped(state) for key in state_keys(optimizer)}
    if missing := sorted(needed - tensors.keys()):
        raise ModelError(problems(f"{path / 'optimizer.safetensors'} lacks tensors of this model", missing))
    state.model.load_state_dict(as_tensors(arrays))
    vars(state.progress).update(vars(restored))
    for name, parameter, optimizer in stepped(state):
        for key in state_keys(optimizer):
            optimizer.state[parameter][key] = tensors[f"{key}.{name}"].to(parameter.device, copy=True)


def as_tensors(arrays: Arrays) -> dict[str, Tensor]:
    """Return `arrays` as tensors that share their memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def checkpoints(folder: Path) -> list[Path]:
    """Return the paths of all checkpoints in `folder`, the oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def prune_checkpoints(folder: Path, config: TrainingConfig, best_update: int) -> None:
    """Remove checkpoints except the newest `config.keep_checkpoints` and that of `best_update`. Remove incomplete ones.

    A checkpoint that was written because of the time, or at a stop, is kept only while it is the newest one: which
    checkpoints are averaged depends on no clock.
    """
    for part in folder.glob(".*.part"):
        shutil.rmtree(part)
    *earlier, newest = checkpoints(folder)
    intervals = (config.save_every, config.validate_every)
    planned = [path for path in earlier if any(int(path.name) % interval == 0 for interval in intervals)]
    for path in {*earlier}.difference([*planned, newest][-config.keep_checkpoints :]):
        if int(path.name) != best_update:
            shutil.rmtree(path)
