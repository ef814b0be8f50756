"""Around every request, as plain ASGI (Starlette's BaseHTTPMiddleware would hide a client's disconnect)."""

import re
import time
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooLarge, InternalError, answer
from service.worker import where

REQUEST_ID = "X-Request-ID"
CLIENT_GONE = 499  # the status that nginx logs for it; nobody is left to read it
_ACCEPTED_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class RequestLog:
    """Names every request, logs how it ended, and is where an exception that nobody expected ends."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ACCEPTED_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        log = structlog.get_logger().bind(request_id=request_id)
        begun = time.perf_counter()
        status = 0

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_named)
        except ClientDisconnect:
            status = CLIENT_GONE
        except Exception as error:
            log.error("failed", where=where(error))
            if status == 0:
                await answer(scope, InternalError(where(error)))(scope, receive, send_named)
        route = getattr(scope.get("route"), "path", None)  # never the path itself, in which text may stand
        milliseconds = round(1000 * (time.perf_counter() - begun))
        log.info("request", method=scope["method"], route=route, status=status, milliseconds=milliseconds)


class BodyLimit:
    """Reads the whole body, up to a limit, before anything else runs; a larger one is answered with 413."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = bytearray()
        size = int(Headers(scope=scope).get("content-length", "0"))
        more = True
        while more and max(size, len(body)) <= self.limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if more or len(body) > self.limit:
            error = BodyTooLarge(f"Invalid request: the body exceeds the limit of {self.limit} bytes")
            await answer(scope, error)(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, replay, send)
