"""Around every request, as plain ASGI (Starlette's BaseHTTPMiddleware would hide a client's disconnect)."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.access.limits import network
from service.errors import (
    BodyTooLarge,
    HeadTooLarge,
    InternalError,
    InvalidRequest,
    Overloaded,
    ServiceError,
    SlowRequest,
    answer,
    where,
)
from service.logs import Record, begin_record
from service.metrics import Metrics
from service.settings import Settings

REQUEST_ID = "X-Request-ID"
TRACE_ID = "X-Trace-ID"  # what DeepL calls it
HEAD_BYTES = 65_536
FORM_BYTES = 65_536  # of an upload, beside its file
UPLOADS = frozenset({"/translate_file", "/v2/document"})
CLIENT_GONE = 499  # the status that nginx logs for it; nobody is left to read it
PROBES = frozenset({"/livez", "/readyz", "/health", "/metrics"})
SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_ACCEPTED_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


def path_of(scope: Scope) -> str:
    """The path without what a proxy takes away."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def speaks_deepl(scope: Scope) -> bool:
    """Whether a request is in DeepL's dialect, known by its path."""
    return path_of(scope).startswith(("/v2/", "/v3/"))


def surround(app: FastAPI, settings: Settings, metrics: Metrics) -> None:
    """With what every request goes through; what is added last sees it first."""
    limits = RequestLimits(
        head_bytes=HEAD_BYTES,
        body_bytes=settings.max_body_bytes,
        file_bytes=settings.max_file_bytes + FORM_BYTES,
        held_bytes=settings.max_held_bytes,
        body_seconds=settings.body_seconds,
    )
    app.add_middleware(RequestLimit, limits=limits)
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allow_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=[REQUEST_ID, TRACE_ID, "Retry-After", "Content-Disposition"],
        )
    app.add_middleware(RequestLog, metrics=metrics)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))


class RequestLog:
    """Names every request, logs and counts how it ended, and is where an exception that nobody expected ends."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ACCEPTED_ID.fullmatch(given) else uuid4().hex
        record = begin_record()
        scope.setdefault("state", {}).update(request_id=request_id, record=record)
        log = structlog.get_logger().bind(request_id=request_id)
        begun = time.perf_counter()
        status = 0

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                if speaks_deepl(scope):
                    headers[TRACE_ID] = request_id
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_named)
        except ClientDisconnect:
            status = CLIENT_GONE
        except Exception as error:
            log.error("failed", where=where(error))
            if status == 0:
                await answer(scope, InternalError(where(error)))(scope, receive, send_named)
        self._ended(log, scope, status, time.perf_counter() - begun, record)

    def _ended(
        self, log: structlog.stdlib.BoundLogger, scope: Scope, status: int, seconds: float, record: Record
    ) -> None:
        route: str | None = getattr(scope.get("route"), "path", None)  # never the path itself, in which text may stand
        self.metrics.request(route or "", scope["method"], status, seconds, record)
        say = log.debug if route in PROBES and status < 400 else log.info
        say(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            milliseconds=_milliseconds(seconds),
            **record.said(),
        )


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)


@dataclass(frozen=True)
class RequestLimits:
    """Of one request, `file_bytes` where it uploads a file; and `held_bytes` of the bodies of all together, of which
    one address may have half."""

    head_bytes: int
    body_bytes: int
    file_bytes: int
    held_bytes: int
    body_seconds: float


class RequestLimit:
    """Reads the whole body, up to a limit of bytes and of time, before anything else runs."""

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self.app = app
        self.limits = limits
        self._held: Counter[str] = Counter()  # bytes, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, sender = bytearray(), network(scope["client"][0] if scope.get("client") else "")
        try:
            problem = await self._problem(scope, receive, body, sender)
            if problem:
                await answer(scope, problem)(scope, receive, send)
                return
            whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

            async def replay() -> Message:
                return whole.pop() if whole else await receive()

            await self.app(scope, replay, send)
        finally:
            self._held[sender] -= len(body)
            if not self._held[sender]:
                del self._held[sender]

    async def _problem(self, scope: Scope, receive: Receive, body: bytearray, sender: str) -> ServiceError | None:
        """Fills `body`, unless there is a problem. Raises ClientDisconnect."""
        try:
            self._check_head(scope)
            async with asyncio.timeout(self.limits.body_seconds):
                await self._read(scope, receive, body, sender)
        except TimeoutError:
            return SlowRequest(self.limits.body_seconds)
        except ServiceError as error:
            return error
        return None

    def _check_head(self, scope: Scope) -> None:
        size = (
            len(scope["path"]) + len(scope["query_string"]) + sum(len(name) + len(it) for name, it in scope["headers"])
        )
        if size > self.limits.head_bytes:
            limit = self.limits.head_bytes
            raise HeadTooLarge(f"Invalid request: address and headers exceed the limit of {limit} bytes")

    async def _read(self, scope: Scope, receive: Receive, body: bytearray, sender: str) -> None:
        """Raises BodyTooLarge, as soon as it can be known, Overloaded, InvalidRequest or ClientDisconnect."""
        limit = self.limits.file_bytes if path_of(scope) in UPLOADS else self.limits.body_bytes
        size = announced(Headers(scope=scope))
        more = True
        while more and size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk = message.get("body", b"")
            size = max(size, len(body) + len(chunk))
            if size <= limit and not self._has_room(sender, len(body), len(chunk)):
                raise Overloaded(retry_after=1)
            body += chunk
            self._held[sender] += len(chunk)
            more = message.get("more_body", False)
        if size > limit:
            raise BodyTooLarge(f"Invalid request: the body exceeds the limit of {limit} bytes")

    def _has_room(self, sender: str, body: int, more: int) -> bool:
        """For so many more bytes of a body. One alone may be as large as it likes."""
        most, own = self.limits.held_bytes, self._held[sender]
        return self._held.total() + more <= most and (own == body or 2 * (own + more) <= most)


def announced(headers: Headers) -> int:
    """The size of the body, or 0 if it is not said. Raises InvalidRequest. Some servers pass on what is no number."""
    said = headers.get("content-length", "0")
    if not (said.isascii() and said.isdigit() and len(said) < 20):
        raise InvalidRequest.listing(["Content-Length must be a number"])
    return int(said)
