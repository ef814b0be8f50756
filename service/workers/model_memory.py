"""Memory budget of the loaded models: models are loaded on demand, and the models that are used least are unloaded."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

import structlog

from mt.errors import ModelError
from service.workers.pool import WorkerPool

MEGABYTE = 1_000_000
USE_SECONDS = 60.0  # time after which a use counts 1/e of a new one
CALLER_USES = 5.0  # recent uses by one caller that count: a busy caller has no larger share than others


@dataclass(frozen=True)
class MemoryTimes:
    """Times in seconds, and the clock that measures them."""

    busy: float = 10.0  # for which a model in use stays loaded, so that loading does not take up all time
    pause: float = 1.0  # after a request for which a model counts as in use; `busy` after one of another caller
    check: float = 0.05  # between two checks whether a model can be unloaded
    clock: Callable[[], float] = time.monotonic


@dataclass
class _Usage:
    """Use of a model by each caller: (time of the last use, number of uses at that time). Older uses count less."""

    loaded: float  # time of the last load
    uses: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, caller: str, now: float) -> None:
        self.uses = {other: use for other, use in self.uses.items() if _recent(use, now) > 0.01}
        self.uses[caller] = now, _recent(self.uses.get(caller, (now, 0.0)), now) + 1

    def recent(self, now: float) -> float:
        return sum(min(_recent(use, now), CALLER_USES) for use in self.uses.values())

    def last(self, callers: Collection[str] = ()) -> float:
        """Return the time of the last use by a caller that is not in `callers`; -inf if there is none."""
        return max((time for caller, (time, _) in self.uses.items() if caller not in callers), default=-math.inf)


def _recent(use: tuple[float, float], now: float) -> float:
    last, uses = use
    return uses * math.exp((last - now) / USE_SECONDS)


class ModelMemory:
    """Memory of models, which are loaded and unloaded, one at a time, so that the loaded ones fit into the budget.

    The model with the fewest recent uses is unloaded first. Rarely used models therefore replace one another, and not a
    model that is used all the time. A model in use is not unloaded for some time after its load, so that callers of
    different models have equal shares of the time. Its workers finish their texts before it is unloaded.
    """

    def __init__(
        self, budget: int | None, start_task: Callable[[Coroutine[Any, Any, None]], object], times: MemoryTimes
    ) -> None:
        """`budget` is the limit in bytes, or None. `start_task` starts a coroutine in the background."""
        self._budget = budget
        self._start_task = start_task
        self._times = times
        self._usage: dict[WorkerPool, _Usage] = {}
        self._waiting: set[WorkerPool] = set()
        self._one_at_a_time = asyncio.Lock()

    async def open(self, model: WorkerPool, load: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Load the new model `model` by calling `load`. First unload other models if the budget requires it.

        Raises: ModelError if the model cannot be loaded, or needs more memory than the budget.
        """
        if self._budget is None:
            await load()
            return
        usage = self._usage[model] = _Usage(loaded=self._times.clock())
        async with self._one_at_a_time:
            await self._make_room(model)
            await load()
            usage.loaded = self._times.clock()
            if model.memory > self._budget:
                raise ModelError(
                    f"{model.name} needs {model.memory // MEGABYTE} MB of memory; the setting model_memory_mb is "
                    f"{self._budget // MEGABYTE}"
                )
            await self._make_room(model)  # `memory` was an estimate before the model was loaded

    def use(self, model: WorkerPool, caller: str = "") -> None:
        """Record that a request of a caller uses a model. If the model is not loaded, load it in the background."""
        if self._budget is not None:
            self._usage[model].add(caller, self._times.clock())
            self.need(model)

    def need(self, model: WorkerPool) -> None:
        """Load a model in the background if it is not loaded, because requests wait for it."""
        if self._budget is None:
            return
        if not model.loaded and model not in self._waiting:
            self._waiting.add(model)
            self._start_task(self._load(model))

    def forget(self, model: WorkerPool) -> None:
        """Remove a model that has been closed."""
        self._usage.pop(model, None)

    async def _load(self, model: WorkerPool) -> None:
        try:
            async with self._one_at_a_time:
                if not await model.can_load():
                    return
                await self._make_room(model)
                if usage := self._usage.get(model):  # else the model was removed while it waited
                    begun = self._times.clock()
                    await model.load()
                    usage.loaded = self._times.clock()
                    seconds = round(usage.loaded - begun, 3)
                    if model.ready:
                        structlog.get_logger().info("model loaded on demand", model=model.name, seconds=seconds)
        finally:
            self._waiting.discard(model)

    async def _make_room(self, model: WorkerPool) -> None:
        """Unload other models until `model` fits into the budget together with those that stay loaded.

        Return early if `model` is removed meanwhile.
        """
        assert self._budget is not None
        while model in self._usage:
            others = [other for other in self._usage if other.loaded and other is not model]
            if not others or sum(other.memory for other in others) + model.memory <= self._budget:
                return
            least = min(others, key=self._rank)
            times, usage, waiting = self._times, self._usage[least], self._usage[model].uses
            now = times.clock()
            in_use = least.busy or now - usage.last() < times.pause or now - usage.last(waiting) < times.busy
            if in_use and now - usage.loaded < times.busy:
                await asyncio.sleep(times.check)
            else:
                await least.unload()
                structlog.get_logger().info("model unloaded", model=least.name, reason="memory")

    def _rank(self, model: WorkerPool) -> tuple[float, float]:
        """Return the sort key of a model. The model with the lowest key is unloaded first.

        All requests in progress together count as one use.
        """
        usage = self._usage[model]
        return usage.recent(self._times.clock()) + model.busy, max(usage.last(), usage.loaded)
