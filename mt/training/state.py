"""All that a run needs to go on as if it had never stopped, written aside and renamed.

A checkpoint is a directory, `checkpoints/00001500` for update 1,500:

1. `model.safetensors`: all parameters, by name.
2. `optimizer.safetensors`: Adam's two moments and step count or Muon's momentum, and the exponential average if there
   is one, of those parameters that are trained.
3. `state.json`: counters, the position in the data and their digest, what validation has said so far.

The schedule has no state of its own: the learning rate follows from the counters. Nor has chance: the order of the data
follows from seed and epoch, BPE-dropout and dropout from seed, epoch and batch. So a run can go on with another number
of processes, too.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from mt.checkpoint import check_weights, load_weights, save_weights
from mt.data.batching import Position
from mt.distributed import World
from mt.errors import ModelError, TrainingError, problems
from mt.training.optimizer import kept_by
from mt.training.sharding import gathered, placed
from mt.writing import written_aside


@dataclass
class Progress:
    """Counters of a run."""

    updates: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0  # spent in training, validation included
    skipped: int = 0  # updates skipped in a row
    best_score: float = -1.0  # of the validation set: BLEU or, of a language model, 1 / perplexity
    best_update: int = 0
    stale_validations: int = 0  # since the best
    before: dict[str, float] = field(default_factory=dict)  # of a model that is tuned, what validation said at first


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a model that are not frozen, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


@dataclass(frozen=True)
class RunState:
    """The live objects of a run; `average` is the exponential average of the trained parameters, or empty, and `data`
    the digest of what it learns from."""

    model: nn.Module
    optimizers: Sequence[torch.optim.Optimizer]
    average: dict[str, Tensor]
    progress: Progress
    world: World = field(default_factory=World)
    data: str = ""


def stepped(state: RunState) -> Iterator[tuple[str, nn.Parameter, torch.optim.Optimizer]]:
    """Each trained parameter with its name and its optimizer."""
    names = {parameter: name for name, parameter in trained(state.model).items()}
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield names[parameter], parameter, optimizer


def save_checkpoint(folder: Path, state: RunState) -> Path:
    """Write `folder/<update>`; returns its path. All processes must call this: one writes, what all of them hold."""
    path = folder / f"{state.progress.updates:08d}"
    tensors = {f"average.{name}": tensor for name, tensor in state.average.items()}
    for name, parameter, optimizer in stepped(state):
        tensors |= {f"{key}.{name}": optimizer.state[parameter][key] for key in kept_by(optimizer)}
    weights, tensors = gathered(state.model.state_dict(), state.world), gathered(tensors, state.world)
    if not state.world.leads:
        return path
    with written_aside(path) as aside:
        save_weights(aside / "model.safetensors", weights)
        save_weights(aside / "optimizer.safetensors", tensors)
        values = {"data": state.data, **asdict(state.progress)}
        (aside / "state.json").write_text(json.dumps(values, indent=2), encoding="utf-8")
    return path


def restore_checkpoint(path: Path, state: RunState) -> None:
    """Put a checkpoint into the live objects. A run that had no exponential average begins one with its weights.

    Raises ModelError or TrainingError if a file of it is missing, cut short or foreign, TrainingError if it learnt from
    other data: its place among them, and its vocabulary, would be others.
    """
    try:
        values = json.loads((path / "state.json").read_text(encoding="utf-8"))
        data = values.pop("data", state.data)  # a run that an older release began says nothing
        restored = Progress(**{**values, "position": Position(**values["position"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TrainingError(f"{path / 'state.json'}: not the state of a run ({error})") from error
    if data != state.data:
        raise TrainingError(
            f"{path} has learnt from other text: a corpus of the recipe has changed since; accepted: the files as they "
            "were, or another --run, which a [tuning] can begin with the model of this one"
        )
    weights = load_weights(path / "model.safetensors")
    check_weights(weights, state.model, path / "model.safetensors")
    tensors = load_weights(path / "optimizer.safetensors")
    kept = {f"{key}.{name}" for name, _, optimizer in stepped(state) for key in kept_by(optimizer)}
    if missing := sorted(kept - tensors.keys()):
        raise ModelError(problems(f"{path / 'optimizer.safetensors'} lacks tensors of this model", missing))
    expected = state.model.state_dict()
    state.model.load_state_dict({name: placed(weights[name], expected[name]) for name in expected})
    vars(state.progress).update(vars(restored))
    for name, parameter, optimizer in stepped(state):
        for key in kept_by(optimizer):
            tensor = tensors[f"{key}.{name}"]
            value = tensor.to(parameter.device, copy=True) if key == "step" else placed(tensor, parameter)
            optimizer.state[parameter][key] = value
    for name, average in state.average.items():
        average.copy_(placed(tensors.get(f"average.{name}", weights[name]), average))


def load_average(path: Path) -> dict[str, Tensor]:
    """The exponential average of a checkpoint, by parameter; empty if it has none."""
    tensors = load_weights(path / "optimizer.safetensors")
    kind = "average."
    return {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoints of a run, the oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def prune_checkpoints(folder: Path, keep: int, best_update: int) -> None:
    """Keep the last `keep` and the best; of the others, and of what a kill left half written, nothing."""
    for part in folder.glob(".*.part"):
        shutil.rmtree(part)
    for path in checkpoints(folder)[:-keep]:
        if int(path.name) != best_update:
            shutil.rmtree(path)
