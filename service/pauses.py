"""Shorter pauses of the event loop, by rarer full garbage collections and more frequent thread switches."""

import asyncio
import gc
import sys
import time
from collections.abc import Callable

from service.freed_memory import memory_bytes, return_freed_memory

FULL_EVERY = 100_000  # collections of the second generation before a full collection; Python's default is 10
SWITCH_SECONDS = 0.001  # Python's default is 0.005
GROWTH_BYTES = 100_000_000  # growth of the web process after which it runs a full collection
AGAIN_SECONDS = 600  # after a collection, until its memory is compared with that of the start again


def shorten_pauses() -> None:
    """Exclude existing objects from garbage collection, run full collections rarely, and switch threads often.

    A full collection took 150 milliseconds with the objects of all modules, and 100 milliseconds more with a thousand
    requests in progress; under load there was one each second. Now there is one in 50 million sentences. Requests leave
    hardly any reference cycles, and the frequent collections of the first two generations find most of them;
    GrowthCollector bounds what the others cost.

    After each wait for a socket, the event loop needs the interpreter lock again, and waits up to `SWITCH_SECONDS` for
    every thread that runs Python code. With Python's default, and four threads that parsed glossaries, /livez took up
    to 180 milliseconds. In a worker, the thread of the engine waits in this way after every decoder step while the main
    thread plans texts.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_EVERY)
    sys.setswitchinterval(SWITCH_SECONDS)


def collect_while_idle() -> None:
    """Run a full collection if Python would have run one by default. In a worker with 25,000 sentences, it took 0.4 s.

    Texts leave no reference cycles, so that a busy worker can go on for long without a full collection.
    """
    if gc.get_count()[2] >= 10:
        gc.collect()


class GrowthCollector:
    """Full collections of a process whose memory has grown by `GROWTH_BYTES`, so that no cycle can fill the machine."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._first = self._least = memory_bytes("RssAnon")  # at the start, and since the last collection
        self._clock, self._collected = clock, clock()

    async def check(self, is_busy: bool = False) -> None:
        """Collect in a thread if the memory has grown. The collection itself stops the event loop for 5 to 40 ms.

        During a long answer, it takes 400 ms: while the service `is_busy`, ten times the growth are needed.
        Every AGAIN_SECONDS, compare with the start: what was in use at the last collection may be garbage by now.
        """
        size = memory_bytes("RssAnon")
        is_late = self._clock() >= self._collected + AGAIN_SECONDS
        self._least = min(self._first if is_late else self._least, size)
        most = self._least + GROWTH_BYTES * (10 if is_busy and not is_late else 1)
        if size > most:
            await asyncio.to_thread(return_freed_memory)  # of a long answer: it counts until it is returned
        if size > most and memory_bytes("RssAnon") > most:
            await asyncio.to_thread(gc.collect)
            await asyncio.to_thread(return_freed_memory)
            self._least, self._collected = memory_bytes("RssAnon"), self._clock()
