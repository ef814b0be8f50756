"""Jobs of the benchmark `train`, and the part of a contender that is the same for all libraries.

Like `processes`, this module imports only the standard library. The module of each library imports the library.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from .processes import Stopwatch, answer_jobs


@dataclass(frozen=True)
class TrainTask:
    """Training task of all contenders: model size, batches and learning rates.

    `batches` is an .npz file. Batch n of update u has the arrays source_u_n [B, S], target_u_n [B, T] and
    labels_u_n [B, T], padded with 0, for B pairs, source length S and target length T.
    """

    recipe: str
    prepared: str
    batches: str
    vocabulary: int
    d_model: int
    d_ff: int
    heads: int
    layers: int
    dropout: float
    smoothing: float
    rate: float
    warmup: int
    clip: float

    def rate_of(self, update: int) -> float:
        """Return the learning rate of an update, counted from 1. It rises linearly to `rate`, then remains constant."""
        return self.rate * min(1.0, update / self.warmup)


@dataclass(frozen=True)
class TrainSettings:
    """Setting of a contender."""

    precision: str
    processes: int = 1
    threads: int = 2
    attention: str = "eager"  # transformers only
    device: str = "cpu"  # or cuda


@dataclass(frozen=True)
class TrainSetup:
    """Setup of a contender."""

    task: TrainTask
    settings: TrainSettings


@dataclass(frozen=True)
class TrainResult:
    """Costs of the requested updates.

    `losses` has the loss with label smoothing of each update, summed over its target tokens. `tokens` has the number of
    these tokens.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    losses: Sequence[float]
    tokens: Sequence[int]


class Learner(Protocol):
    """Trainer of a contender, with a model."""

    def learn(self) -> tuple[float, int]:
        """Train one update. Return (loss summed over the target tokens, number of target tokens)."""

    def cpu_seconds(self) -> float:
        """Return the processor time of all processes of this trainer so far, in seconds."""


def run_learner(load: Callable[[TrainTask, TrainSettings], Learner]) -> None:
    """Be a contender of the benchmark `train`. A job is a number of updates; `load` loads the library."""

    def prepare(setup: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
        learner = load(TrainTask(**setup["task"]), TrainSettings(**setup["settings"]))

        def run(updates: int) -> dict[str, Any]:
            watch = Stopwatch(learner.cpu_seconds)
            learned = [learner.learn() for _ in range(updates)]
            costs = watch.costs()
            losses, tokens = zip(*learned, strict=True)
            return asdict(TrainResult(**asdict(costs), losses=losses, tokens=tokens))

        return run

    answer_jobs(prepare)
