"""Prefetching of updates in a thread, so that the GPU does not wait while batches are made."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from torch import Tensor

from mt.data.batching import Update

PREFETCHED = 8  # maximum number of updates that are prepared in advance


def prefetch(updates: Iterator[Update]) -> Iterator[Update]:
    """Yield the items of `updates`, which a thread reads in advance and copies to page-locked memory.

    From page-locked memory, tensors can be copied to a GPU asynchronously. If `updates` raises an exception, this
    generator yields all earlier updates, then raises the exception. The thread ends when the generator is closed.
    """
    ready: queue.Queue[Update | BaseException | None] = queue.Queue(PREFETCHED)
    closed = threading.Event()

    def put(item: Update | BaseException | None) -> None:
        while not closed.is_set():
            with suppress(queue.Full):
                return ready.put(item, timeout=0.1)

    def load() -> None:
        try:
            for update in updates:
                put(pinned(update))
                if closed.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=load, name="loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        closed.set()
        thread.join()


def pinned(update: Update) -> Update:
    return replace(update, batches=[batch.with_tensors(Tensor.pin_memory) for batch in update.batches])
