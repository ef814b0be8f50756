"""Admission of requests: what is in progress is bounded, awaited at the shutdown, and ends with the client.

RequestGateMiddleware counts each request that does work; dependencies of service/routes/access.py admit it by its kind.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.errors import SHUTTING_DOWN, Overloaded, TooManyRequests, Unavailable

T = TypeVar("T")


class WorkKind(StrEnum):
    """Kinds of work of a request. The queue of the fleet limits translations, too, once their texts have been read."""

    TRANSLATION = "translation"
    DOCUMENT = "document"  # files to translate
    READ = "read"  # look-ups, lists, downloads and exports
    WRITE = "write"  # changes of glossaries, memories and documents


class RequestGate:
    """Gate that counts the requests that are being answered, and refuses new ones once it is closed."""

    def __init__(self, max_pending_requests: int = 512) -> None:
        """`max_pending_requests` is the limit of the queue, which small requests may exceed by a quarter."""
        most = max_pending_requests * 5 // 4
        # Limits of one caller and of all together; docs/operate.md gives the reasons.
        self.limits: dict[WorkKind, tuple[int, int]] = {
            WorkKind.TRANSLATION: (most, 2 * most),
            WorkKind.DOCUMENT: (64, 512),
            WorkKind.READ: (64, 512),
            WorkKind.WRITE: (16, 128),
        }
        self.closed = False
        self.active = 0  # number of requests that are being answered
        self._finished = asyncio.Event()
        self._work: Counter[tuple[WorkKind, str]] = Counter()  # requests in progress by kind and caller; "" is the sum

    async def wait_until_idle(self, seconds: float) -> bool:
        """Wait at most `seconds` until all requests have been answered. Return whether this has happened in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.active:
                    self._finished.clear()
                    await self._finished.wait()
        return not self.active

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count one request as active while the context is open.

        Raises: Unavailable if the gate is closed.
        """
        if self.closed:
            raise Unavailable(SHUTTING_DOWN)
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            self._finished.set()

    @contextmanager
    def admitted(self, kind: WorkKind, caller: str) -> Iterator[None]:
        """Count one request of a caller as work of a kind while the context is open.

        Raises:
            TooManyRequests: if the caller has too many requests of this kind in progress.
            Overloaded: if all callers together have too many.
        """
        (per_caller, total), mine, everyone = self.limits[kind], (kind, caller), (kind, "")
        if self._work[mine] >= per_caller:
            raise TooManyRequests(f"{per_caller} {kind} requests at a time", retry_after=1)
        if self._work[everyone] >= total:
            raise Overloaded(retry_after=1)
        self._work[mine] += 1
        self._work[everyone] += 1
        try:
            yield
        finally:
            self._work[mine] -= 1
            self._work[everyone] -= 1
            if not self._work[mine]:
                del self._work[mine]


@dataclass
class Disconnection:
    """Departure of the client of a connection: whether it has left, and what is called when it leaves."""

    has_left: bool = False
    call: Callable[[], None] | None = None

    def leave(self) -> None:
        self.has_left = True
        if self.call is not None:
            self.call()


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Return the result of `work`. If the client disconnects, cancel `work` and wait until it has ended.

    A call within `work` only awaits its own work, which is cancelled with the rest.

    Raises: ClientDisconnect if the client disconnected before `work` ended.
    """
    disconnection: Disconnection = request.scope["state"]["disconnection"]
    if disconnection.call is not None:
        return await work
    working = asyncio.current_task()
    assert working is not None
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        working.cancel()

    disconnection.call = cancel
    late = asyncio.get_running_loop().call_soon(cancel) if disconnection.has_left else None
    try:
        return await work
    except asyncio.CancelledError:
        if cancelled and not working.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        disconnection.call = None
        if late is not None:
            late.cancel()
