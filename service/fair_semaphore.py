"""Semaphore that callers acquire in turn."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class FairSemaphore:
    """Limited number of places. Each piece of work holds one place while it runs, and callers take turns."""

    def __init__(self, value: float, per_caller: int = 0) -> None:
        """One caller can hold `per_caller` of the `value` places; by default, all but one if there are several."""
        self._free, self._limit = value, per_caller or max(1, value - 1)
        self._held = Counter[str]()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, caller: str) -> None:
        """Wait until `caller` gets a place. Calls with the same `caller` get places in the order of the calls."""
        if not self._waiting and self._has_place(caller):
            self._take(caller)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._assign()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(caller)
            raise

    async def run(self, caller: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in a place. If this call is cancelled, `work` goes on and keeps the place until its end."""
        await self.acquire(caller)
        task = asyncio.create_task(work())
        self._tasks.add(task)  # the event loop keeps no reference
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self.release(caller))
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # perhaps nobody waits for it
        return await asyncio.shield(task)

    @asynccontextmanager
    async def held(self, caller: str) -> AsyncIterator[None]:
        """Hold a place while the context is open."""
        await self.acquire(caller)
        try:
            yield
        finally:
            self.release(caller)

    def release(self, caller: str) -> None:
        self._free += 1
        self._held[caller] -= 1
        if not self._held[caller]:
            self._held.pop(caller)
        self._assign()

    def _has_place(self, caller: str) -> bool:
        return self._free > 0 and self._held[caller] < self._limit

    def _take(self, caller: str) -> None:
        self._free -= 1
        self._held[caller] += 1

    def _assign(self) -> None:
        for caller in list(self._waiting):
            turns = self._waiting[caller]
            while turns and turns[0].done():  # cancelled
                turns.popleft()
            if turns and self._has_place(caller):
                self._take(caller)
                turns.popleft().set_result(None)
                self._waiting.move_to_end(caller)
            if not turns:
                del self._waiting[caller]
