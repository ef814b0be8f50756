"""DeepL's SDK reads for 10 s, gives up, and sends the same request again about a second later."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect

T = TypeVar("T")

GIVES_UP_AFTER = 9.0  # seconds: whoever leaves earlier does not come back
COMES_BACK_WITHIN = 60.0  # seconds for work to end that nobody waits for
MOST = 32  # such works at a time


class Lingering:
    """Work that was waited for that long goes on for a while: the client that asks again joins it, or finds it done.

    Translations do the joining: identical work in flight is done once, and what is done is kept in their cache. Were it
    cancelled, as it is when other clients leave, a text that takes longer than 10 s would begin anew each time.
    """

    def __init__(self, gives_up_after: float = GIVES_UP_AFTER) -> None:
        self._gives_up_after = gives_up_after
        self._left: set[asyncio.Task[Any]] = set()

    @contextmanager
    def working(self, work: Coroutine[Any, Any, T]) -> Iterator[Coroutine[Any, Any, T]]:
        """Begins it; what is given waits for its result. It is cancelled at the end, unless a client left that late."""
        begun = time.monotonic()
        task = asyncio.ensure_future(work)
        try:
            yield _result(task)
        except ClientDisconnect:
            if time.monotonic() - begun >= self._gives_up_after and len(self._left) < MOST and not task.done():
                self._leave(task)
            raise
        finally:
            if task not in self._left:
                task.cancel()

    def close(self) -> None:
        """The service ends: nobody will ask again."""
        for task in self._left:
            task.cancel()

    def _leave(self, task: "asyncio.Task[Any]") -> None:
        self._left.add(task)
        task.add_done_callback(self._forget)
        asyncio.get_running_loop().call_later(COMES_BACK_WITHIN, task.cancel)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # nobody is left to be told


async def _result(task: "asyncio.Task[T]") -> T:
    return await asyncio.shield(task)
