"""Answers in parts: the event loop does not copy a long answer in one step."""

import asyncio
from collections.abc import AsyncGenerator

from fastapi import Request, Response
from starlette.responses import StreamingResponse

from service.http.bodies import JSON
from service.schemas import PART_CHARACTERS


def answer_in_parts(request: Request, parts: list[bytes]) -> Response:
    """Return the response with the JSON that these parts make up."""
    size = sum(map(len, parts))
    if size <= PART_CHARACTERS:
        return Response(b"".join(parts), media_type=JSON)
    return StreamingResponse(sent_parts(request, parts), media_type=JSON, headers={"Content-Length": str(size)})


async def sent_parts(request: Request, parts: list[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the parts, and remove them from the list. Those that are left in it count as unread by the client."""
    state = request.scope["state"]
    state["unsent"] = sum(map(len, parts))
    parts.reverse()
    while parts:
        state["unsent"] -= len(parts[-1])
        yield parts.pop()
        await asyncio.sleep(0)  # a client that reads fast never makes the event loop wait
