"""Main loop of a process of the benchmark `train`: it builds one model, and trains a number of updates on request.

The process reads the setup as JSON from stdin, then lines with a number of updates. It answers each line with JSON.

Like `harness`, this module imports neither torch nor modules of `mt` that need it. The module of each contender
imports its library.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from .harness import peak_bytes, take_stdout, write_line


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
class TrainResult:
    """Costs of the requested updates.

    `losses` has the loss with label smoothing of each update, summed over its target tokens. `tokens` has the number of
    these tokens.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    losses: tuple[float, ...]
    tokens: tuple[int, ...]


class Learner(Protocol):
    """Trainer of a contender, with a model."""

    def learn(self) -> tuple[float, int]:
        """Train one update. Return (loss summed over the target tokens, number of target tokens)."""

    def cpu_seconds(self) -> float:
        """Return the processor time of all processes of this trainer so far, in seconds."""


def run_train_contender(load: Callable[[TrainTask, TrainSettings], Learner]) -> None:
    """Run a contender: read the setup and then numbers of updates from stdin. Print results and errors as JSON.

    `load` returns the trainer for a task and a setting.
    """
    answers = take_stdout()
    try:
        setup = json.loads(sys.stdin.readline())
        learner = load(TrainTask(**setup["task"]), TrainSettings(**setup["settings"]))
        write_line(answers, {"ready": True})
        for line in sys.stdin:
            cpu, begun = learner.cpu_seconds(), time.perf_counter()
            learned = [learner.learn() for _ in range(int(line))]
            result = TrainResult(
                time.perf_counter() - begun,
                learner.cpu_seconds() - cpu,
                peak_bytes(),
                tuple(loss for loss, _ in learned),
                tuple(tokens for _, tokens in learned),
            )
            write_line(answers, asdict(result))
    except Exception:
        write_line(answers, {"error": traceback.format_exc()})
