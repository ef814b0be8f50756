"""Work of requests: it is refused once the service shuts down, awaited until then, and ends with the client."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.errors import Unavailable

T = TypeVar("T")


class RequestGate:
    """Counts the requests that are being answered, and refuses new ones once it is closed."""

    def __init__(self) -> None:
        self.closed = False
        self.active = 0  # number of requests that are being answered
        self._finished = asyncio.Event()

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

        Raises:
            Unavailable: if the gate is closed.
        """
        if self.closed:
            raise Unavailable("The service is shutting down")
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            self._finished.set()


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Return the result of `work`. If the client disconnects, cancel `work` and wait until it has ended.

    Raises:
        ClientDisconnect: if the client disconnected before `work` ended.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Wait until the client disconnects. The request's body must already have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
