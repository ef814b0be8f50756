"""Requests as bytes: what is refused, what stays open; the limits of connections, of time and of unread answers."""

import asyncio
import contextlib
import gc
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.errors import HEAD_BYTES, NotFound, ServiceError
from service.http.admission import RequestGate
from service.http.connections import MAX_PIPELINED, NO_LINGER, Connection, Connections
from service.http.events import EventStream
from service.http.middleware import install_middleware
from service.http.parts import answer_in_parts
from service.http.problems import install_error_handlers
from service.metrics import Metrics
from service.settings import Settings
from tests.service.app_thread import AppThread

GET = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Service(AppThread):
    """An application with our connections and middleware.

    `begun` counts the requests to /large and /wait, `cancelled` those to /wait whose client disconnected.
    """

    def __init__(self, seconds: float = 3600, limit: int = 100, unread: int = 10_000_000) -> None:
        self.connections = Connections(seconds, limit, unread)
        self.seconds = seconds
        self.begun = self.cancelled = 0
        super().__init__(self._make, http=self.connections.protocol(), ws="none", timeout_keep_alive=3600)

    def _make(self) -> FastAPI:
        app = FastAPI()

        @app.get("/echo")
        @app.post("/echo")
        async def echo(request: Request) -> str:
            return str(request.state.body.decode())

        @app.get("/large")
        async def large() -> str:
            self.begun += 1
            return "a" * 10_000_000  # more than the kernel's buffers

        @app.get("/parts")
        async def parts(request: Request) -> Response:
            self.begun += 1
            return answer_in_parts(request, [b"a" * 10_000] * 1000)

        @app.get("/deleted")
        async def deleted() -> StreamingResponse:
            async def parts() -> AsyncIterator[str]:
                yield "a"
                raise NotFound("deleted meanwhile")

            return StreamingResponse(parts())

        @app.post("/events")
        async def events(request: Request) -> EventStream:
            async def events() -> AsyncGenerator[bytes, None]:
                try:
                    await asyncio.sleep(60)
                    yield b""
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise

            self.begun += 1
            return EventStream(b"event: a\n\n", events())

        @app.post("/wait")
        async def wait(request: Request, turns: int) -> str:
            """As `while_connected` of the service, which does not call `receive`."""
            self.begun += 1
            for _ in range(turns):
                await asyncio.sleep(0.01)
                if request.scope["state"]["disconnection"].has_left:
                    self.cancelled += 1
                    break
            return "done"

        install_error_handlers(app)
        settings = Settings(model=(Path("unused"),), read_timeout_seconds=self.seconds)
        install_middleware(app, settings, Metrics(), RequestGate())
        return app

    @property
    def busy(self) -> int:
        """The number of connections that have sent the head of a request."""
        return len(self.connections.open) - len(self.connections.waiting)

    @property
    def tasks(self) -> int:
        """The number of requests that are being answered."""
        return len(self._server.server_state.tasks)

    def connect(self, receive_bytes: int = 0) -> socket.socket:
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def send(self, data: bytes, answers: int = 0, half_close: bool = False) -> tuple[list[int], bool, bytes]:
        """Send bytes. Return the statuses of the answers, whether the connection is closed then, and all bytes.

        After so many `answers`, another request is sent: the connection was open if that one is answered, too.
        """
        with self.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            received = b""
            while not 0 < answers <= len(statuses(received)) and (more := receive(connection)):
                received += more
            with contextlib.suppress(OSError):
                connection.sendall(GET + b"Connection: close\r\n\r\n" if answers else b"")
            found = statuses(received + read_all(connection))
        is_open = 0 < answers < len(found)
        return found[:-1] if is_open else found, not is_open, received


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 ([2-5]\d\d) ", received)]


def receive(connection: socket.socket) -> bytes:
    """Return the next bytes, and none when the other side has closed or reset the connection, or says nothing."""
    try:
        return connection.recv(1 << 20)
    except (ConnectionResetError, TimeoutError):
        return b""


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(partial(receive, connection), b""))


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as found:
        yield found


REQUESTS: list[tuple[bytes, list[int], bool]] = [
    (GET + b"\r\n", [200], False),
    ((GET + b"\r\n") * 3, [200] * 3, False),
    (GET + b"Connection: close\r\n\r\n", [200], True),
    ((GET + b"\r\n") * MAX_PIPELINED, [200] * MAX_PIPELINED, False),
    (GET + b"X: a\r\n" * 256 + b"\r\n", [200], False),
    (GET + b"X: a\r\n" * 300 + b"\r\n", [431], True),
    ((GET + b"X: a\r\n" * 100 + b"\r\n") * 2, [200, 200], False),
    ((GET + b"X: a\r\n" * 100 + b"\r\n") * 3, [200, 200, 431], True),
    ((GET + b"X-Name: an ordinary value\r\n" * 12 + b"\r\n") * 20, [200] * 20, False),
    (GET + b"X: a\r\n" * 9000, [431], True),  # before the head has ended
    (POST + b"Content-Length: 2\r\n\r\nhi", [200], False),
    (CHUNKED + b"1\r\na\r\n" * 250 + END, [200], False),
    (CHUNKED + b"1\r\na\r\n" * 300 + END, [400], True),
    (CHUNKED + (b"40\r\n" + b"a" * 64 + b"\r\n") * 20_000 + END, [413], False),
    (CHUNKED + (b"40\r\n" + b"a" * 64 + b"\r\n") * 8000 + END, [200], False),
    (CHUNKED + (b"1E\r\n" + b"a" * 30 + b"\r\n") * 400 + END, [200], False),
    (CHUNKED + (b"1\r\na\r\n" * 200 + b"4000\r\n" + b"a" * 16_384 + b"\r\n") * 5 + END, [200], False),
    (CHUNKED + b"1\r\na\r\n0\r\n" + b"X: a\r\n" * 200 + b"\r\n", [200], False),
    (CHUNKED + b"1\r\na\r\n0\r\n" + (b"X: " + b"a" * 61 + b"\r\n") * 300 + b"\r\n", [400], True),
    (CHUNKED + b"1\r\na\r\n0\r\nX: " + b"a" * 16 * HEAD_BYTES + b"\r\n\r\n", [431], True),
    (POST + b"Content-Length: 2000000\r\n\r\n" + b"a" * 2_000_000, [413], False),  # its end is no head
    (CHUNKED + b"1\r\na\r\n" + END, [200], False),
    (CHUNKED + b"0\r\nX: a\r\n\r\n", [200], False),
    (POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi", [200], False),
    (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + GET + b"\r\n", [200, 200], False),
    (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + END + GET + b"\r\n", [400], True),
    (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + END + GET + b"\r\n", [400], True),
    (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", [400], True),
    *(
        (POST + b"Content-Length: " + size + b"\r\n\r\n", [400], True)
        for size in (b"-1", b"", b"1e3", "٣".encode(), b"9" * 30)
    ),
    (POST + b"Transfer-Encoding: xchunked\r\n\r\n" + END, [400], True),
    (POST + b"Transfer-Encoding : chunked\r\n\r\n" + END, [400], True),
    (CHUNKED + b"zz\r\n", [400], True),
    (GET + b"X: a\r\n b\r\n\r\n", [400], True),
    (GET.replace(b"\r\n", b"\n") + b"\n", [400], True),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", [400], True),
    (b"A" * 60_000 + b" / HTTP/1.1\r\nHost: a\r\n\r\n", [400], True),
    (b"\x16\x03\x01\x02\x00", [400], True),
    (GET + b"\r\n" + b"\x16\x03\x01\x02\x00", [200, 400], True),
    ((GET + b"\r\n") * (MAX_PIPELINED + 8), [200] * (MAX_PIPELINED + 1) + [400], True),
    ((POST + b"Content-Length: 9000\r\n\r\n" + b"a" * 9000) * 8, [200] * 8, False),
    ((POST + b"Content-Length: 9000\r\n\r\n" + b"a" * 9000) * 9, [200, 400], True),
    (GET + b"\r\n" + CHUNKED + (b"4000\r\n" + b"a" * 16_384 + b"\r\n") * 5, [200, 400], True),
    (GET + b"X: " + b"a" * 2 * HEAD_BYTES + b"\r\n\r\n", [431], True),
    (b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", [431], True),
    (b"GET /" + b"a" * 2 * HEAD_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", [431], True),
    (GET + b"Host: other\r\n\r\n", [400], False),
    (b"GET /echo HTTP/1.1\r\n\r\n", [400], False),
    (b"GET /echo HTTP/1.0\r\n\r\n", [200], True),
    (b"GET /echo HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", [200], True),
]
"""Bytes, the statuses of the answers, and whether the connection is closed then."""


@pytest.fixture(scope="module")
def outcomes(service: Service) -> list[tuple[list[int], bool, bytes]]:
    with ThreadPoolExecutor(len(REQUESTS)) as pool:
        return list(pool.map(lambda row: service.send(row[0], len(row[1])), REQUESTS))


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_which_bytes_are_requests(outcomes: list[tuple[list[int], bool, bytes]], number: int) -> None:
    data, statuses, closed = REQUESTS[number]
    assert outcomes[number][:2] == (statuses, closed), (data[:80], outcomes[number][2])


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (GET + b"X: a\r\n" * 300 + b"\r\n", 431, "head_too_large"),
        (b"A" * 60_000 + b" / HTTP/1.1\r\n\r\n", 400, "invalid_request"),
    ],
)
def test_a_refused_request_has_an_id(service: Service, request_bytes: bytes, status: int, code: str) -> None:
    structlog.reset_defaults()
    with capture_logs() as lines:
        _, _, received = service.send(request_bytes)
    head, _, body = received.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (status, code)
    assert f"x-request-id: {problem['request_id']}".encode() in head
    (line,) = [line for line in lines if line["event"] == "request"]
    assert (line["status"], line["method"]) == (status, "other")
    assert len(json.dumps(line)) < 300


def left_in_memory() -> list[object]:
    kinds = (ServiceError, Connection, RequestResponseCycle)
    return [one for one in gc.get_objects() if issubclass(type(one), kinds)]


WAIT = POST.replace(b"echo", b"wait?turns=30") + b"Content-Length: 0\r\n\r\n"


KEPT = [
    GET + b"X: a\r\n" * 300 + b"\r\n",
    b"A" * 60_000 + b" / HTTP/1.1\r\n\r\n",
    POST + b"Upgrade: x\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 300,
    WAIT + GET + b"\r\n" + CHUNKED + b"1\r\na\r\n" * 300,  # closes the connection without an answer to the last one
    WAIT + CHUNKED + b"1\r\na\r\n" * 300,
    WAIT + GET + b"X: a\r\n" * 300 + b"\r\n",
    WAIT + (GET + b"\r\n") * (MAX_PIPELINED + 8),
    WAIT + POST + b"Connection: close\r\nContent-Length: 1000\r\n\r\n" + b"a" * 1000,
    WAIT + POST + b"Content-Length: 70000\r\n\r\n" + b"a" * 70_000,
    CHUNKED.replace(b"Host", b"Connection: Upgrade\r\nUpgrade: x\r\nHost") + b"1\r\na\r\n" * 300,
]
"""Bytes of requests that are refused, or wait for the answer to another."""


def send_and_close(service: Service, data: bytes, at_once: bool) -> None:
    """Close the connection after the answers, or `at_once` when the first request waits for its answer."""
    begun = service.begun
    with service.connect() as connection:
        connection.sendall(data)
        if at_once:
            service.until(lambda: service.begun > begun)
        else:
            read_all(connection)


@pytest.mark.skipif("RECORDED_LOOP" in os.environ, reason="the recorder holds frames")
@pytest.mark.parametrize("leaves", [False, True])
def test_refused_and_waiting_requests_leave_no_cycle(service: Service, leaves: bool) -> None:
    """The bytes that were received would stay in memory until a full garbage collection."""
    service.until(lambda: not service.connections.open)
    gc.collect()
    gc.disable()
    try:
        before = left_in_memory()
        for data in KEPT:
            send_and_close(service, data, at_once=leaves and data.startswith(WAIT))
        service.until(lambda: not service.connections.open and not service.tasks)
        service.do(lambda: None)
        assert [one for one in left_in_memory() if not any(one is other for other in before)] == []
    finally:
        gc.enable()


def test_a_read_calls_the_connection_a_few_hundred_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bytes are, the calls for one read are few, so that reads of many connections take little time."""
    calls = Counter[str]()
    for name in ("on_body", "on_header"):
        method = getattr(Connection, name)

        def counted(*arguments: Any, method: Callable[..., None] = method) -> None:
            calls["all"] += 1
            method(*arguments)

        monkeypatch.setattr(Connection, name, counted)
    for data in (
        CHUNKED + b"1\r\na\r\n" * 19_900,
        CHUNKED + b"1\r\na\r\n0\r\n" + b"a: b\r\n" * 19_898,
        (GET + b"a: b\r\n" * 250 + b"\r\n") * 31,
    ):
        calls.clear()
        with Service() as service:
            service.send(data)
        assert 256 <= calls["all"] <= 600


def test_chunks_that_arrive_together_are_passed_on_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn copies the whole body for each piece."""
    passed, on_body = list[int](), HttpToolsProtocol.on_body

    def counted(connection: HttpToolsProtocol, body: bytes) -> None:
        passed.append(len(body))
        on_body(connection, body)

    monkeypatch.setattr(HttpToolsProtocol, "on_body", counted)
    with Service() as service:
        sent = CHUNKED + (b"40\r\n" + b"a" * 64 + b"\r\n") * 200 + END + POST + b"Content-Length: 2\r\n\r\nhi"
        assert service.send(sent, 2)[0] == [200, 200]
    assert sum(passed) == 64 * 200 + 2
    assert len(passed) <= 10  # one for each read of the socket


def test_a_download_of_what_is_deleted_meanwhile_is_broken_off_and_is_no_defect(service: Service) -> None:
    structlog.reset_defaults()
    with capture_logs() as lines:
        statuses, closed, received = service.send(GET.replace(b"echo", b"deleted") + b"\r\n")
    assert (statuses, closed) == ([200], True)
    assert received.endswith(b"\r\n\r\n1\r\na\r\n")  # without the last chunk, of which clients make an error
    assert [(line["event"], line["status"], line["code"]) for line in lines] == [("request", 200, "not_found")]


def test_a_client_that_closes_only_its_own_end_gets_its_answer(service: Service) -> None:
    cancelled = service.cancelled
    statuses, closed, received = service.send(WAIT, half_close=True)
    assert (statuses, closed) == ([200], True), received
    assert b'"done"' in received and b" 100 Continue" in received and service.cancelled == cancelled
    for version in (b"1.1", b"1.0"):  # of the request that waits
        data = WAIT + GET.replace(b"1.1", version) + b"\r\n"
        assert service.send(data, half_close=True)[:2] == ([200, 200], True)


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize(
    ("size", "pipelined", "late"),
    [
        (0, b"", b""),
        (0, GET + b"\r\n", b""),
        (0, (GET + b"\r\n") * 3, b""),
        (300_000, b"", b""),
        (0, b"", GET + b"\r\n"),
        (0, b"", (GET + b"\r\n") * 3),
        (0, b"", POST + b"Content-Length: 100\r\n\r\nabc"),
        (0, b"", b"\0\0BAD\r\n\r\n"),
        (-1, b"", b""),
    ],
)
def test_a_client_that_closes_both_ends_is_noticed(
    service: Service, size: int, pipelined: bytes, late: bytes, resets: bool
) -> None:
    """Also after a long body, or while a request waits, as uvicorn then pauses its reading; -1: HTTP/1.0."""
    begun, cancelled = service.begun, service.cancelled
    connection = service.connect()
    head = POST.replace(b"echo", b"wait?turns=5000") + b"Content-Length: %d\r\n\r\n" % max(0, size)
    connection.sendall((head if size >= 0 else head.replace(b"1.1", b"1.0")) + b"a" * size + pipelined)
    service.until(lambda: service.begun > begun)
    if late:
        time.sleep(0.05)
        connection.sendall(late)
        time.sleep(0.05)
    if resets:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    connection.close()
    service.until(lambda: service.cancelled > cancelled)
    assert service.cancelled == cancelled + 1


@pytest.mark.parametrize("path", [b"wait?turns=5000", b"events"])
def test_a_client_that_closes_first_its_own_end_is_noticed(service: Service, path: bytes) -> None:
    begun, cancelled = service.begun, service.cancelled
    connection = service.connect()
    connection.sendall(POST.replace(b"echo", path) + b"Content-Length: 0\r\n\r\n")
    service.until(lambda: service.begun > begun)
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(0.5)
    while receive(connection):  # a connection whose bytes are not read is reset when it is closed
        pass
    connection.close()
    service.until(lambda: service.cancelled > cancelled)
    assert service.cancelled == cancelled + 1


def test_the_connection_without_a_head_that_has_waited_longest_makes_room() -> None:
    with Service(limit=5) as service:
        busy = [service.connect() for _ in range(2)]
        for connection in busy:
            connection.sendall(POST + b"Content-Length: 2\r\n\r\n")
        service.until(lambda: service.busy == 2)
        idle = [service.connect() for _ in range(30)]
        idle[-1].sendall(GET + b"\r\n")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200")
        assert idle[0].recv(100) == b""
        for connection in busy:
            connection.sendall(b"hi")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("before", [b"", GET + b"\r\n"], ids=["first", "pipelined"])
def test_unfinished_bodies_make_room_the_oldest_first(before: bytes) -> None:
    with Service(limit=5) as service, contextlib.ExitStack() as stack:
        unfinished = []
        for _ in range(5):
            unfinished.append(stack.enter_context(service.connect()))
            unfinished[-1].settimeout(5)
            unfinished[-1].sendall(before + POST + b"Content-Length: 2\r\n\r\n")
            service.until(lambda: service.busy == len(unfinished))
        assert service.send(GET + b"\r\n", 1)[0] == [200]
        assert statuses(read_all(unfinished[0])) == [200] * bool(before)
        unfinished[-1].sendall(b"hi")
        service.until(lambda: len(service.connections.receiving) == 3)
        probe = stack.enter_context(service.connect())
        for _ in range(5):  # each closes an older one, and not the probe, which has not yet sent its head
            other = stack.enter_context(service.connect())
            other.sendall(GET + b"\r\n" + POST + b"Content-Length: 2\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")
        probe.sendall(GET + b"\r\n")
        assert probe.recv(100).startswith(b"HTTP/1.1 200")


def test_a_new_connection_is_closed_while_all_others_are_busy() -> None:
    with Service(limit=2) as service:
        busy = []
        for _ in range(2):
            busy.append(service.connect())
            busy[-1].sendall(POST.replace(b"/echo", b"/wait?turns=1000") + b"Content-Length: 2\r\n\r\nhi")
            service.until(lambda: service.begun == len(busy))
        assert service.send(GET + b"\r\n", 1)[0] == []
        busy.pop().close()
        service.until(lambda: service.busy == len(busy))
        assert service.send(GET + b"\r\n", 1)[0] == [200]
        for connection in busy:
            connection.close()


def test_slow_clients_are_closed() -> None:
    """One that reads slowly, but goes on reading, is not."""
    with Service(seconds=0.5) as service, Service(seconds=3) as other:
        slow = [*(service.connect(4096) for _ in range(6)), other.connect()]
        slow[1].sendall(b"GET / HT")
        slow[2].sendall(GET + b"\r\n")  # and then no other request
        slow[3].sendall(POST + b"Content-Length: 2\r\n\r\nh")
        slow[4].sendall(CHUNKED + b"1\r\na\r\n")
        for connection in slow[5:]:
            connection.sendall((GET + b"\r\n").replace(b"echo", b"large"))
        received = 0
        while received < 10_000_000:  # in longer than 3 s
            received += len(slow[6].recv(1 << 19))
            time.sleep(0.2)
        answers = [read_all(connection) for connection in slow[:5]]
        assert [answer.partition(b"\r\n")[0][9:12] for answer in answers] == [b"", b"", b"200", b"408", b"408"]
        with pytest.raises(ConnectionResetError):  # noqa: PT012
            while slow[5].recv(1 << 16):
                pass
        slow[6].close()
        service.until(lambda: not service.connections.open and not other.connections.open)


def test_an_unfinished_body_that_the_server_does_not_read_is_not_late() -> None:
    with Service(seconds=0.2) as service, service.connect() as connection:
        head = POST.replace(b"echo", b"wait?turns=100") + b"Content-Length: 0\r\n\r\n"
        connection.sendall(head + POST + b"Content-Length: 2\r\n\r\nh")
        service.until(lambda: service.begun == 1)
        assert statuses(read_all(connection)) == [200, 408]


def test_a_malformed_chunk_during_the_answer_ends_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """The application waits, without reading the body, after it has started to answer."""
    raised: list[BaseException] = []
    sent, finished = asyncio.Event(), Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            await sent.wait()
            await send({"type": "http.response.body", "body": b"b", "more_body": False})
        except Exception as error:
            raised.append(error)
        finally:
            finished.set()

    with (
        AppThread(lambda: app, http=Connections(60, 100).protocol(), lifespan="off") as running,
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection,
    ):
        connection.sendall(CHUNKED + b"")
        received = connection.recv(1 << 20)
        connection.sendall(b"no number\r\n")
        received += read_all(connection)
        running.do(sent.set)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert finished.wait(10) and raised == []
    assert [record for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("path", [b"large", b"parts"])
def test_unread_answers_are_limited(path: bytes) -> None:
    with Service(unread=20_000_000) as service:
        held = [service.connect(4096) for _ in range(6)]
        for connection in held:
            connection.sendall((GET + b"\r\n").replace(b"echo", path))
        service.until(lambda: service.begun == 6 and len(service.connections.open) < 6)
        assert service.connections.open
        assert service.send(GET + b"\r\n", 1)[0] == [200]
        for connection in held:
            connection.close()  # otherwise the service waits for its readers as long as it may


@pytest.mark.parametrize(
    ("soft", "hard", "least", "most"),
    [(64, 64, 1, 63), (256, 256, 1, 255), (1024, 1024, 1, 900), (256, 8192, 900, 900), (8192, 8192, 900, 900)],
)
def test_each_connection_has_a_descriptor(soft: int, hard: int, least: int, most: int) -> None:
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from service.http.connections import connection_limit
print(connection_limit(900))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert least <= int(done.stdout) <= most
