"""Cache of translations; equal requests in progress share one computation."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from service.errors import DeadlineExceeded

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Work = Callable[[Sequence[K]], Coroutine[Any, Any, Sequence[V]]]
"""Coroutine function that returns a result for each key, in order."""


class Flight(Generic[K, V]):
    """One call of the work function for some keys, cancelled once nobody waits for the results."""

    def __init__(self, keys: Sequence[K], task: "asyncio.Task[Sequence[V]]") -> None:
        self.keys = tuple(keys)
        self.task = task
        self.waiters = 0

    @property
    def shares_error(self) -> bool:
        """Whether everyone who joined the flight gets its error.

        This is false if another key of the flight or the deadline of its first caller may be the cause of the error.
        """
        return len(self.keys) == 1 and not isinstance(self.task.exception(), DeadlineExceeded)


class TranslationCache(Generic[K, V]):
    """Cache of results by key, which shares work in flight.

    Counters of keys: `hits` were in the cache, `joined` were in a flight of another caller, `misses` needed new work.
    """

    def __init__(self, capacity: int, size: Callable[[K, V], int]) -> None:
        """Make a cache whose entries have at most the total size `capacity`; 0 disables the cache.

        `size` returns the size of an entry (key, result).
        """
        self.hits = self.joined = self.misses = 0  # keys
        self._size = size
        self._cache: LRUCache[K, tuple[V, int]] = LRUCache(capacity, getsizeof=lambda entry: entry[1])
        self._flights: dict[K, Flight[K, V]] = {}

    @property
    def size(self) -> float:
        """Total size of the cached entries."""
        return self._cache.currsize

    async def get(self, keys: Sequence[K], work: "Work[K, V]") -> list[V]:
        """Return a result for each key, in order.

        A key joins a flight that works on it if the flight has no more keys than this call: one text must not wait for
        a thousand texts of another caller. One call of `work` gets all other keys that are not cached. If this
        coroutine is cancelled, flights with other waiting callers continue.

        Raises: the errors of `work`. If a joined flight fails because of another key or its own deadline, its keys are
            passed to `work` instead.
        """
        results: dict[K, V] = {}
        joined: list[Flight[K, V]] = []
        started: list[Flight[K, V]] = []
        try:
            while missing := self._missing(keys, results):
                unshared = [key for key in missing if not self._may_join(key, len(keys))]
                if unshared:
                    started.append(self._start(unshared, work))
                self.joined += len(missing) - len(unshared)
                flights = list(dict.fromkeys(self._flights[key] for key in missing))
                for flight in flights:
                    if flight not in joined:
                        joined.append(flight)
                        flight.waiters += 1
                await asyncio.wait([flight.task for flight in flights], return_when=asyncio.FIRST_EXCEPTION)
                for flight in flights:
                    results |= _landed(flight, owned=flight in started)
            return [results[key] for key in keys]
        finally:
            for flight in joined:
                self._leave(flight)

    def _may_join(self, key: K, count: int) -> bool:
        """Return whether a flight of at most `count` keys works on the key."""
        flight = self._flights.get(key)
        return flight is not None and len(flight.keys) <= count

    def _missing(self, keys: Sequence[K], results: dict[K, V]) -> list[K]:
        """Add cached results to `results`, and return the distinct keys that still have no result."""
        missing = []
        for key in dict.fromkeys(keys):
            if key in results:
                continue
            entry = self._cache.get(key)
            if entry is None:
                missing.append(key)
            else:
                results[key] = entry[0]
                self.hits += 1
        return missing

    def _start(self, keys: Sequence[K], work: "Work[K, V]") -> Flight[K, V]:
        self.misses += len(keys)
        flight = Flight(keys, asyncio.ensure_future(work(keys)))
        self._flights.update(dict.fromkeys(keys, flight))
        flight.task.add_done_callback(lambda _: self._land(flight))
        return flight

    def _land(self, flight: Flight[K, V]) -> None:
        """Cache the results of a finished flight."""
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
            self._remove(flight)  # before the cancellation ends: new callers must not join a cancelled flight
            flight.task.cancel()

    def _remove(self, flight: Flight[K, V]) -> None:
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]


def _landed(flight: Flight[K, V], owned: bool) -> dict[K, V]:
    """Return the results of a flight by key; none if it is unfinished or failed with an error of another caller.

    Raises: the error of the flight if this caller owns the flight or the flight shares its error.
    """
    task = flight.task
    if not task.done() or (not task.cancelled() and task.exception() and not owned and not flight.shares_error):
        return {}
    return dict(zip(flight.keys, task.result(), strict=True))
