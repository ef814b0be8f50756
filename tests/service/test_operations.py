"""What an operator relies on: probes, limits of requests and connections, proxies, browsers, the admin's routes."""

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mt.languages import Direction, DirectionSet
from service.access.api_keys import NewApiKey, make_key
from service.access.database import Database
from service.errors import (
    CannotTranslate,
    DeadlineExceeded,
    NotServing,
    Overloaded,
    ReloadRefused,
    Unavailable,
    install_error_handlers,
)
from service.http.admission import RequestGate
from service.http.connections import MAX_HEADERS, MAX_PIPELINED, Connections
from service.http.middleware import SMALL_BYTES, RequestLimitMiddleware, RequestLimits, install_middleware
from service.metrics import Metrics
from service.readiness import CANARY_CALLER, CANARY_TEXT, Readiness
from service.routes import admin, health
from service.routes import metrics as metrics_route
from service.settings import Settings, SettingsError, load_settings
from service.workers.served_models import ServedModel
from tests.service.app_thread import AppThread
from tests.service.conftest import ROOT, environment

ADMIN = "an-admin-key-of-32-characters-ab"
EN_DE, EN_FR = Direction("en", "de"), Direction("en", "fr")


@dataclass
class Models:
    """A fleet that fails as it is told, and counts its canaries."""

    ready: bool = True
    draining: bool = False
    failure: Exception | None = None
    models: tuple[ServedModel, ...] = (
        ServedModel("a", "1", DirectionSet.of([EN_DE])),
        ServedModel("b", "2", DirectionSet(("en", "de"), ("fr", "de"))),
    )
    canaries: list[tuple[str, str]] = field(default_factory=list)
    hanging: asyncio.Event | None = None

    async def translate_by_each(self, text: str, caller: str, deadline: float) -> None:
        self.canaries.append((text, caller))
        if self.hanging:
            await self.hanging.wait()
        if self.failure:
            raise self.failure

    async def reload(self) -> None:
        if self.failure:
            raise self.failure
        self.models = (self.models[0], replace(self.models[1], version="3"))


def application(models: Models, **settings: Any) -> FastAPI:
    """The routes of this file's subject, and one that says who asked and what it read."""
    metrics = Metrics()
    found = Settings(model="m", **settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        readiness = Readiness(models, interval=0)
        yield {
            "services": SimpleNamespace(settings=found, fleet=models, metrics=metrics, readiness=readiness),
        }
        await readiness.close()

    app = FastAPI(lifespan=lifespan)
    for routes in (health, metrics_route, admin):
        app.include_router(routes.router)

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, Any]:
        size = len(request.state.body)
        return {"size": size, "client": request.client and request.client.host, "url": str(request.url_for("echo"))}

    install_error_handlers(app)
    install_middleware(app, found, metrics, RequestGate())
    return app


@contextmanager
def served(app: ASGIApp, **options: Any) -> Iterator[str]:
    """The application's address on a free port, from a thread of this process."""
    running = AppThread(lambda: app, **{"proxy_headers": False, **options})
    yield running.url
    running.stop()


@contextmanager
def client(models: Models, **settings: Any) -> Iterator[httpx.Client]:
    with (
        served(application(models, **settings), root_path=settings.get("root_path", "")) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        yield client


def until(condition: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("what the test waits for does not happen")


PROBES = ("/livez", "/readyz", "/health")


def statuses(client: httpx.Client) -> list[int]:
    return [client.get(path).status_code for path in PROBES]


def test_probes_of_a_service_that_is_well() -> None:
    with client(Models()) as asked:
        for path in PROBES:
            assert asked.get(path).json() == {"status": "ok"}
            head = asked.head(path)
            assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        (Models(ready=False), "Not ready: the models are not loaded"),
        (Models(draining=True), "Not ready: the service is shutting down"),
        (Models(ready=False, draining=True), "Not ready: the service is shutting down"),
    ],
)
def test_probes_of_one_that_cannot_translate(models: Models, reason: str) -> None:
    with client(models) as asked:
        assert statuses(asked) == [200, 503, 503]
        refused = asked.get("/readyz")
        assert (refused.json()["error"], refused.json()["code"]) == (reason, "not_serving")
        assert int(refused.headers["retry-after"]) >= 1
        assert asked.head("/readyz").status_code == 503
        models.ready, models.draining = True, False
        assert statuses(asked) == [200, 200, 200]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (CannotTranslate("no"), "a short text could not be translated (cannot_translate)"),
        (Unavailable(), "a short text could not be translated (unavailable)"),
        (DeadlineExceeded(), "a short text was not translated within 30 s"),
    ],
)
def test_a_failing_canary_ends_readiness_until_one_passes(failure: Exception, reason: str) -> None:
    models = Models()
    with client(models) as asked:
        assert asked.get("/readyz").status_code == 200
        models.failure = failure
        until(lambda: asked.get("/readyz").status_code == 503)
        assert asked.get("/readyz").json()["error"] == f"Not ready: {reason}"
        assert asked.get("/livez").status_code == 200
        models.failure = None
        until(lambda: asked.get("/readyz").status_code == 200)
        assert {caller for _, caller in models.canaries} == {CANARY_CALLER}
        assert {text for text, _ in models.canaries} == {CANARY_TEXT}


def test_a_full_queue_is_no_failure_and_no_success() -> None:
    async def verdicts() -> list[bool]:
        models, found = Models(), []
        readiness = Readiness(models, interval=0)
        for failure in (Overloaded(1), CannotTranslate("no"), Overloaded(1), None):
            models.failure = failure
            before = len(models.canaries)
            ready(readiness)
            while len(models.canaries) == before:
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            models.failure = Overloaded(1)  # the question sends one more
            found.append(ready(readiness))
            await asyncio.sleep(0.01)
        await readiness.close()
        return found

    assert asyncio.run(verdicts()) == [True, False, False, True]


def ready(readiness: Readiness) -> bool:
    try:
        readiness.check()
    except NotServing:
        return False
    return True


def test_one_canary_at_a_time_and_none_too_soon() -> None:
    async def count(interval: float, hanging: bool) -> int:
        models = Models(hanging=asyncio.Event() if hanging else None)
        readiness = Readiness(models, interval)
        for _ in range(20):
            assert ready(readiness)  # and at once, even while one hangs
            await asyncio.sleep(0)
        await readiness.close()
        return len(models.canaries)

    assert asyncio.run(count(3600, hanging=False)) == 0
    assert asyncio.run(count(0, hanging=True)) == 1


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_reload() -> None:
    models = Models()
    with client(models, admin_key=ADMIN) as asked:
        for headers in ({}, bearer("wrong"), bearer(ADMIN + "a"), {"Authorization": f"Basic {ADMIN}"}):
            refused = asked.post("/admin/reload", headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "invalid_key")
        assert models.models[1].version == "2"
        assert asked.post("/admin/reload", headers=bearer(ADMIN)).json() == {
            "models": [
                {"name": "a", "version": "1", "changed": False, "sources": ["en"], "targets": ["de"]},
                {"name": "b", "version": "3", "changed": True, "sources": ["en", "de"], "targets": ["fr", "de"]},
            ]
        }
        assert not any(each["changed"] for each in asked.post("/admin/reload", headers=bearer(ADMIN)).json()["models"])
        models.failure = ReloadRefused("m/config.json is no JSON")
        refused = asked.post("/admin/reload", headers=bearer(ADMIN))
        assert refused.status_code == ReloadRefused.status
        assert "m/config.json is no JSON" in refused.json()["error"]


def test_without_an_admin_there_is_no_such_route() -> None:
    with client(Models()) as asked:
        assert asked.post("/admin/reload", headers=bearer(ADMIN)).status_code == 404
        assert asked.get("/metrics").status_code == 200


def test_metrics_behind_the_admin_key() -> None:
    with client(Models(), admin_key=ADMIN, public_metrics=False) as asked:
        assert asked.get("/metrics").status_code == 403
        assert asked.head("/metrics", headers=bearer(ADMIN)).status_code == 200
        assert b"mt_requests_total" in asked.get("/metrics", headers=bearer(ADMIN)).content


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"require_key": "true"}, "require_key is set, but database is not"),
        ({"public_metrics": "false"}, "public_metrics is off, but admin_key is not set"),
        ({"admin_key": "hunter2"}, "--admin-key refused; accepted: 16 characters or more"),
        (
            {"allow_origins": "example.org"},
            "'example.org' is not an origin; accepted: an origin such as https://example.org",
        ),
        ({"allow_origins": "https://a.example/path"}, "is not an origin"),
        (
            {"trusted_proxies": "10.0.0.1/8"},
            "has host bits set; accepted: an address or a network such as 10.0.0.1 or 10.0.0.0/8",
        ),
        ({"root_path": "translator/"}, "accepted: a path such as /translator"),
        ({"read_timeout_seconds": "0"}, "accepted: greater than 0"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"model": "m"} | settings)
    assert said in str(caught.value) and "hunter2" not in str(caught.value)


def test_lists_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    monkeypatch.setenv("MT_ADMIN_KEY", "")
    assert load_settings({"model": "m"}).admin_key is None, "an empty variable is no key"
    found = load_settings({"model": "m", "allow_origins": "https://a.example,http://b:8080", "admin_key": ADMIN})
    assert found.trusted_proxies == ("10.0.0.0/8", "::1")
    assert found.allow_origins == ("https://a.example", "http://b:8080")
    assert ADMIN not in repr(found)


def test_pages_of_other_sites_may_use_the_service_unless_the_operator_restricts_them() -> None:
    origin = {"Origin": "https://a.example"}
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for settings in ({}, {"host": "0.0.0.0", "allow_origins": ()}):  # a loopback address is for this machine only
        with client(Models(), **settings) as asked:
            assert "access-control-allow-origin" not in asked.post("/echo", headers=origin).headers
    with client(Models(), host="0.0.0.0") as asked:
        assert asked.post("/echo", headers=origin).headers["access-control-allow-origin"] == "*"
        assert asked.options("/echo", headers=origin | asking).status_code == 200
        assert "access-control-allow-credentials" not in asked.options("/echo", headers=origin | asking).headers
    with client(Models(), allow_origins=("https://a.example",)) as asked:
        assert asked.options("/echo", headers=origin | asking).status_code == 200
        refused = asked.post("/nothing", headers=origin)
        assert refused.headers["access-control-allow-origin"] == "https://a.example"
        assert "x-request-id" in refused.headers["access-control-expose-headers"].lower()
        assert "access-control-allow-origin" not in asked.post("/echo", headers={"Origin": "https://b.example"}).headers


@pytest.mark.parametrize(
    ("trusted", "forwarded", "known_as"),
    [
        ((), "192.0.2.7", "127.0.0.1"),
        (("10.0.0.0/8",), "192.0.2.7", "127.0.0.1"),
        (("127.0.0.1",), "192.0.2.7", "192.0.2.7"),
        (
            ("127.0.0.0/8", "10.0.0.0/8"),
            "203.0.113.9, 192.0.2.7, 10.1.2.3",
            "192.0.2.7",
        ),  # the first is the client's own
        (("127.0.0.1",), "", "127.0.0.1"),
    ],
)
def test_only_trusted_proxies_say_who_asks(trusted: tuple[str, ...], forwarded: str, known_as: str) -> None:
    with client(Models(), trusted_proxies=trusted) as asked:
        found = asked.post("/echo", headers={"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}).json()
        assert found["client"] == known_as
        assert found["url"].startswith("https://" if trusted and trusted[0] != "10.0.0.0/8" else "http://")


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "localhost:80", 200),
        ({}, "192.0.2.1", 200),
        ({}, "[::1]:8000", 200),
        ({}, "evil.example", 400),
        ({"host": "0.0.0.0"}, "any.example", 200),
        ({"host": "0.0.0.0", "allowed_hosts": ("mt.example",)}, "MT.example:80", 200),
        ({"allowed_hosts": ("mt.example",)}, "evil.example", 400),
    ],
)
def test_hosts_by_which_the_service_may_be_addressed(settings: dict[str, Any], host: str, status: int) -> None:
    with client(Models(), **settings) as asked:
        assert asked.get("/livez", headers={"Host": host}).status_code == status


def test_proxies_that_may_be_clients() -> None:
    found = load_settings({"model": "m", "trusted_proxies": "*, 10.0.0.0/8, 10.1.0.0/16, 10.0.0.1"})
    assert found.broad_proxies == ("*", "10.0.0.0/8")


def test_a_root_path() -> None:
    """A proxy shows the service under a path, which it takes away before it asks."""
    with client(Models(), root_path="/translator") as asked:
        assert asked.get("/livez").status_code == 200
        assert "x-trace-id" in asked.get("/v2/nothing").headers
        assert asked.post("/echo").json()["url"].endswith("/translator/echo")
        assert asked.get("/openapi.json").json()["servers"] == [{"url": "/translator"}]


def test_headers_for_browsers_and_for_those_who_trace() -> None:
    with client(Models()) as asked:
        for response in (asked.get("/livez"), asked.get("/nothing"), asked.post("/echo", content=b"a" * 2_000_000)):
            policy = response.headers["content-security-policy"]
            assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
            assert "http" not in policy and "unsafe" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "x-trace-id" not in response.headers
        for path in ("/v2/translate", "/v2/nothing", "/v3/glossaries"):
            traced = asked.get(path)
            assert traced.headers["x-trace-id"] == traced.headers["x-request-id"]


async def read(messages: list[Message], headers: list[tuple[bytes, bytes]], limits: RequestLimits) -> tuple[int, bytes]:
    """Status, and the body that the application saw. A pause comes where there are no messages left."""
    sent: list[Message] = []
    seen = b""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal seen
        seen = scope["state"]["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return messages.pop(0) if messages else await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/echo",
        "query_string": b"",
        "http_version": "1.0",
        "headers": headers,
        "state": {"request_id": "r"},
    }
    await RequestLimitMiddleware(app, limits)(scope, receive, send)
    return sent[0]["status"], seen


def part(body: bytes, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


LENGTH = b"content-length"


@pytest.mark.parametrize(
    ("messages", "headers", "status"),
    [
        ([part(b"")], [], 200),
        ([part(b"a" * 100)], [(LENGTH, b"100")], 200),
        ([part(b"a" * 50, more=True), part(b"a" * 50)], [], 200),
        ([part(b"a" * 100, more=True), part(b"")], [], 200),
        ([part(b"a" * 101)], [], 413),
        ([part(b"a" * 101)], [(LENGTH, b"5")], 413),
        ([], [(LENGTH, b"101")], 413),  # it is not even read
        ([part(b"a" * 60, more=True), part(b"a" * 60, more=True)], [], 413),
        ([part(b"a")], [(LENGTH, b"")], 400),
        ([part(b"a")], [(LENGTH, b"-1")], 400),
        ([part(b"a")], [(LENGTH, b"1e3")], 400),
        ([part(b"a")], [(LENGTH, "٣".encode())], 400),
        ([part(b"a")], [(LENGTH, b"9" * 5000)], 431),
        ([part(b"a")], [(LENGTH, b"9" * 30)], 400),
        ([part(b"a")], [(b"x", b"a" * 1000)], 431),
        ([part(b"a")], [(b"x", b"")] * 1000, 431),
        ([part(b"a", more=True)], [], 408),
        ([], [(LENGTH, b"50")], 408),
    ],
)
def test_limits_of_a_request(messages: list[Message], headers: list[tuple[bytes, bytes]], status: int) -> None:
    sent = b"".join(message["body"] for message in messages)
    limits = RequestLimits(
        head_bytes=900, body_bytes=100, file_bytes=100, buffered_bytes=1000, read_timeout_seconds=0.05
    )
    found, seen = asyncio.run(read(messages, headers, limits))
    assert (found, seen) == (status, sent if status == 200 else b"")


def test_uploads_may_be_larger_and_all_bodies_together_are_bounded() -> None:
    large = SMALL_BYTES + 1
    limits = RequestLimits(
        900, body_bytes=large, file_bytes=2 * large, buffered_bytes=3 * large, read_timeout_seconds=1
    )
    holding: list[int] = []

    async def scenario() -> list[int]:
        release = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            holding.append(len(scope["state"]["body"]))
            await release.wait()
            await Response("")(scope, receive, send)

        limited = RequestLimitMiddleware(app, limits)

        async def post(path: str, size: int) -> int:
            found: list[int] = []

            async def receive() -> Message:
                return {"type": "http.request", "body": b"a" * size, "more_body": False}

            async def send(message: Message) -> None:
                found.append(message.get("status", 0))

            scope: dict[str, Any] = {
                "type": "http",
                "method": "POST",
                "path": path,
                "query_string": b"",
                "http_version": "1.0",
                "headers": [],
                "state": {"request_id": "a"},
            }
            await limited(scope, receive, send)
            return found[0]

        held = [asyncio.ensure_future(post(*one)) for one in (("/translate_file", 2 * large), ("/translate", large))]
        while len(holding) < 2:
            await asyncio.sleep(0)
        refused = [await post("/translate", large + 1), await post("/v2/document", 2 * large + 1)]
        refused.append(await post("/translate", large))  # no room
        held.append(asyncio.ensure_future(post("/translate", SMALL_BYTES)))  # has room at any time
        while len(holding) < 3:
            await asyncio.sleep(0)
        release.set()
        return [*refused, *(await asyncio.gather(*held)), await post("/v2/document", 2 * large)]

    assert asyncio.run(scenario()) == [413, 413, 503, 200, 200, 200, 200]
    assert holding == [2 * large, large, SMALL_BYTES, 2 * large]


def exchange(url: str, *parts: bytes) -> bytes:
    """What comes back until the other side closes."""
    with closing(connect(url)) as connection:
        for each in parts:
            connection.sendall(each)
            time.sleep(0.05)
        answer = b""
        while received := connection.recv(65_536):
            answer += received
        return answer


def read_all(connection: socket.socket) -> int:
    """Return the number of bytes until the other side closes or resets the connection."""
    received = 0
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 20):
            received += len(part)
    return received


def connect(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60)


POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ((b"",), b""),
        ((b"GET /livez HT",), b""),
        (
            (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /li", b"v", b"e"),
            b"HTTP/1.1 200 OK",
        ),  # a second one, slowly
        ((POST + b"Content-Length: 5\r\n\r\n", b"a", b"b"), b"HTTP/1.1 408 Request Timeout"),
        ((POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"), b"HTTP/1.1 408 Request Timeout"),
    ],
)
def test_what_comes_slowly_is_closed(parts: tuple[bytes, ...], answer: bytes) -> None:
    app = application(Models(), read_timeout_seconds=0.5)
    with served(app, http=Connections(0.5, 100).protocol(), timeout_keep_alive=3600) as url:
        assert exchange(url, *parts).startswith(answer) if answer else exchange(url, *parts) == b""


def test_a_malformed_chunk_during_the_answer_ends_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """The application waits, without reading the body, after it has started to answer."""
    raised: list[BaseException] = []
    finished = Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            await asyncio.sleep(0.3)
            await send({"type": "http.response.body", "body": b"b", "more_body": False})
        except Exception as error:
            raised.append(error)
        finally:
            finished.set()

    with served(app, http=Connections(3, 100).protocol(), lifespan="off") as url:
        found = exchange(url, POST + b"Transfer-Encoding: chunked\r\n\r\n", b"no number\r\n")
        assert finished.wait(10)
    assert found.startswith(b"HTTP/1.1 200 OK")
    assert raised == []
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_many_small_chunks_and_requests_in_one_packet() -> None:
    """A body in 1,000 chunks of one byte, then MAX_PIPELINED requests."""
    text = json.dumps(body(q="a" * 920))
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in text.encode()) + b"0\r\n\r\n"
    head = POST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    probes = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * (MAX_PIPELINED - 1)
    last = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with served(application(Models()), http=Connections(3, 100).protocol()) as url:
        answers = exchange(url, head + chunks + probes + last)
    assert answers.count(b"HTTP/1.1 200 OK") == 1 + MAX_PIPELINED


@pytest.mark.parametrize(("headers", "status"), [(MAX_HEADERS - 1, b"200"), (MAX_HEADERS + 1, b"431"), (9000, b"431")])
def test_the_number_of_headers_is_limited(headers: int, status: bytes) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * (headers - 2) + b"Connection: close\r\n"
    with served(application(Models()), http=Connections(3, 100).protocol()) as url:
        assert exchange(url, head + b"\r\n").startswith(b"HTTP/1.1 " + status)
        if status == b"431":
            assert exchange(url, head + b"a: b\r\n").startswith(b"HTTP/1.1 431")  # before the head has ended


def test_who_does_not_read_is_cut_off() -> None:
    """After 0.3 s without progress, also with answers that wait behind one another."""
    app = application(Models())

    @app.get("/large")
    async def large() -> Response:
        return Response(b"a" * 3_000_000)

    connections = Connections(0.3, limit=5)
    with served(app, http=connections.protocol(), timeout_keep_alive=3600) as url:
        request = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
        idle, slow = connect(url), connect(url)
        idle.sendall(request * 3)
        slow.sendall(request)
        received = 0
        while received < 3_000_000:  # in longer than 0.3 s
            received += len(slow.recv(250_000))
            time.sleep(0.05)
        until(lambda: not connections.open)
        with closing(idle), closing(slow):
            assert read_all(idle) < 9_000_000  # all three answers


def body(**fields: Any) -> dict[str, Any]:
    return {"q": "The dog sees the cat.", "source": "en", "target": "de"} | fields


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def new_key(path: Path, name: str, **wanted: Any) -> str:
    with Database.open(path) as store:
        return store.run_sync(lambda connection: make_key(connection, NewApiKey(name, **wanted)))[0]


def test_rates_hold_back_work_and_never_probes(in_thread: Callable[..., Any], path: Path) -> None:
    """With a full queue besides."""
    key = new_key(path, "wiki", rate=2)
    running = in_thread(anonymous_rate=1, max_pending_requests=1, database=path)
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as asked, ThreadPoolExecutor(2) as pool:
        try:
            accepted = [pool.submit(asked.post, "/translate", json=body())]
            until(lambda: running.pending == 1)
            accepted.append(
                pool.submit(asked.post, "/translate", json=body(api_key=key, q="For callers who hold less."))
            )
            until(lambda: running.pending == 2)
            assert asked.post("/translate", json=body(api_key=key, q="The queue is full.")).status_code == 503
            for fields, said in (({"api_key": key}, "Slowdown: 2 per 1 minute"), ({}, "Slowdown: 1 per 1 minute")):
                refused = asked.post("/translate", json=body(**fields))
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
                assert refused.json()["error"].startswith(said)
                assert 1 <= int(refused.headers["retry-after"]) <= 61
            for _ in range(20):
                assert [asked.get(probe).status_code for probe in (*PROBES, "/metrics")] == [200] * 4
        finally:
            running.control.open()
        assert [each.result().status_code for each in accepted] == [200, 200]


@pytest.mark.system
def test_quotas_in_both_dialects_and_after_a_restart(
    start_service: Callable[..., Any], small_model: Path, path: Path
) -> None:
    key = new_key(path, "wiki", quota=50)
    deepl = {"Authorization": f"DeepL-Auth-Key {key}"}
    for used in (42, 50):
        service = start_service(small_model, MT_DATABASE=str(path), MT_REQUIRE_KEY="true")
        with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as asked:
            if used == 42:
                for _ in range(2):  # the second comes from the cache, and is charged as well
                    assert asked.post("/translate", json=body(api_key=key)).status_code == 200
            refused = asked.post("/translate", json=body(api_key=key))
            assert (refused.status_code, refused.json()["code"]) == (403, "quota_exceeded")
            refused = asked.post("/v2/translate", json={"text": ["a" * 21], "target_lang": "DE"}, headers=deepl)
            assert (refused.status_code, refused.json()["code"]) == (456, "quota_exceeded")
            assert asked.post("/translate", json=body(api_key=key, q="1234", target="zz")).status_code == 400
            assert asked.get("/v2/usage", headers=deepl).json()["character_count"] == 42  # what fails costs nothing
            if used == 50:
                assert asked.post("/translate", json=body(api_key=key, q="12345678")).status_code == 200
                assert asked.post("/translate", json=body(api_key=key, q="1")).status_code == 403
        assert service.terminate() == 0
        with Database.open(path) as store:
            assert store.run_sync(lambda connection: connection.execute("SELECT characters FROM usage").fetchall()) == [
                (used,)
            ]


@pytest.mark.system
def test_a_database_that_is_none(small_model: Path, tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"rubbish " * 1000)
    command = [sys.executable, "-m", "service", "--model", str(small_model), "--port", "0", "--database", str(rubbish)]
    done = subprocess.run(command, cwd=ROOT, env=environment({}), capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith(f"error: the database {rubbish} cannot be used: file is not a database")


@pytest.mark.slow
@pytest.mark.system
def test_500_slow_sockets(start_service: Callable[..., Any], small_model: Path) -> None:
    """A promise in seconds: /livez within 100 ms all the while, and those who are slow are sent away within 10."""
    service = start_service(small_model)
    slow = []
    begun = time.monotonic()
    for number in range(500):
        slow.append(connect(service.url))
        slow[-1].sendall((b"", b"GET /translate HT", POST, POST + b"Content-Length: 9\r\n\r\na")[number % 4])
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as asked:
        seconds = []
        while time.monotonic() - begun < 8:
            before = time.perf_counter()
            assert asked.get("/livez").status_code == 200
            seconds.append(time.perf_counter() - before)
            time.sleep(0.05)
        assert asked.post("/translate", json=body()).status_code == 200
    print(
        f"500 slow sockets: /livez took {1000 * statistics.median(seconds):.1f} ms, at most {1000 * max(seconds):.1f}"
    )
    assert statistics.quantiles(seconds, n=20)[-1] < 0.1
    for each in slow:
        each.settimeout(20)
        said = each.recv(65_536)
        assert said == b"" or said.startswith(b"HTTP/1.1 408")
        each.close()
