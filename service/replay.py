"""Middleware for Ray Serve's proxy that repeats a request if the replica of `front` died.

Ray Serve would end the request without an answer. This middleware sends nothing to the client until the first part of
a response has arrived. A response in one part (all except streams and files) therefore arrives complete, or the request
is repeated; the work may then be done twice. While Ray Serve has no application, the middleware answers with 503.
"""

import asyncio
import time
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Unavailable, error_response
from service.middleware import REQUEST_ID

RETRY_LIMIT_SECONDS = 120.0  # longer than another replica takes to start
RETRY_SECONDS = 0.1  # pause between two attempts
SERVE_PATHS = "/-/"  # paths that Ray Serve itself answers
REFUSED = frozenset({404, 503})  # statuses of Ray Serve's own answers, in plain text, while it has no application


def middleware() -> list[Middleware]:
    """Return the middleware that Ray Serve's proxy adds.

    The environment variable RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH names this function.
    """
    return [Middleware(RetryMiddleware)]


class RetryMiddleware:
    """Repeats a request to `app`, Ray Serve's proxy, until `front` answers or `retry_limit` seconds have passed."""

    def __init__(self, app: ASGIApp, retry_limit: float = RETRY_LIMIT_SECONDS) -> None:
        self.app = app
        self.retry_limit = retry_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(SERVE_PATHS):
            await self.app(scope, receive, send)
            return
        recorded = RecordedRequest(receive)
        latest = time.monotonic() + self.retry_limit
        while True:
            attempt = Attempt(send)
            await self.app(scope, recorded.replay(), attempt)
            if attempt.started or recorded.disconnected:
                return
            if attempt.refused or time.monotonic() >= latest:
                break
            await asyncio.sleep(RETRY_SECONDS)
        scope.setdefault("state", {})["request_id"] = Headers(scope=scope).get(REQUEST_ID, "")
        await error_response(scope, Unavailable())(scope, receive, send)


class RecordedRequest:
    """ASGI messages of a request, recorded so that each attempt can receive them from the beginning."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []

    @property
    def disconnected(self) -> bool:
        """True if a message has reported that the client disconnected."""
        return any(message["type"] == "http.disconnect" for message in self._messages)

    def replay(self) -> Receive:
        """Return an ASGI `receive` function that returns the recorded messages, and then the client's next messages."""
        place = 0

        async def receive() -> Message:
            nonlocal place
            if place == len(self._messages):
                self._messages.append(await self._receive())
            place += 1
            return self._messages[place - 1]

        return receive


class Attempt:
    """ASGI `send` function of one attempt. It forwards the response to the client, but not Ray Serve's own refusals."""

    def __init__(self, send: Send) -> None:
        self.started = self.refused = False
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            plain = Headers(raw=message["headers"]).get("content-type", "").startswith("text/plain")
            self.refused = plain and message["status"] in REFUSED
        elif not self.refused:
            if self._start is not None:
                self.started = True
                await self._send({**self._start, "headers": _without_serve_id(self._start["headers"])})
                self._start = None
            await self._send(message)


def _without_serve_id(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers without the request id that Ray Serve adds after the application's request id."""
    name = REQUEST_ID.lower().encode()
    request_id = next((header for header in headers if header[0].lower() == name), None)
    return [header for header in headers if header[0].lower() != name or header is request_id]
