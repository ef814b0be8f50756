"""The same work in flight is done once, whoever asks for it, and its results are kept for a while."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from service.errors import DeadlineExceeded

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Work = Callable[[Sequence[K]], Coroutine[Any, Any, Sequence[V]]]
"""A result for each key, in order."""


class Flight(Generic[K, V]):
    """One call that works on some keys. When the last of those who wait leaves, it is cancelled."""

    def __init__(self, keys: Sequence[K], task: "asyncio.Task[Sequence[V]]") -> None:
        self.keys = tuple(keys)
        self.task = task
        self.waiters = 0

    @property
    def shares_error(self) -> bool:
        """Whether its error is that of whoever joined it, and not of another text, or of a shorter deadline."""
        return len(self.keys) == 1 and not isinstance(self.task.exception(), DeadlineExceeded)


class SharedWork(Generic[K, V]):
    """Results by key: from the cache, from work in flight, or from work that is started for them.

    Counts what was asked for: `kept` came from the cache, `joined` from the work of others, `begun` is the rest.
    """

    def __init__(self, capacity: int, size: Callable[[K, V], int]) -> None:
        """The cache holds `capacity` in the unit of `size`; 0 is no cache."""
        self.kept = self.joined = self.begun = 0
        self._size = size
        self._cache: LRUCache[K, tuple[V, int]] = LRUCache(capacity, getsizeof=lambda entry: entry[1])
        self._flights: dict[K, Flight[K, V]] = {}

    @property
    def size(self) -> float:
        """Of what the cache holds."""
        return self._cache.currsize

    async def get(self, keys: Sequence[K], work: "Work[K, V]") -> list[V]:
        """A result for each key. `work` is given, together, all that nobody works on, and what is on its way among more
        keys than these: one text shall not wait for somebody's thousand.

        Raises what `work` raises. An error that others met with more keys than one, or with their own deadline, is no
        answer: then `work` is given these keys after all. Cancelled, it leaves the work to those who still wait for it.
        """
        found: dict[K, V] = {}
        held: list[Flight[K, V]] = []
        own: list[Flight[K, V]] = []
        try:
            while missing := self._missing(keys, found):
                lonely = [key for key in missing if not self._may_join(key, len(keys))]
                if lonely:
                    own.append(self._start(lonely, work))
                self.joined += len(missing) - len(lonely)
                flights = list(dict.fromkeys(self._flights[key] for key in missing))
                for flight in flights:
                    if flight not in held:
                        held.append(flight)
                        flight.waiters += 1
                await asyncio.wait([flight.task for flight in flights], return_when=asyncio.FIRST_EXCEPTION)
                for flight in flights:
                    found |= _landed(flight, owned=flight in own)
            return [found[key] for key in keys]
        finally:
            for flight in held:
                self._leave(flight)

    def _may_join(self, key: K, asked: int) -> bool:
        """Whether there is a flight with it that lands no later than ours would: one of at most as many keys."""
        flight = self._flights.get(key)
        return flight is not None and len(flight.keys) <= asked

    def _missing(self, keys: Sequence[K], found: dict[K, V]) -> list[K]:
        """The keys without a result, each once; those in the cache are found now."""
        missing = []
        for key in dict.fromkeys(keys):
            if key in found:
                continue
            entry = self._cache.get(key)
            if entry is None:
                missing.append(key)
            else:
                found[key] = entry[0]
                self.kept += 1
        return missing

    def _start(self, keys: Sequence[K], work: "Work[K, V]") -> Flight[K, V]:
        self.begun += len(keys)
        flight = Flight(keys, asyncio.ensure_future(work(keys)))
        self._flights.update(dict.fromkeys(keys, flight))
        flight.task.add_done_callback(lambda _: self._land(flight))
        return flight

    def _land(self, flight: Flight[K, V]) -> None:
        """No longer in flight. Runs before anybody who waits goes on."""
        self._remove(flight)
        if flight.task.cancelled() or flight.task.exception():
            return
        for key, value in zip(flight.keys, flight.task.result(), strict=True):
            size = self._size(key, value)
            if size <= self._cache.maxsize:
                self._cache[key] = value, size

    def _leave(self, flight: Flight[K, V]) -> None:
        flight.waiters -= 1
        if not flight.waiters and not flight.task.done():
            self._remove(flight)  # at once: who comes now must not wait for what is being cancelled
            flight.task.cancel()

    def _remove(self, flight: Flight[K, V]) -> None:
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]


def _landed(flight: Flight[K, V], owned: bool) -> dict[K, V]:
    """The results of a flight, if it has landed; raises its error if that is ours, too."""
    task = flight.task
    if not task.done() or (not task.cancelled() and task.exception() and not owned and not flight.shares_error):
        return {}
    return dict(zip(flight.keys, task.result(), strict=True))
