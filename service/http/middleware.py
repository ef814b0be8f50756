"""Middleware of every request. It is plain ASGI: Starlette's BaseHTTPMiddleware would hide a client's disconnect."""

import asyncio
import re
import time
from contextlib import ExitStack
from ipaddress import ip_address
from secrets import token_hex

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.access.control import caller_network
from service.errors import (
    HEAD_BYTES,
    SHUTTING_DOWN,
    BodyTooLarge,
    HeadTooLarge,
    InternalError,
    InvalidRequest,
    Overloaded,
    ServiceError,
    SlowRequest,
    Unavailable,
    UnsupportedEncoding,
    UnsupportedTransfer,
    error_location,
    shorten,
)
from service.fair_semaphore import FairSemaphore
from service.freed_memory import RequestMemory
from service.http.admission import RequestGate
from service.http.bodies import FORM_CHUNK, check_fields
from service.http.problems import error_response, path_of, speaks_deepl
from service.logs import RequestRecord, current_record, start_record
from service.metrics import METHODS, Metrics
from service.settings import Settings

REQUEST_ID = "X-Request-ID"
TRACE_ID = "X-Trace-ID"  # DeepL's name of the header for the request id
SMALL_BYTES = 65_536  # a body of at most this size is always read
FORM_BYTES = 65_536  # limit of the fields of an upload, without the file
UPLOADS = frozenset({"/translate_file", "/v2/document", "/memories"})
UPLOADS_OF_JOBS = "/v3/translation_memories/jobs/"
CLIENT_DISCONNECTED = 499  # status in logs and metrics only, as nginx uses it
HEALTH = frozenset({"/livez", "/readyz", "/health"})
PROBES = HEALTH | {"/metrics"}
UNCOUNTED = PROBES | {"/", "/docs", "/openapi.json", "/spec"}  # paths of requests that start no work
SECURITY_HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
_ACCEPTED_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_HOST = re.compile(r"(?P<name>\[[\da-f:.]+\]|[^\s:/?#@\[\]]*)(?::\d*)?", re.ASCII | re.IGNORECASE)


def install_middleware(app: FastAPI, settings: Settings, metrics: Metrics, gate: RequestGate) -> None:
    """Add the middleware of every request. The middleware that is added last is the outermost."""
    app.add_middleware(RequestGateMiddleware, settings=settings, gate=gate)
    if settings.accepted_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.accepted_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=[REQUEST_ID, TRACE_ID, "Retry-After", "Content-Disposition"],
        )
    app.add_middleware(RequestLogMiddleware, metrics=metrics)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))


class RequestLogMiddleware:
    """Middleware that gives every request an id, logs and counts it, and answers errors that nothing else answers.

    An unexpected exception is answered with 500, and a request that is cancelled at the shutdown with 503.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics
        self._log = structlog.get_logger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        merge_slashes(scope)
        client_id = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = client_id if _ACCEPTED_ID.fullmatch(client_id) else token_hex(16)
        record = start_record(caller_network(scope["client"][0] if scope.get("client") else ""))
        scope.setdefault("state", {}).update(request_id=request_id, record=record)
        names = (REQUEST_ID, TRACE_ID) if speaks_deepl(scope) else (REQUEST_ID,)
        headers = SECURITY_HEADERS | {name.lower().encode(): request_id.encode() for name in names}
        started = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] += [header for header in headers.items() if header[0] not in present]
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = CLIENT_DISCONNECTED
        except asyncio.CancelledError:  # uvicorn cancels the requests that are left after the grace period
            if status == 0:
                await error_response(scope, Unavailable(SHUTTING_DOWN))(scope, receive, send_with_headers)
        except Exception as error:
            reason = error.__cause__
            if status and isinstance(reason, ServiceError) and not isinstance(reason, InternalError):
                record.code = reason.code  # of a download that has begun, for example of a memory deleted meanwhile
            else:
                structlog.get_logger().error("failed", request_id=request_id, location=error_location(error))
            if status == 0:
                await error_response(scope, InternalError(error_location(error)))(scope, receive, send_with_headers)
        self._ended(scope, status, time.perf_counter() - started, record)

    def _ended(self, scope: Scope, status: int, seconds: float, record: RequestRecord) -> None:
        # The template, as a path may contain text. A body that was refused has not been routed.
        matching = (route for route in scope["app"].routes if route.matches(scope)[0] is Match.FULL)
        route = getattr(scope.get("route") or next(matching, None), "path", None)
        self.metrics.count_request(route or "", scope["method"], status, seconds, record)
        if route in PROBES and status < 400:
            return
        self._log.info(
            "request",
            request_id=scope["state"]["request_id"],
            method=scope["method"] if scope["method"] in METHODS else "other",
            route=route,
            status=status,
            milliseconds=round(1000 * seconds),
            **record.log_fields(),
        )


class RequestGateMiddleware:
    """Middleware that reads the body of a request, counts the request in `gate`, and answers HEAD like GET.

    Bodies have limits of size and time. `max_buffered_bytes` of the settings limits the sum of all bodies in memory,
    except those of SMALL_BYTES. A request is accepted as soon as its whole body has been read. During the shutdown, the
    gate refuses new ones, and each answer closes its connection. Probes, the page and documentation are neither counted
    nor refused.

    One request starts in each iteration of the event loop, and addresses take turns. If 512 requests arrive together,
    a probe that follows them is answered after 30 ms of processor time, and without turns after 240 ms. Health probes
    have turns of their own.
    """

    def __init__(self, app: ASGIApp, settings: Settings, gate: RequestGate) -> None:
        self.app = app
        self.settings = settings
        self.gate = gate
        self._buffered = 0  # bytes of all bodies in memory
        self._memory = RequestMemory()
        self._hosts = frozenset(settings.accepted_hosts)
        self._starts, self._probe_starts = FairSemaphore(1), FairSemaphore(1)
        self._parsing = FairSemaphore(2)  # long bodies that threads parse at a time, one of each caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, is_head, path = bytearray(), scope["method"] == "HEAD", path_of(scope)
        inner = {**scope, "method": "GET"} if is_head else scope

        async def send_answer(message: Message) -> None:
            if message["type"] == "http.response.start" and self.gate.closed:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        try:
            headers = Headers(scope=scope)
            self._check_head(scope, headers)
            try:
                async with asyncio.timeout(self.settings.read_timeout_seconds):
                    await self._read(path, headers, receive, body)
            except TimeoutError:
                raise SlowRequest(self.settings.read_timeout_seconds) from None
            starts, address = self._probe_starts if path in HEALTH else self._starts, current_record().caller
            await starts.acquire(address)
            asyncio.get_running_loop().call_soon(starts.release, address)
            query = scope["query_string"]
            scope["state"] |= {
                "body": body,  # not a copy, which would take long
                "query": query,
                "parsing": self._parsing,
                "deadline": time.monotonic() + self.settings.request_timeout_seconds,
            }
            inner["query_string"] = query if len(query) < FORM_CHUNK else b""  # FastAPI parses it on the event loop
            with ExitStack() as work:
                if path not in UNCOUNTED and not path.startswith("/web/"):
                    work.enter_context(self.gate.entered())
                scope["state"]["work"] = work  # the dependencies that admit the caller add to it
                await self.app(inner, receive, send_answer)
        except ServiceError as error:  # of this middleware; the application answers its own errors
            error.__traceback__ = None  # a cycle: the connection holds the error, and this one leads to the connection
            await error_response(scope, error)(scope, receive, send_answer)
        finally:
            scope["route"] = inner.get("route")  # for the log
            self._memory.add(len(body))
            self._buffered -= len(body)

    def _check_head(self, scope: Scope, headers: Headers) -> None:
        """Raise the ServiceError for a head that is not accepted, or that is not valid HTTP."""
        if refusal := scope["state"].get("refusal"):
            raise refusal
        size = (
            len(scope["path"])
            + len(scope["query_string"])
            + sum(len(name) + len(value) for name, value in scope["headers"])
        )
        if size > HEAD_BYTES:
            raise HeadTooLarge
        hosts = headers.getlist("host")
        host = hosts[0] if hosts else ""
        name = found["name"].strip("[]").lower() if (found := _HOST.fullmatch(host)) else None
        if name is None or (self._hosts.isdisjoint(("*", name)) and not is_address(name)):
            raise InvalidRequest.listing(
                f"the header Host is {shorten(host)}; accepted: an IP address, or a name in the setting allowed_hosts"
            )
        if len(hosts) != 1 and scope["http_version"] == "1.1":
            raise InvalidRequest.listing(f"there are {len(hosts)} headers Host; accepted: one")
        if (coding := headers.get("content-encoding", "identity").strip().lower()) not in ("identity", ""):
            raise UnsupportedEncoding(coding)
        coding = ", ".join(headers.getlist("transfer-encoding")).strip().lower()
        if coding not in ("chunked", ""):
            raise UnsupportedTransfer(
                f"Invalid request: the Transfer-Encoding is {shorten(coding)}", accepted="chunked"
            )
        check_fields(headers.get("content-type", ""), scope["query_string"])

    async def _read(self, path: str, headers: Headers, receive: Receive, body: bytearray) -> None:
        """Read the body into `body`.

        Raises:
            BodyTooLarge: if the announced or the received size is over the limit.
            Overloaded: if the other bodies in memory leave too little of `max_buffered_bytes`.
            ClientDisconnect: if the client disconnected.
        """
        uploads = path in UPLOADS or path.startswith(UPLOADS_OF_JOBS)
        limit = self.settings.max_file_bytes + FORM_BYTES if uploads else self.settings.max_body_bytes
        size = int(headers.get("content-length", 0))  # the parser of the connection has checked it
        more = True
        while more and size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk = message.get("body", b"")
            size = max(size, len(body) + len(chunk))
            if size > limit:
                break
            if len(body) + len(chunk) > SMALL_BYTES and self._buffered + len(chunk) > self.settings.max_buffered_bytes:
                raise Overloaded(retry_after=1)
            body += chunk
            self._buffered += len(chunk)
            more = message.get("more_body", False)
            del message, chunk  # while the next one is awaited, they would take as much memory as the body
        if size > limit:
            raise BodyTooLarge(f"Invalid request: the body exceeds the limit of {limit} bytes")


def merge_slashes(scope: Scope) -> None:
    """Replace each run of slashes in the path by one, and remove the slash at its end: `//translate/` is `/translate`.

    Clients join an address and a path. A redirect would lose the scheme of a proxy, and some clients do not follow it.
    """
    path = path_of(scope)
    if "//" in path or (path.endswith("/") and path != "/"):
        scope["path"] = scope.get("root_path", "") + "/" + "/".join(filter(None, path.split("/")))


def is_address(name: str) -> bool:
    """Return whether a Host header has no name, localhost or an IP address. A DNS rebinding attack sends a name."""
    try:
        return name in ("", "localhost") or bool(ip_address(name))
    except ValueError:
        return False
