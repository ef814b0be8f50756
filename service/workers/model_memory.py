"""Budget for the memory of loaded models: loads models on demand, and unloads those that were used least recently."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import structlog

from mt.errors import ModelError

MEGABYTE = 1_000_000
BUSY_SECONDS = 10.0  # time for which a model with requests stays loaded, so that loading does not take up all time
CHECK_SECONDS = 0.05  # time between two checks whether a model can be unloaded


class LoadableModel(Protocol):
    """The part of service.workers.pool.WorkerPool on which the budget depends."""

    name: str
    memory: int

    @property
    def loaded(self) -> bool: ...

    @property
    def busy(self) -> bool: ...

    async def load(self) -> None: ...

    async def unload(self) -> None: ...


class ModelMemory:
    """Loads and unloads models, one at a time, so that the loaded models fit into the budget.

    A model without requests is unloaded before a model with requests. A model with requests is unloaded only if it has
    been loaded for BUSY_SECONDS; it first finishes the texts that its workers have.
    """

    def __init__(self, budget: int | None, start_task: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Make an empty memory with a budget in bytes; None stands for no limit."""
        self.loads = 0  # loads on demand
        self._budget = budget
        self._start_task = start_task
        self._used: dict[LoadableModel, float] = {}  # time of the last use
        self._loaded: dict[LoadableModel, float] = {}  # time of the last load
        self._waiting: set[LoadableModel] = set()
        self._one_at_a_time = asyncio.Lock()

    async def open(self, model: LoadableModel, open: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Load a new model by `open`, after other models have been unloaded to make room for it.

        Raises: ModelError if the model cannot be loaded, or needs more memory than the budget.
        """
        if self._budget is None:
            await open()
            return
        async with self._one_at_a_time:
            await self._make_room(model)
            await open()
            self._used[model] = self._loaded[model] = time.monotonic()
            if model.memory > self._budget:
                raise ModelError(
                    f"{model.name} needs {model.memory // MEGABYTE} MB of memory; the setting model_memory_mb is "
                    f"{self._budget // MEGABYTE}"
                )
            await self._make_room(model)  # `memory` was an estimate before the model was loaded

    def use(self, model: LoadableModel) -> None:
        """Note that a request uses a model, and load the model if it is not loaded."""
        if self._budget is None:
            return
        self._used[model] = time.monotonic()
        if not model.loaded and model not in self._waiting:
            self._waiting.add(model)
            self._start_task(self._load(model))

    def forget(self, model: LoadableModel) -> None:
        """Remove a model that has been closed."""
        self._used.pop(model, None)
        self._loaded.pop(model, None)

    async def _load(self, model: LoadableModel) -> None:
        try:
            async with self._one_at_a_time:
                if model in self._used:
                    await self._make_room(model)
                    begun = time.monotonic()
                    await model.load()
                    self._loaded[model] = time.monotonic()
                    self.loads += 1
                    seconds = round(self._loaded[model] - begun, 3)
                    structlog.get_logger().info("model loaded on demand", model=model.name, seconds=seconds)
        finally:
            self._waiting.discard(model)

    async def _make_room(self, model: LoadableModel) -> None:
        """Unload other models until `model` fits into the budget beside the loaded ones."""
        assert self._budget is not None
        while True:
            others = [other for other in self._used if other.loaded and other is not model]
            if not others or sum(other.memory for other in others) + model.memory <= self._budget:
                return
            now = time.monotonic()
            idle = [other for other in others if not other.busy]
            candidates = idle or [other for other in others if now - self._loaded[other] >= BUSY_SECONDS]
            if candidates:
                oldest = min(candidates, key=self._used.__getitem__)
                await oldest.unload()
                structlog.get_logger().info("model unloaded", model=oldest.name, reason="memory")
            else:
                await asyncio.sleep(CHECK_SECONDS)
