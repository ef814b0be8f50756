"""Engines that tests control: in a thread, step by step; and in a process, by what they are to do at which sentence."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import Any

import torch
from torch import Tensor

from mt import Translator
from mt.checkpoint import load_model
from mt.decoding.scorer import ModelScorer
from mt.engine.backends.torch import SearchDecoder
from mt.engine.engine import Engine
from service.workers.messages import Deliver, FromWorker, ModelSetup, Ready
from tests.service.thread_transport import ThreadTransport

Sources = Sequence[Sequence[int]]


@dataclass
class Control:
    """What a test holds in its hand: one permit lets all engines together take one step."""

    permits: Semaphore = field(default_factory=lambda: Semaphore(0))
    entered: Semaphore = field(default_factory=lambda: Semaphore(0))
    failed_devices: int = 0  # that many engines lose their accelerator in their next step, for ever
    failing: tuple[int, ...] = ()  # a source that raises
    without_numbers: tuple[int, ...] = ()  # one whose scores are NaN
    scorers: "list[Controlled]" = field(default_factory=list)

    def open(self) -> None:
        self.permits.release(1_000_000)

    def start(self, setup: ModelSetup) -> ThreadTransport:
        """A worker in a thread; in a test's hand from when it is ready."""
        return Watched(setup, self)

    def load(self, setup: ModelSetup) -> "tuple[Translator, Controlled]":
        loaded = load_model(setup.model)
        scorer = Controlled(ModelScorer(loaded.model, device=torch.device("cpu")), self)
        self.scorers.append(scorer)
        return Translator(loaded, engine=Engine(SearchDecoder(scorer))), scorer


@dataclass
class Controlled:
    """A scorer that takes one step for each permit, and may die. The canary is let through."""

    inner: Any
    control: Control
    armed: bool = False
    failed: bool = False  # whether the accelerator raises an error at every step
    sources: list[tuple[int, ...]] = field(default_factory=list)  # after the canary
    rows: int = 0  # of the step that was entered last

    def start(self, sources: Sources, beams: int) -> Any:
        if self.armed:
            self.sources += map(tuple, sources)
        if self.control.failing in sources:
            raise ValueError("poison")
        state = self.inner.start(sources, beams)
        for place, source in enumerate(sources):
            if source == self.control.without_numbers:
                for _, values in state.cross:
                    values[place] = torch.nan
        return state

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        self.rows = len(tokens)
        if self.armed:
            self.control.entered.release()
            self.control.permits.acquire()
        if self.armed and self.control.failed_devices:
            self.control.failed_devices -= 1
            self.failed = True
        if self.failed:
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        scores: Tensor = self.inner.step(state, tokens)
        return scores


class Watched(ThreadTransport):
    def __init__(self, setup: ModelSetup, control: Control) -> None:
        super().__init__(setup, self._load)
        self._control = control

    def _load(self, setup: ModelSetup) -> Translator:
        translator, self._scorer = self._control.load(setup)
        return translator

    def start(self, deliver: Deliver) -> None:
        def heard(messages: Sequence[FromWorker]) -> None:
            if any(isinstance(message, Ready) for message in messages):
                self._scorer.armed = True
            deliver(messages)

        super().start(heard)


@dataclass(frozen=True)
class Rigged:
    """For a ProcessTransport: sentences that kill the process, or that it hangs in; and how long each step takes."""

    kills: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()
    step_seconds: float = 0.0
    loads: Path | None = None  # a line is written here for each time

    def __call__(self, setup: ModelSetup) -> Translator:
        if self.loads:
            with self.loads.open("a") as file:
                file.write(f"{os.getpid()}\n")
        loaded = load_model(setup.model)
        plain = Translator.from_loaded(loaded)
        scorer = Rigging(
            ModelScorer(loaded.model, device=torch.device("cpu")),
            self,
            {request.source for text in self.kills if (request := plain.request(text))},
            {request.source for text in self.hangs if (request := plain.request(text))},
        )
        return Translator(loaded, engine=Engine(SearchDecoder(scorer)))


@dataclass
class Rigging:
    inner: Any
    plan: Rigged
    kills: set[tuple[int, ...]]
    hangs: set[tuple[int, ...]]

    def start(self, sources: Sources, beams: int) -> Any:
        if not self.hangs.isdisjoint(map(tuple, sources)):
            time.sleep(3600)
        if not self.kills.isdisjoint(map(tuple, sources)):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.start(sources, beams)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        time.sleep(self.plan.step_seconds)
        scores: Tensor = self.inner.step(state, tokens)
        return scores
