"""For Ray Serve's proxy: a request whose replica died is asked again, and its client hears nothing of it.

Serve ends such a request without an answer. Ours are held back until their first part is there: those in one piece,
which are all but streams and files, come whole or are made anew. What a replica did before it died may be done twice;
it is answered once. What has no application to go to is refused as the application would.
"""

import asyncio
import time
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Unavailable, answer
from service.middleware import REQUEST_ID

PATIENCE = 120.0  # seconds for another replica to be there: longer than a start takes
PAUSE = 0.1  # seconds between two attempts
SERVES_OWN = "/-/"  # paths that no replica answers
REFUSED = frozenset({404, 503})  # by Serve, in plain text, which no error of ours is: there is no application


def middleware() -> list[Middleware]:
    """What RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH is to name."""
    return [Middleware(Replay)]


class Replay:
    """Around the application that hands requests on to replicas."""

    def __init__(self, app: ASGIApp, patience: float = PATIENCE) -> None:
        self.app = app
        self.patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(SERVES_OWN):
            await self.app(scope, receive, send)
            return
        heard = Heard(receive)
        latest = time.monotonic() + self.patience
        while True:
            attempt = Attempt(send)
            await self.app(scope, heard.again(), attempt)
            if attempt.begun or heard.gone:
                return
            if attempt.refused or time.monotonic() >= latest:
                break
            await asyncio.sleep(PAUSE)
        scope.setdefault("state", {})["request_id"] = Headers(scope=scope).get(REQUEST_ID, "")
        await answer(scope, Unavailable())(scope, receive, send)


class Heard:
    """What a client sends, which each attempt hears from the beginning."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []

    @property
    def gone(self) -> bool:
        """Whether the client is, as far as anybody has asked."""
        return any(message["type"] == "http.disconnect" for message in self._messages)

    def again(self) -> Receive:
        """From the first message on."""
        place = 0

        async def receive() -> Message:
            nonlocal place
            if place == len(self._messages):
                self._messages.append(await self._receive())
            place += 1
            return self._messages[place - 1]

        return receive


class Attempt:
    """Sends on what is answered, but for what Serve itself refuses."""

    def __init__(self, send: Send) -> None:
        self.begun = self.refused = False
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            plain = Headers(raw=message["headers"]).get("content-type", "").startswith("text/plain")
            self.refused = plain and message["status"] in REFUSED
        elif not self.refused:
            if self._start is not None:
                self.begun = True
                await self._send({**self._start, "headers": _one_id(self._start["headers"])})
                self._start = None
            await self._send(message)


def _one_id(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without the request's id that Serve adds to the one that the application has given."""
    name = REQUEST_ID.lower().encode()
    own = next((header for header in headers if header[0].lower() == name), None)
    return [header for header in headers if header[0].lower() != name or header is own]
