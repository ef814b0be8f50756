"""Limits of a request's head and body; hosts, proxies, and pages of other sites."""

import asyncio
import json
import sys
import tracemalloc
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from service.access.database import Database
from service.app import ROUTERS, create_app
from service.errors import HEAD_BYTES, Overloaded, ServiceError, TooManyRequests
from service.http.admission import RequestGate, WorkKind
from service.http.bodies import FORM_CHUNK
from service.http.middleware import FORM_BYTES, SMALL_BYTES, RequestGateMiddleware, RequestLogMiddleware, is_address
from service.metrics import Metrics
from service.routes import access
from service.settings import Settings
from service.workers.fleet import Fleet
from tests.service.doubles import WordModels

LENGTH = b"content-length"
ORIGIN = {"Origin": "https://a.example"}
PREFLIGHT = ORIGIN | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
ALLOWED = "access-control-allow-origin"


async def ask(settings: dict[str, Any], method: str, path: str, **headers: str) -> httpx.Response:
    """Return the answer of an application without services. /echo says who asked, and its own address."""
    app = create_app(Settings(model="m", **settings), cast(Fleet, WordModels()), cast(Database, None))

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, Any]:
        return {"client": request.client and request.client.host, "url": str(request.url_for("echo"))}

    transport = httpx.ASGITransport(app, root_path=settings.get("root_path", ""))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.request(method, path, headers=headers)


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "localhost:80", 200),
        ({}, "192.0.2.1", 200),
        ({}, "[::1]:8000", 200),
        ({}, "evil.example", 400),
        ({}, "[fe80::1%evil.example]", 400),
        ({}, "", 200),
        *(({}, host, 400) for host in ("[::1", "[::1]8000", "::1", "localhost:a", "localhost/", "a@localhost")),
        ({"host": "0.0.0.0"}, "any.example", 200),
        ({"host": "0.0.0.0"}, "[::1", 400),
        ({"host": "0.0.0.0", "allowed_hosts": ("mt.example",)}, "MT.example:80", 200),
        ({"allowed_hosts": ("mt.example",)}, "evil.example", 400),
        ({"allowed_hosts": ("mt.example",)}, "localhost:8000", 200),
    ],
)
async def test_hosts_by_which_the_service_may_be_addressed(settings: dict[str, Any], host: str, status: int) -> None:
    assert (await ask(settings, "GET", "/livez", Host=host)).status_code == status


def test_hosts_are_not_kept() -> None:
    tracemalloc.start()
    for number in range(50):
        assert not is_address(f"{number}{'a' * 60_000}")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 200_000


async def test_a_long_query_is_kept_from_fastapi() -> None:
    """FastAPI would parse it on the event loop."""
    seen = list[tuple[int, int]]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((len(scope["query_string"]), len(scope["state"]["query"])))
        await Response("")(scope, receive, send)

    async def empty() -> Message:
        return part(b"")

    gated = RequestGateMiddleware(app, Settings(model="m"), RequestGate())
    for size in (FORM_CHUNK - 1, FORM_CHUNK):
        await gated(scope("/translate", []) | {"query_string": b"a" * size}, empty, Sent())
    assert seen == [(FORM_CHUNK - 1, FORM_CHUNK - 1), (0, FORM_CHUNK)]


PUBLIC: dict[str, Any] = {"host": "0.0.0.0"}
ONE: dict[str, Any] = {"allow_origins": ("https://a.example",)}


@pytest.mark.parametrize(
    ("settings", "method", "headers", "status", "allowed"),
    [
        ({}, "POST", ORIGIN, 200, None),  # a loopback address is for this machine only
        (PUBLIC | {"allow_origins": ()}, "POST", ORIGIN, 200, None),
        (PUBLIC, "POST", ORIGIN, 200, "*"),
        (PUBLIC, "OPTIONS", PREFLIGHT, 200, "*"),
        (ONE, "OPTIONS", PREFLIGHT, 200, "https://a.example"),
        (ONE, "GET", ORIGIN, 405, "https://a.example"),
        (ONE, "POST", {"Origin": "https://b.example"}, 200, None),
    ],
)
async def test_pages_of_other_sites(
    settings: dict[str, Any], method: str, headers: dict[str, str], status: int, allowed: str | None
) -> None:
    answer = await ask(settings, method, "/echo", **headers)
    assert (answer.status_code, answer.headers.get(ALLOWED)) == (status, allowed)
    assert "access-control-allow-credentials" not in answer.headers
    if allowed and method != "OPTIONS":
        assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize(
    ("trusted", "forwarded", "known_as", "scheme"),
    [
        ((), "192.0.2.7", "127.0.0.1", "http"),
        (("10.0.0.0/8",), "192.0.2.7", "127.0.0.1", "http"),
        (("127.0.0.1",), "192.0.2.7", "192.0.2.7", "https"),
        # the first is the client's own
        (("127.0.0.0/8", "10.0.0.0/8"), "203.0.113.9, 192.0.2.7, 10.1.2.3", "192.0.2.7", "https"),
        (("127.0.0.1",), "", "127.0.0.1", "https"),
    ],
)
async def test_trusted_proxies_say_who_asks(
    trusted: tuple[str, ...], forwarded: str, known_as: str, scheme: str
) -> None:
    headers = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}
    answer = (await ask({"trusted_proxies": trusted}, "POST", "/echo", **headers)).json()
    assert answer == {"client": known_as, "url": f"{scheme}://localhost/echo"}


async def test_a_root_path() -> None:
    settings = {"root_path": "/translator"}
    assert (await ask(settings, "GET", "/livez")).status_code == 200
    assert (await ask(settings, "POST", "/echo")).json()["url"].endswith("/translator/echo")
    assert (await ask(settings, "GET", "/openapi.json")).json()["servers"] == [{"url": "/translator"}]


def scope(path: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    common = {"type": "http", "method": "POST", "query_string": b"", "http_version": "1.0"}
    return {**common, "path": path, "headers": headers, "state": {"request_id": "r"}}


async def nothing() -> Message:
    """Receive no message."""
    return await asyncio.Future()


class Sent(list[Message]):
    async def __call__(self, message: Message) -> None:
        self.append(message)


async def read(messages: list[Message], headers: list[tuple[bytes, bytes]], settings: Settings) -> tuple[int, bytes]:
    """Return the status, and the body that the application saw. A pause comes where there are no messages left."""
    sent, seen = Sent(), b""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal seen
        seen = scope["state"]["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return messages.pop(0) if messages else await nothing()

    await RequestGateMiddleware(app, settings, RequestGate())(scope("/echo", headers), receive, sent)
    return sent[0]["status"], seen


@pytest.mark.parametrize("begun", [False, True])
async def test_requests_that_the_shutdown_cancels_are_answered(begun: bool) -> None:
    sent, start = Sent(), {"type": "http.response.start", "status": 200, "headers": []}

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await send(start)
        await nothing()

    middleware = RequestLogMiddleware(application, Metrics())
    request = asyncio.create_task(middleware(scope("/translate", []) | {"app": FastAPI()}, nothing, sent))
    await asyncio.sleep(0)
    request.cancel()
    await request
    if begun:
        assert sent == [start]
    else:
        assert sent[0]["status"] == 503 and b"x-request-id" in dict(sent[0]["headers"])
        assert json.loads(sent[1]["body"])["message"] == "The service is shutting down"


def part(body: bytes, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    ("messages", "headers", "status"),
    [
        ([part(b"")], [], 200),
        ([part(b"a" * 100)], [(LENGTH, b"100")], 200),
        ([part(b"a" * 50, more=True), part(b"a" * 50)], [], 200),
        ([part(b"a" * 100, more=True), part(b"")], [], 200),
        ([part(b"a")], [(b"transfer-encoding", b"Chunked")], 200),
        ([part(b"a")], [(b"transfer-encoding", b"gzip, chunked")], 501),
        ([part(b"a")], [(b"transfer-encoding", b"gzip"), (b"transfer-encoding", b"chunked")], 501),
        ([part(b"a" * 101)], [], 413),
        ([part(b"a" * 101)], [(LENGTH, b"5")], 413),
        ([], [(LENGTH, b"101")], 413),  # it is not even read
        ([part(b"a" * 60, more=True), part(b"a" * 60, more=True)], [], 413),
        ([part(b"a")], [(LENGTH, b"9" * HEAD_BYTES)], 431),
        ([part(b"a")], [(b"x", b"a" * HEAD_BYTES)], 431),
        ([part(b"a")], [(b"x", b"")] * (HEAD_BYTES + 1), 431),
        ([part(b"a", more=True)], [], 408),
        ([], [(LENGTH, b"50")], 408),
    ],
)
async def test_limits_of_a_request(messages: list[Message], headers: list[tuple[bytes, bytes]], status: int) -> None:
    sent = b"".join(message["body"] for message in messages)
    settings = Settings(model=(Path("m"),), max_body_bytes=100, read_timeout_seconds=0.05)
    assert await read(messages, headers, settings) == (status, sent if status == 200 else b"")


async def test_a_body_that_is_being_read_is_in_memory_once() -> None:
    """1,900 unfinished bodies of 64 KB took 250 MB."""
    chunk, references = b"a" * 50_000, list[int]()

    async def receive() -> Message:
        references.append(sys.getrefcount(chunk))
        return part(chunk, more=len(references) < 3) if len(references) < 3 else part(b"")

    middleware = RequestGateMiddleware(Response(""), Settings(model=(Path("m"),)), RequestGate())
    await middleware(scope("/translate", []), receive, Sent())
    assert references == [references[0]] * 3


async def test_uploads_may_be_larger_and_all_bodies_together_are_bounded() -> None:
    large = FORM_BYTES + 1
    limits: dict[str, Any] = {"max_body_bytes": large, "max_file_bytes": large + 1, "max_buffered_bytes": 3 * large}
    settings = Settings(model=(Path("m"),), **limits)
    holding, release = list[int](), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        holding.append(len(scope["state"]["body"]))
        await release.wait()
        await Response("")(scope, receive, send)

    async def post(path: str, size: int) -> int:
        sent, bodies = Sent(), asyncio.Queue[Message]()
        bodies.put_nowait(part(b"a" * size))
        await limited(scope(path, []), bodies.get, sent)
        return int(sent[0]["status"])

    async def held(path: str, size: int) -> "asyncio.Task[int]":
        task, before = asyncio.create_task(post(path, size)), len(holding)
        while len(holding) == before:
            await asyncio.sleep(0)
        return task

    limited = RequestGateMiddleware(app, settings, RequestGate())
    accepted = [await held("/translate_file", 2 * large), await held("/translate", large)]
    assert await post("/translate", large + 1) == await post("/v2/document", 2 * large + 1) == 413
    assert await post("/translate", large) == 503  # no room
    accepted.append(await held("/translate", SMALL_BYTES))  # has room at any time
    release.set()
    assert [*await asyncio.gather(*accepted), await post("/v2/document", 2 * large)] == [200] * 4
    assert holding == [2 * large, large, SMALL_BYTES, 2 * large]


COUNTED = [("GET", "/documents"), ("GET", "/v2/usage"), ("HEAD", "/download_file/a"), ("POST", "/translate")]
UNCOUNTED = [("GET", path) for path in ("/", "/web/style/text.css", "/docs", "/livez", "/readyz", "/metrics")]


async def answer(method: str, path: str, gate: RequestGate, counts: list[int]) -> httpx.Response:
    """Return the answer to a request; the application notes the number of active requests in `counts`."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        counts.append(gate.active)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"content"})

    middleware = RequestGateMiddleware(application, Settings(model="m"), gate)

    async def with_id(scope: Scope, receive: Receive, send: Send) -> None:
        await middleware({**scope, "state": {"request_id": "1"}}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(with_id), base_url="http://localhost") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(("method", "path"), [*COUNTED, *UNCOUNTED])
async def test_requests_that_do_work_are_counted_and_refused_during_the_shutdown(method: str, path: str) -> None:
    gate, counts = RequestGate(), list[int]()
    counted = (method, path) in COUNTED
    response = await answer(method, path, gate, counts)
    assert (response.status_code, counts, gate.active) == (200, [int(counted)], 0)
    assert response.content == (b"" if method == "HEAD" else b"content")
    assert "connection" not in response.headers
    gate.closed = True
    response = await answer(method, path, gate, counts)
    assert (response.status_code, len(counts)) == ((503, 1) if counted else (200, 2))
    assert response.headers["connection"] == "close"


def test_work_in_progress_is_bounded_for_each_caller_and_in_all() -> None:
    gate = RequestGate()
    gate.limits = dict.fromkeys(WorkKind, (2, 3))

    def refused(kind: WorkKind, caller: str) -> type[ServiceError]:
        with pytest.raises((TooManyRequests, Overloaded)) as raised, gate.admitted(kind, caller):
            pytest.fail("admitted")
        assert int(raised.value.headers["Retry-After"]) > 0
        return raised.type

    with ExitStack() as work:
        for _ in range(2):
            work.enter_context(gate.admitted(WorkKind.READ, "a"))
        assert refused(WorkKind.READ, "a") is TooManyRequests
        work.enter_context(gate.admitted(WorkKind.WRITE, "a"))
        with gate.admitted(WorkKind.READ, "b"):
            assert refused(WorkKind.READ, "b") is Overloaded
        work.enter_context(gate.admitted(WorkKind.READ, "b"))
    for _ in range(3):  # an error frees the place, too
        with suppress(ZeroDivisionError), gate.admitted(WorkKind.READ, "a"), gate.admitted(WorkKind.READ, "a"):
            raise ZeroDivisionError


NOT_ADMITTED = {
    *("/health", "/livez", "/readyz", "/metrics"),
    *("/", "/web/{name:path}", "/docs", "/openapi.json", "/spec"),
    *("/languages", "/models", "/frontend/settings"),  # short answers that do not depend on the request
    "/admin/reload",  # of the operator
}


def test_every_other_route_is_admitted() -> None:
    admitting = {access.admit, access.admit_address}
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema and route.path not in NOT_ADMITTED:
            assert admitting & {dependency.call for dependency in route.dependant.dependencies}, route.path
