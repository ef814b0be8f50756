"""Cache of translations. If a caller sends equal requests at the same time, one computation answers all of them.

Callers share no results: the time of an answer would tell one caller which texts another caller has had translated.
Calls that need the results of a computation in progress join it instead of starting another.

DeepL's SDK gives up after 10 s and sends the same request again: its computation goes on meanwhile. Otherwise, a
translation that takes longer would never end.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from cachetools import LRUCache

from service.errors import DeadlineExceeded
from service.translation.jobs import Answer
from service.workers.messages import SourceText, TranslateOptions

DETACHED_SECONDS = 60.0  # time after which a computation whose client has left is cancelled
SENTENCE_SIZE = 200  # of a sentence, without its texts
MAX_SENTENCES = 4000  # a text with more of them is not cached: its size would take longer than 2 ms
MAX_DETACHED = 32  # computations whose clients have left

Compute = Callable[[Sequence[bytes]], Coroutine[Any, Any, Sequence[Answer]]]
"""Coroutine function that returns an answer for each key, in order."""


def keys_of(texts: Sequence[SourceText], version: bytes, options: TranslateOptions) -> list[bytes]:
    """Return the key of each text in the cache, or b"" for a text without letters and digits.

    Call this in a thread if there are many terms, which are pickled here, and not in the event loop for each worker.
    """
    context = version + options.digest
    assert not options.terms or options.packed
    return [b"" if text.blank else text.key(context) for text in texts]


def entry_size(key: bytes, answer: Answer) -> int:
    """Return the size of a cache entry: its number of characters, plus the estimated bytes of its other data."""
    sentences = sum(
        SENTENCE_SIZE + len(one.source) + 100 * len(one.links) + sum(50 + len(other.text) for other in one.alternatives)
        for one in answer.sentences
    )
    return 500 + len(key) + len(answer.text) + sum(map(len, answer.alternatives)) + sentences


class Computation:
    """Computation of the results for some keys of one caller. It is cancelled once nobody waits for the results."""

    def __init__(self, caller: str, keys: Sequence[bytes], task: "asyncio.Task[Sequence[Answer]]") -> None:
        self.caller = caller
        self.keys = tuple(keys)
        self.task = task
        self.waiters = 0

    @property
    def shares_error(self) -> bool:
        """True if the error of a failed computation is raised in every call that joined the computation.

        False if the cause may be another key of the computation, or the deadline of the call that started it.
        """
        return len(self.keys) == 1 and not isinstance(self.task.exception(), DeadlineExceeded)


class TranslationCache:
    """Cache of results by caller and key. A caller's calls that need the same result at the same time share the work.

    Very long texts and attention maps are not cached. If the cache is full, the least recently used entries leave.
    `hits` counts keys found in the cache, `joined` counts keys in computations that other calls had started, and
    `misses` counts keys that started a computation.
    """

    def __init__(self, capacity: int, size: Callable[[bytes, Answer], int] = entry_size) -> None:
        """Create an empty cache. The sizes of its entries add up to at most `capacity`; a capacity of 0 disables it."""
        self.hits = self.joined = self.misses = 0  # keys
        self._size = size
        self._results: LRUCache[tuple[str, bytes], tuple[Answer, int]] = LRUCache(capacity, lambda entry: entry[1])
        self._computations: dict[tuple[str, bytes], Computation] = {}
        self._detached: set[Computation] = set()  # computations that nobody waits for, or that were rejoined

    async def get(
        self, caller: str, keys: Sequence[bytes], work: Compute, repeated_after: float = math.inf
    ) -> list[Answer]:
        """Return a result for each key, in order.

        A key that is not cached joins a computation of its result, if this computation has at most as many keys as this
        call: one text must not wait for a thousand texts of another request. All other keys that are not cached are
        passed to `work` together, which starts a computation. If this coroutine is cancelled, the computations that
        other calls wait for continue. From `repeated_after` on, a time of time.monotonic(), up to MAX_DETACHED others
        continue for DETACHED_SECONDS, too.

        Raises: the errors of `work`. If a joined computation fails, perhaps because of another key or of the deadline
            of the call that started it, the keys of this call are passed to `work` instead.
        """
        results: dict[bytes, Answer] = {}
        joined: list[Computation] = []
        started: list[Computation] = []
        try:
            while missing := self._missing(caller, keys, results):
                unshared = [key for key in missing if not self._may_join(caller, key, len(keys))]
                if unshared:
                    started.append(self._start(caller, unshared, work))
                self.joined += len(missing) - len(unshared)
                computations = list(dict.fromkeys(self._computations[caller, key] for key in missing))
                for computation in computations:
                    if computation not in joined:
                        joined.append(computation)
                        computation.waiters += 1
                await asyncio.wait(
                    [computation.task for computation in computations], return_when=asyncio.FIRST_EXCEPTION
                )
                for computation in computations:
                    results |= _results_of(computation, started_here=computation in started)
            return [results[key] for key in keys]
        finally:
            for computation in joined:
                self._leave(computation, repeated_after)

    def _may_join(self, caller: str, key: bytes, count: int) -> bool:
        """Return whether a computation of this caller computes `key` and has at most `count` keys."""
        computation = self._computations.get((caller, key))
        return computation is not None and len(computation.keys) <= count

    def _missing(self, caller: str, keys: Sequence[bytes], results: dict[bytes, Answer]) -> list[bytes]:
        """Add cached results to `results`, and return the distinct keys that still have no result."""
        missing = []
        for key in dict.fromkeys(keys):
            if key in results:
                continue
            entry = self._results.get((caller, key))
            if entry is None:
                missing.append(key)
            else:
                results[key] = entry[0]
                self.hits += 1
        return missing

    def _start(self, caller: str, keys: Sequence[bytes], work: Compute) -> Computation:
        self.misses += len(keys)
        computation = Computation(caller, keys, asyncio.ensure_future(work(keys)))
        self._computations.update({(caller, key): computation for key in keys})
        computation.task.add_done_callback(lambda _: self._store(computation))
        return computation

    def _store(self, computation: Computation) -> None:
        """Cache the results of a finished computation."""
        self._remove(computation)
        if computation.task.cancelled() or computation.task.exception():
            return
        for key, value in zip(computation.keys, computation.task.result(), strict=True):
            if len(value.sentences) > MAX_SENTENCES or any(sentence.attention for sentence in value.sentences):
                continue
            if (size := self._size(key, value)) <= self._results.maxsize:
                self._results[computation.caller, key] = value, size

    def _leave(self, computation: Computation, repeated_after: float) -> None:
        computation.waiters -= 1
        if computation.waiters or computation.task.done():
            return
        if time.monotonic() >= repeated_after and len(self._detached) < MAX_DETACHED:
            self._detached.add(computation)
            computation.task.add_done_callback(lambda _: self._detached.discard(computation))
            asyncio.get_running_loop().call_later(DETACHED_SECONDS, self._end, computation)
        else:
            self._end(computation)

    def _end(self, computation: Computation) -> None:
        """Cancel a computation that nobody waits for."""
        if not computation.waiters:
            self._remove(computation)  # before the cancellation ends: new callers must not join a cancelled one
            computation.task.cancel()

    def _remove(self, computation: Computation) -> None:
        for key in computation.keys:
            if self._computations.get((computation.caller, key)) is computation:
                del self._computations[computation.caller, key]


def _results_of(computation: Computation, started_here: bool) -> dict[bytes, Answer]:
    """Return the results of a computation by key; {} if the computation is not finished.

    If the computation has failed, raise its error if `started_here` or `shares_error` is true, and return {} if both
    are false. `started_here` tells whether this call started the computation.
    """
    task = computation.task
    if not task.done() or (
        not task.cancelled() and task.exception() and not started_here and not computation.shares_error
    ):
        return {}
    return dict(zip(computation.keys, task.result(), strict=True))
