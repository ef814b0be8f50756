"""Cache of translations. If a caller sends equal requests at the same time, one computation answers all of them.

Callers share no results: the time of an answer would tell one caller which texts another caller has had translated.

DeepL's SDK gives up after 10 s and sends the same request again: its computation goes on meanwhile. Otherwise, a
translation that takes longer would never end.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from service.translation.jobs import Answer
from service.workers.messages import SourceText, TranslateOptions

DETACHED_SECONDS = 60.0  # time after which a computation whose client has left is cancelled
SENTENCE_SIZE = 200  # of a sentence, without its texts
MAX_SENTENCES = 4000  # a text with more of them is not cached: its size would take longer than 2 ms
SLICE = 1000  # sentences of a request's results that one iteration of the event loop caches: 23,000 took 17 ms
MAX_DETACHED = 32  # computations of one caller whose clients have left

Joining = Callable[[str], AbstractContextManager[None]]
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


@dataclass(eq=False)
class Computation:
    """Computation of the results for some keys of one caller. It is cancelled once nobody waits for the results."""

    caller: str
    keys: tuple[bytes, ...]
    task: "asyncio.Task[Sequence[Answer]]"
    waiters: int = 0


class TranslationCache:
    """Cache of results by caller and key. A caller's calls that need the same results at the same time share the work.

    Very long texts and attention maps are not cached. If the cache is full, the least recently used entries leave.
    `hits` counts keys found in the cache, `joined` counts keys in computations that other calls had started, and
    `misses` counts keys that started a computation.
    """

    def __init__(
        self,
        capacity: int,
        size: Callable[[bytes, Answer], int] = entry_size,
        joining: Joining = lambda caller: nullcontext(),
    ) -> None:
        """Create an empty cache. The sizes of its entries add up to at most `capacity`; a capacity of 0 disables it.

        A call that waits for the computation of another one does so in the context that `joining` returns for its
        caller: the queue counts only the other one.
        """
        self.hits = self.joined = self.misses = 0  # keys
        self._size, self._joining = size, joining
        self._results: LRUCache[tuple[str, bytes], tuple[Answer, int]] = LRUCache(capacity, lambda entry: entry[1])
        self._computations: dict[tuple[str, tuple[bytes, ...]], Computation] = {}  # by caller and keys
        self._detached: set[Computation] = set()  # computations that nobody waits for, or that were rejoined

    async def get(
        self, caller: str, keys: Sequence[bytes], work: Compute, repeated_after: float = math.inf
    ) -> list[Answer]:
        """Return a result for each key, in order.

        The keys that are not cached are passed to `work` together, which starts a computation, unless one for the same
        keys is in progress. If this coroutine is cancelled, a computation that other calls wait for continues. From
        `repeated_after` on, a time of time.monotonic(), up to MAX_DETACHED others of the caller continue for
        DETACHED_SECONDS, too.

        Raises: the errors of `work` and `joining`.
        """
        entries = {key: self._results.get((caller, key)) for key in keys}
        results = {key: entry[0] for key, entry in entries.items() if entry}
        self.hits += len(results)
        if missing := tuple(key for key, entry in entries.items() if not entry):
            computation = self._computations.get((caller, missing))
            with self._joining(caller) if computation else nullcontext():
                if computation:
                    self.joined += len(missing)
                else:
                    computation = self._start(caller, missing, work)
                computation.waiters += 1
                try:
                    await asyncio.wait([computation.task])
                    results.update(zip(missing, computation.task.result(), strict=True))
                finally:
                    self._leave(computation, repeated_after)
        return [results[key] for key in keys]

    def _start(self, caller: str, keys: tuple[bytes, ...], work: Compute) -> Computation:
        self.misses += len(keys)
        computation = Computation(caller, keys, asyncio.ensure_future(work(keys)))
        self._computations[caller, keys] = computation
        computation.task.add_done_callback(lambda _: self._store(computation))
        return computation

    def _store(self, computation: Computation) -> None:
        """Cache the results of a finished computation."""
        self._remove(computation)
        if computation.task.cancelled() or computation.task.exception():
            return
        self._store_slice(computation.caller, zip(computation.keys, computation.task.result(), strict=True))

    def _store_slice(self, caller: str, results: Iterator[tuple[bytes, Answer]]) -> None:
        """Cache results until they have SLICE sentences, and the others in the next iterations of the event loop."""
        left = SLICE
        for key, value in results:
            if len(value.sentences) > MAX_SENTENCES or any(sentence.attention for sentence in value.sentences):
                continue
            if (size := self._size(key, value)) <= self._results.maxsize:
                self._results[caller, key] = value, size
            if (left := left - len(value.sentences)) <= 0:
                asyncio.get_running_loop().call_soon(self._store_slice, caller, results)
                return

    def _leave(self, computation: Computation, repeated_after: float) -> None:
        computation.waiters -= 1
        if computation.waiters or computation.task.done():
            return
        others = sum(other.caller == computation.caller for other in self._detached)
        if time.monotonic() >= repeated_after and others < MAX_DETACHED:
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
        if self._computations.get((computation.caller, computation.keys)) is computation:
            del self._computations[computation.caller, computation.keys]
