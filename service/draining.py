"""Draining of the service: new work is refused, and accepted requests are still answered."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Unavailable, error_response

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that start no work: probes are never refused


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


class DrainMiddleware:
    """Refuses new work once `gate` is closed, and from then on closes the connection after each answer.

    The middleware that reads bodies calls this one, so a request is accepted as soon as its whole body has been read.
    GET, HEAD and OPTIONS requests are never refused.
    """

    def __init__(self, app: ASGIApp, gate: RequestGate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self.gate.closed:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send_last)
            return
        try:
            with self.gate.entered():
                await self.app(scope, receive, send_last)
        except Unavailable as error:  # only the gate's error arrives here; the application answers its own errors
            await error_response(scope, error)(scope, receive, send_last)
