"""The inside of a training contender: a process that builds one model, then trains a number of updates when asked.

    SETUP as JSON on stdin, then a number of updates a line; each is answered by a line of JSON.

Like `harness`, it imports neither `mt` nor torch by itself: each `Learner` brings its own library.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from .harness import peak_bytes


@dataclass(frozen=True)
class Course:
    """What all contenders train: a model of this size, from these batches, at these rates.

    `batches` is an .npz file: updates as arrays source_U_B [B, S], target_U_B and labels_U_B [B, T], padded with 0.
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
        """Linear to `rate`, then constant; updates are counted from 1."""
        return self.rate * min(1.0, update / self.warmup)


@dataclass(frozen=True)
class Way:
    """One setting of a contender."""

    precision: str
    processes: int = 1
    threads: int = 2
    attention: str = "eager"  # transformers only


@dataclass(frozen=True)
class Lesson:
    """What some updates took; `losses` are sums over target tokens, an update each, with label smoothing."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    losses: tuple[float, ...]
    tokens: tuple[int, ...]


class Learner(Protocol):
    """One library with one model."""

    def learn(self) -> tuple[float, int]:
        """One more update: its summed loss and its target tokens."""

    def cpu_seconds(self) -> float:
        """Processor time so far, of all its processes."""


def attend(load: Callable[[Course, Way], Learner]) -> None:
    """The life of a training contender; an error is an answer, too."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        setup = json.loads(sys.stdin.readline())
        learner = load(Course(**setup["course"]), Way(**setup["way"]))
        say({"ready": True})
        for line in sys.stdin:
            cpu, begun = learner.cpu_seconds(), time.perf_counter()
            learned = [learner.learn() for _ in range(int(line))]
            lesson = Lesson(
                time.perf_counter() - begun,
                learner.cpu_seconds() - cpu,
                peak_bytes(),
                tuple(loss for loss, _ in learned),
                tuple(tokens for _, tokens in learned),
            )
            say(asdict(lesson))
    except Exception:
        say({"error": traceback.format_exc()})
