"""Answers in parts: neither a thread nor the event loop copies a long answer in one step.

An answer has up to 32 MB. Joining its pieces would keep the interpreter lock for 30 ms and take its memory twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable

from fastapi import Request, Response
from starlette.responses import StreamingResponse

from service.http.bodies import JSON

PART_CHARACTERS = 65_536  # of an answer that are joined, encoded and sent in one step


def parts_of(pieces: Iterable[str]) -> list[bytes]:
    """Return the bytes of `pieces`, joined to parts of about PART_CHARACTERS characters."""
    parts, waiting, size = list[bytes](), list[str](), 0
    for piece in pieces:
        for begin in range(0, len(piece), PART_CHARACTERS):
            waiting.append(piece[begin : begin + PART_CHARACTERS])
            size += len(waiting[-1])
            if size >= PART_CHARACTERS:
                parts.append("".join(waiting).encode())
                waiting, size = [], 0
    parts.append("".join(waiting).encode())
    return parts


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
