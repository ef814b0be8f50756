"""Checkpoints. A run that resumes from a checkpoint trains the same model as a run without interruption.

The checkpoint of update 1,500 is the directory `checkpoints/00001500`, which is written atomically:

1. `model.safetensors`: all parameters by name.
2. `optimizer.safetensors`: for each trained parameter, Adam's two moments and step count, or Muon's momentum, and the
   exponential average if the run has one.
3. `state.json`: counters, the position in the data, the digest of the data, and the best validation.

Schedule and random generators are not saved. The learning rate depends only on the counters; the order of the data
depends on seed and epoch; BPE-dropout and dropout depend on seed, epoch and batch. A run can therefore resume with
another number of processes.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from mt.arrays import check_arrays, load_arrays
from mt.data.batching import Position
from mt.distributed import World
from mt.errors import ModelError, TrainingError, problems
from mt.files import atomic_folder
from mt.training.optimizer import state_keys
from mt.training.sharding import distribute_like, gather
from mt.weights import load_weights, save_weights


@dataclass
class Progress:
    """Counters of a run."""

    updates: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0  # time of training and validation
    planned_updates: int = 0  # estimate of the updates that fit into the recipe's limits; 0 before the estimate is made
    skipped: int = 0  # number of consecutive skipped updates
    best_score: float = -1.0  # score on the validation set: BLEU or, for a language model, 1 / perplexity
    best_update: int = 0
    stale_validations: int = 0  # number of validations since the best score
    before: dict[str, float] = field(default_factory=dict)  # metrics of the model to tune, before training


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model that are not frozen, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


@dataclass(frozen=True)
class RunState:
    """The objects of a run that a checkpoint saves and restores.

    `average` is the exponential average of the trained parameters, empty without `ema_decay`. `data` is the digest of
    the prepared data.
    """

    model: nn.Module
    optimizers: Sequence[torch.optim.Optimizer]
    average: dict[str, Tensor]
    progress: Progress
    world: World = field(default_factory=World)
    data: str = ""


def stepped(state: RunState) -> Iterator[tuple[str, nn.Parameter, torch.optim.Optimizer]]:
    """Yield the name, the parameter and the optimizer of each trained parameter."""
    names = {parameter: name for name, parameter in trained(state.model).items()}
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield names[parameter], parameter, optimizer


def save_checkpoint(folder: Path, state: RunState) -> Path:
    """Write the checkpoint `folder/<update>` in rank 0 and return its path. All processes must call this function."""
    path = folder / f"{state.progress.updates:08d}"
    tensors = {f"average.{name}": tensor for name, tensor in state.average.items()}
    for name, parameter, optimizer in stepped(state):
        tensors |= {f"{key}.{name}": optimizer.state[parameter][key] for key in state_keys(optimizer)}
    weights, tensors = gather(state.model.state_dict(), state.world), gather(tensors, state.world)
    if not state.world.is_main:
        return path
    with atomic_folder(path) as aside:
        save_weights(aside / "model.safetensors", weights)
        save_weights(aside / "optimizer.safetensors", tensors)
        values = {"data": state.data, **asdict(state.progress)}
        (aside / "state.json").write_text(json.dumps(values, indent=2), encoding="utf-8")
    return path


def restore_checkpoint(path: Path, state: RunState) -> None:
    """Load a checkpoint into `state`. If it has no exponential average, the average begins with the loaded weights.

    Raises: ModelError or TrainingError if a file is missing, truncated or of another model; TrainingError if the
    checkpoint was trained on other data, because its position in the data and its vocabulary are then not valid.
    """
    try:
        values = json.loads((path / "state.json").read_text(encoding="utf-8"))
        data = values.pop("data", state.data)  # older releases did not write it
        restored = Progress(**{**values, "position": Position(**values["position"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TrainingError(f"{path / 'state.json'}: not the state of a run ({error})") from error
    if data != state.data:
        raise TrainingError(
            f"{path} was trained on other text: a corpus of the recipe has changed since. Restore the former files, "
            "or start another --run; its [tuning] can begin with the model of this run"
        )
    expected = state.model.state_dict()
    arrays = load_arrays(path / "model.safetensors")
    check_arrays(arrays, {name: tuple(tensor.shape) for name, tensor in expected.items()}, path / "model.safetensors")
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    tensors = load_weights(path / "optimizer.safetensors")
    needed = {f"{key}.{name}" for name, _, optimizer in stepped(state) for key in state_keys(optimizer)}
    if missing := sorted(needed - tensors.keys()):
        raise ModelError(problems(f"{path / 'optimizer.safetensors'} lacks tensors of this model", missing))
    state.model.load_state_dict({name: distribute_like(weights[name], expected[name]) for name in expected})
    vars(state.progress).update(vars(restored))
    for name, parameter, optimizer in stepped(state):
        for key in state_keys(optimizer):
            tensor = tensors[f"{key}.{name}"]
            value = tensor.to(parameter.device, copy=True) if key == "step" else distribute_like(tensor, parameter)
            optimizer.state[parameter][key] = value
    for name, average in state.average.items():
        average.copy_(distribute_like(tensors.get(f"average.{name}", weights[name]), average))


def load_average(path: Path) -> dict[str, Tensor]:
    """Return the exponential average in a checkpoint, by parameter name; empty if the checkpoint has none."""
    tensors = load_weights(path / "optimizer.safetensors")
    prefix = "average."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def checkpoints(folder: Path) -> list[Path]:
    """Return all checkpoints of a run, the oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def prune_checkpoints(folder: Path, keep: int, best_update: int) -> None:
    """Remove all checkpoints except the last `keep` and the one of `best_update`; also remove incomplete ones."""
    for part in folder.glob(".*.part"):
        shutil.rmtree(part)
    for path in checkpoints(folder)[:-keep]:
        if int(path.name) != best_update:
            shutil.rmtree(path)
