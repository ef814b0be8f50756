"""What stands before Ray Serve's proxy, around an application that does what the proxy does when a replica dies."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from service.replay import RetryMiddleware, middleware

BODY = [b"The dog ", b"sees the cat."]
Answering = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """A replica that dies at once: the proxy sends nothing at all."""


async def half_read(scope: Scope, receive: Receive, send: Send) -> None:
    """One that dies while it reads."""
    await receive()


async def head_alone(scope: Scope, receive: Receive, send: Send) -> None:
    """One that dies when its answer begins."""
    await read(receive)
    await send({"type": "http.response.start", "status": 201, "headers": []})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """A healthy one. The proxy adds an id to the application's."""
    body = await read(receive)
    headers = [(b"x-request-id", b"ours"), (b"content-type", b"application/json"), [b"x-request-id", b"theirs"]]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def half_sent(scope: Scope, receive: Receive, send: Send) -> None:
    """One that dies while it streams."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})


def refusing(status: int, kind: bytes) -> Answering:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": b"no"})

    return refuse


async def read(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        body += bytes(message["body"])
        if not message["more_body"]:
            return body


def exchange(
    *attempts: Answering, retry_limit: float = 30, path: str = "/translate", leaves: bool = False
) -> list[Message]:
    """What a client hears if the attempts go like this; the last as often as there are more."""
    asked = list(attempts)
    sent: list[Message] = []
    said: list[Message] = [
        {"type": "http.request", "body": body, "more_body": more}
        for body, more in zip(BODY, (True, False), strict=True)
    ]

    async def receive() -> Message:
        return said.pop(0) if said and not leaves else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        await (asked.pop(0) if len(asked) > 1 else asked[0])(scope, receive, send)

    scope = {"type": "http", "path": path, "headers": [(b"x-request-id", b"theirs")], "query_string": b""}
    asyncio.run(RetryMiddleware(proxy, retry_limit)(scope, receive, send))
    return sent


def test_a_request_whose_replica_dies_is_asked_again_with_all_that_was_said() -> None:
    start, body = exchange(nothing, half_read, head_alone, nothing, echo)
    assert start["status"] == 200 and body["body"] == b"".join(BODY)
    assert start["headers"] == [(b"x-request-id", b"ours"), (b"content-type", b"application/json")]


def test_a_stream_that_breaks_off_stays_broken() -> None:
    assert [message["type"] for message in exchange(half_sent, echo)] == ["http.response.start", "http.response.body"]


def test_patience_has_an_end_and_the_answer_is_one_of_ours() -> None:
    start, body = exchange(nothing, retry_limit=0.25)
    headers = dict(start["headers"])
    assert start["status"] == 503 and headers[b"retry-after"] == b"5"
    assert json.loads(body["body"])["code"] == "unavailable" and json.loads(body["body"])["request_id"] == "theirs"


def test_where_there_is_no_application_nothing_is_waited_for() -> None:
    for status in (404, 503):
        start, body = exchange(refusing(status, b"text/plain; charset=utf-8"), echo)
        assert start["status"] == 503 and json.loads(body["body"])["code"] == "unavailable"


def test_the_applications_own_errors_are_answers() -> None:
    for status in (404, 500, 503):
        start, body = exchange(refusing(status, b"application/problem+json"), echo)
        assert (start["status"], body["body"]) == (status, b"no")


def test_serves_own_paths_are_left_alone() -> None:
    start, _ = exchange(refusing(503, b"text/plain"), echo, path="/-/healthz")
    assert start["status"] == 503 and start["headers"] == [(b"content-type", b"text/plain")]


def test_nobody_is_asked_again_for_a_client_that_is_gone() -> None:
    assert exchange(half_read, leaves=True) == []


def test_serve_is_given_a_list() -> None:
    assert [str(each.cls) for each in middleware()] == [str(RetryMiddleware)]
