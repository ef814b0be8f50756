"""Helpers for coroutines: threads for long work, deadlines, repetition, and concurrent work with one error."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from service.errors import DeadlineExceeded, Overloaded, ServiceError
from service.fair_semaphore import FairSemaphore

T = TypeVar("T")

THREAD_CHARACTERS = 2000  # work on texts of this length or longer runs in a thread, to keep the event loop responsive
TEXT_COST = 50  # writing the answer to a text takes as long as other work on this many characters
THREADS = 2  # threads that work at a time; a caller has at most one of them
QUEUE_FULL_PAUSE = 0.5  # seconds between attempts while the queue is full


class WorkThreads:
    """At most THREADS threads for long work. Each of them competes with the event loop for the interpreter lock."""

    def __init__(self) -> None:
        self._semaphore = FairSemaphore(THREADS)

    async def run(self, caller: str, characters: int, work: Callable[[], T]) -> T:
        """Run `work` and return its result. If `characters` is THREAD_CHARACTERS or more, run it in a thread."""
        if characters < THREAD_CHARACTERS:
            return work()
        return await self._semaphore.run(caller, lambda: asyncio.to_thread(work))


async def when_admitted(
    request: Callable[[], Awaitable[T]], retry_on: tuple[type[ServiceError], ...] = (Overloaded,)
) -> T:
    """Call `request` and return its result. While it raises an error of `retry_on`, call it again after a pause."""
    while True:
        try:
            return await request()
        except retry_on:
            await asyncio.sleep(QUEUE_FULL_PAUSE)


@asynccontextmanager
async def deadline_at(deadline: float | None) -> AsyncIterator[None]:
    """Raise DeadlineExceeded if the context has not ended by `deadline`, a time of time.monotonic(); None: no limit."""
    seconds = None if deadline is None else deadline - time.monotonic()
    if seconds is not None and seconds <= 0:
        raise DeadlineExceeded
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded from error.with_traceback(None)  # a cycle: it leads to the task, which holds its error


async def gather_or_raise(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order.

    If one of them fails, cancel the others and raise its error. If several fail, a ServiceError is preferred.
    """
    if len(work) == 1:
        return [await work[0]]

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except BaseExceptionGroup as errors:
        ours = (error for error in errors.exceptions if isinstance(error, ServiceError))
        raise next(ours, errors.exceptions[0]) from None
    return [task.result() for task in tasks]
