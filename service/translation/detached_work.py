"""Work that continues after its client has left: DeepL's SDK gives up after 10 s and sends the same request again."""

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect

T = TypeVar("T")

CLIENT_TIMEOUT_SECONDS = 9.0  # the work is cancelled if its client leaves earlier
DETACHED_SECONDS = 60.0  # time after which detached work is cancelled
MAX_DETACHED = 32  # maximum number of detached tasks at a time


class DetachedWork:
    """Work of requests that continues after the client has given up because of a time-out.

    Such a client repeats the request. The repeated request gets the result of the continued work, because
    TranslationCache shares equal work in progress and caches results. If the work were cancelled, a translation that
    takes longer than the client's time-out would never end.
    """

    def __init__(self, client_timeout: float = CLIENT_TIMEOUT_SECONDS) -> None:
        self._client_timeout = client_timeout
        self._detached: set[asyncio.Task[Any]] = set()

    @contextmanager
    def working(self, work: Coroutine[Any, Any, T]) -> Iterator[Awaitable[T]]:
        """Start `work` and yield an awaitable of its result. When the context ends, unfinished work is cancelled.

        Exception: if the context ends with ClientDisconnect after the client's time-out, unfinished work continues for
        at most DETACHED_SECONDS.
        """
        begun = time.monotonic()
        task = asyncio.ensure_future(work)
        try:
            yield asyncio.shield(task)
        except ClientDisconnect:
            if (
                time.monotonic() - begun >= self._client_timeout
                and len(self._detached) < MAX_DETACHED
                and not task.done()
            ):
                self._detach(task)
            raise
        finally:
            if task not in self._detached:
                task.cancel()

    def close(self) -> None:
        """Cancel all detached work."""
        for task in self._detached:
            task.cancel()

    def _detach(self, task: "asyncio.Task[Any]") -> None:
        self._detached.add(task)
        task.add_done_callback(self._forget)
        asyncio.get_running_loop().call_later(DETACHED_SECONDS, task.cancel)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._detached.discard(task)
        if not task.cancelled():
            task.exception()  # avoid a warning: nobody else retrieves this error
