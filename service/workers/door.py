"""The way in, which closes while what is inside is finished."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Unavailable, answer

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that ask for no work: probes are never refused


class Door:
    """Counts the requests inside."""

    def __init__(self) -> None:
        self.closed = False
        self.inside = 0
        self._left = asyncio.Event()

    async def empty(self, seconds: float) -> bool:
        """Wait until nobody is inside any more, but not longer than that; whether that has come about."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.inside:
                    self._left.clear()
                    await self._left.wait()
        return not self.inside

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises Unavailable."""
        if self.closed:
            raise Unavailable("The service is being stopped")
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            self._left.set()


class Doorkeeper:
    """Refuses work once the door is closed; what has come in is answered, on connections that are then closed, too.

    Stands inside what reads the bodies: a request has come in when it has come whole.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app = app
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self.door.closed:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if scope["method"] in SAFE:
            await self.app(scope, receive, send_last)
            return
        try:
            with self.door.entered():
                await self.app(scope, receive, send_last)
        except Unavailable as error:  # the door's: the application answers its own
            await answer(scope, error)(scope, receive, send_last)
