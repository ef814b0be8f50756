"""Updates made ready in a thread, so that a GPU never waits for them."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from mt.data.batching import Batch, Update

AHEAD = 8  # updates


def ahead(updates: Iterator[Update]) -> Iterator[Update]:
    """The same updates in page-locked memory, from which copies to a GPU do not hold up anything.

    What `updates` raises is raised here, after the updates before it. The thread ends with this generator.
    """
    ready: queue.Queue[Update | BaseException | None] = queue.Queue(AHEAD)
    over = threading.Event()

    def hand_over(item: Update | BaseException | None) -> None:
        while not over.is_set():
            with suppress(queue.Full):
                return ready.put(item, timeout=0.1)

    def work() -> None:
        try:
            for update in updates:
                hand_over(replace(update, batches=[_pinned(batch) for batch in update.batches]))
                if over.is_set():
                    return
            hand_over(None)
        except BaseException as error:
            hand_over(error)

    thread = threading.Thread(target=work, name="loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        thread.join()


def _pinned(batch: Batch) -> Batch:
    return replace(
        batch,
        source=batch.source.pin_memory(),
        source_mask=batch.source_mask.pin_memory(),
        target=batch.target.pin_memory(),
        labels=batch.labels.pin_memory(),
    )
