"""Helpers for coroutines: threads for long work, deadlines, repetition, and concurrent work with one error."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from service.errors import DeadlineExceeded, Overloaded, ServiceError

T = TypeVar("T")

THREAD_CHARACTERS = 2000  # work on texts of this length or longer runs in a thread, to keep the event loop responsive
RETRY_SECONDS = 0.5  # pause between attempts while the queue is full


async def in_thread(characters: int, work: Callable[[], T]) -> T:
    """Return the result of `work`; run it in a thread if `characters` is THREAD_CHARACTERS or more."""
    return work() if characters < THREAD_CHARACTERS else await asyncio.to_thread(work)


async def when_admitted(ask: Callable[[], Awaitable[T]], may_refuse: bool) -> T:
    """Return the result of `ask`. Call `ask` again while it raises Overloaded, unless `may_refuse` is true."""
    while True:
        try:
            return await ask()
        except Overloaded:
            if may_refuse:
                raise
            await asyncio.sleep(RETRY_SECONDS)


@asynccontextmanager
async def before(deadline: float | None) -> AsyncIterator[None]:
    """Raise DeadlineExceeded if the block has not ended by `deadline` (time.monotonic())."""
    try:
        async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded from error


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results, in order. An error cancels the others and is raised."""
    if len(work) == 1:
        return [await work[0]]

    async def run_all() -> list[T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
        return [task.result() for task in tasks]

    return await raising_one(run_all())


async def raising_one(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. From an exception group, raise only one error, a ServiceError if there is one."""
    try:
        return await work
    except BaseExceptionGroup as errors:
        raise next(
            (error for error in errors.exceptions if isinstance(error, ServiceError)), errors.exceptions[0]
        ) from None
