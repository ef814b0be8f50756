"""Answers in parts: their sizes, and what of them counts as unread."""

from fastapi import Request
from starlette.types import Message

from service.http.parts import answer_in_parts, sent_parts
from service.schemas import PART_CHARACTERS, parts_of


def test_no_part_is_long_and_none_is_lost() -> None:
    pieces = ["", "ä" * 200_000, *(f"{number}," for number in range(50_000)), "b" * 65_536]
    parts = parts_of(pieces)
    assert b"".join(parts).decode() == "".join(pieces)
    assert 1 < max(len(part.decode()) for part in parts) < 2 * PART_CHARACTERS
    assert len(parts) < sum(map(len, pieces)) / PART_CHARACTERS + 2
    assert parts_of([]) == [b""]


async def test_parts_leave_the_memory_when_they_are_sent() -> None:
    request = Request({"type": "http", "state": {}})
    parts, unsent, sent = [b"a", b"bc", b"def"], list[int](), b""
    async for part in sent_parts(request, parts):
        sent += part
        assert sum(map(len, parts)) == request.scope["state"]["unsent"]
        unsent.append(request.scope["state"]["unsent"])
    assert (sent, unsent, parts) == (b"abcdef", [5, 3, 0], [])


async def test_a_long_answer_is_sent_in_its_parts() -> None:
    async def sizes(parts: list[bytes]) -> tuple[bytes, list[int]]:
        sent = list[Message]()

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {"type": "http", "asgi": {"spec_version": "2.4"}, "state": {}}
        await answer_in_parts(Request(scope), parts)(scope, receive, send)
        length = dict(sent[0]["headers"])[b"content-length"]
        return length, [len(message["body"]) for message in sent[1:]]

    assert await sizes([b"ab", b"c"]) == (b"3", [3])
    assert await sizes([b"a" * 60_000] * 3) == (b"180000", [60_000] * 3 + [0])
