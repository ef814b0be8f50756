"""Responses with server-sent events (HTML standard, section 9.2)."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.http.admission import while_connected

EVENT_STREAM = "text/event-stream"
COMMENT = b"3\r\n:\n\n\r\n"  # which clients ignore: a chunk of HTTP with a line of events that begins with a colon
EVENT_SCHEMA: dict[str, Any] = {  # schema of an event in the OpenAPI document
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["segment", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


class EventStream(StreamingResponse):
    """Response that sends each event of a generator at once. It closes the generator if the client disconnects."""

    def __init__(self, first: bytes, events: AsyncGenerator[bytes, None]) -> None:
        """Send the event `first`, which the caller has already taken from `events`, and then the remaining events."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies must not buffer
        super().__init__(_joined(first, events), media_type=EVENT_STREAM, headers=headers)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["comment"] = COMMENT
        async with aclosing(self._events):
            await while_connected(Request(scope, receive), self.stream_response(send))


def encode_event(name: str, data: str) -> bytes:
    """Return the bytes of the event `name`. `data` is JSON on one line."""
    return f"event: {name}\ndata: {data}\n\n".encode()


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for event in rest:
        yield event
