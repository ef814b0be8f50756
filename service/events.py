"""Server-sent events (the HTML standard, section 9.2), one response of them."""

from collections.abc import AsyncIterator

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.dependencies import while_connected

EVENT_STREAM = "text/event-stream"
EVENT_SCHEMA = {  # of each event, as the description has it
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["segment", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


class EventStream(StreamingResponse):
    """Sends events as they come; what makes them is ended when the client leaves, even while it waits for one."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies are to pass on each at once
        super().__init__(events, media_type=EVENT_STREAM, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(Request(scope, receive), self.stream_response(send))


def event(name: str, data: BaseModel) -> bytes:
    """Without the fields that are None. JSON has no line breaks, so one line of data is enough."""
    return f"event: {name}\ndata: {data.model_dump_json(exclude_none=True)}\n\n".encode()
