"""Errors of the service's answers, and the response body that they share.

The body has the members of RFC 9457 (`type`, `title`, `status`, `detail`, `instance`), the members that clients of the
two contracts read (`error` for LibreTranslate, `message` for DeepL), and `code` and `request_id`. Messages use
LibreTranslate's wording if LibreTranslate has the same error. Clients of LibreTranslate compare `error` literally, so a
list of accepted values is only in `message` and `detail`.
"""

import errno
import re
import traceback
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.client import responses
from typing import Any, ClassVar
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

PROBLEM_JSON = "application/problem+json"
MAX_PROBLEMS = 20  # limit for one message
MAX_MESSAGE = 4000  # characters; the body of an error contains the message three times
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MAX_PATH = 500  # characters of the path in an error
_SURROGATE = re.compile("[\ud800-\udfff]")
_LENGTHS = {"too_short": "must have at least {min_length} item", "too_long": "must have at most {max_length} items"}


class ServiceError(Exception):
    """Base class of the errors that the service sends to clients."""

    status: ClassVar[int]
    deepl_status: ClassVar[int | None] = None  # status in DeepL's contract, if it differs
    code: ClassVar[str]
    default_message: ClassVar[str] = ""
    default_retry: ClassVar[int | None] = None

    def __init__(self, message: str = "", retry_after: int | None = None, accepted: str = "") -> None:
        """`retry_after` is a number of seconds.

        `accepted` is appended to the message, but not in `error`, which clients of LibreTranslate compare literally.
        """
        self.error = message or self.default_message
        self.message = f"{self.error}; accepted: {accepted}" if accepted else self.error
        super().__init__(self.message)
        seconds = self.default_retry if retry_after is None else retry_after
        self.headers: dict[str, str] = {} if seconds is None else {"Retry-After": str(seconds)}


class InvalidRequest(ServiceError):
    """The request has the wrong form or size."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_request"

    @classmethod
    def listing(cls, problems: Iterable[str]) -> "InvalidRequest":
        """Return an error whose message lists all `problems`."""
        return cls("Invalid request: " + "; ".join(problems))


class UnsupportedLanguage(ServiceError):
    """No model translates the language or the pair of languages."""

    status = HTTPStatus.BAD_REQUEST
    code = "unsupported_language"


class UnknownModel(ServiceError):
    """The service has no model of this name."""

    status = HTTPStatus.BAD_REQUEST
    code = "unknown_model"


class CannotTranslate(ServiceError):
    """The model cannot translate this text. The status is not 5xx, because clients would send the text again."""

    status = HTTPStatus.BAD_REQUEST
    code = "cannot_translate"


class NotFound(ServiceError):
    """The resource does not exist, or belongs to another caller."""

    status = HTTPStatus.NOT_FOUND
    code = "not_found"


class NotReady(ServiceError):
    """The document is still being translated."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_ready"
    default_message = "The document is not ready yet"
    default_retry = 1


class InvalidDocument(ServiceError):
    """The file has an unknown format, or its content does not match the ending of its name."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_document"


class BodyTooLarge(ServiceError):
    """The request body is over the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "body_too_large"


class UnsupportedEncoding(ServiceError):
    """The body of the request is compressed."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    code = "unsupported_encoding"

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"Invalid request: the Content-Encoding {shorten(coding)} is not supported", accepted="a body as it is"
        )
        self.headers["Accept-Encoding"] = "identity"  # RFC 9110, 15.5.16


class ParsingLimitExceeded(ServiceError):
    """The file or the markup is too large, or parsing it takes too much time or memory."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "parsing_limit_exceeded"


class InvalidKey(ServiceError):
    """The API key is missing, unknown, revoked or expired."""

    status = HTTPStatus.FORBIDDEN
    code = "invalid_key"


class MissingKey(ServiceError):
    """The request has no API key, and the service requires one. LibreTranslate's status is 400, DeepL's is 403."""

    status = HTTPStatus.BAD_REQUEST
    deepl_status = HTTPStatus.FORBIDDEN
    code = "missing_key"


class SuggestionsDisabled(ServiceError):
    """The setting `suggestions` is off."""

    status = HTTPStatus.FORBIDDEN
    code = "suggestions_disabled"


class QuotaExceeded(ServiceError):
    """The API key has used all characters of its monthly quota. Mastodon expects 403, and DeepL's clients 456."""

    status = HTTPStatus.FORBIDDEN
    deepl_status = 456
    code = "quota_exceeded"


class TooManyRequests(ServiceError):
    """The key or address has sent too many requests in a minute, or has too many in progress."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    code = "too_many_requests"

    def __init__(self, limit: str, retry_after: int) -> None:
        super().__init__(f"Slowdown: {limit}; try again in {retry_after} s", retry_after)


class SlowRequest(ServiceError):
    """The body of the request did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT
    code = "slow_request"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Invalid request: the body did not arrive within {seconds:g} s")
        self.headers["Connection"] = "close"


class HeadTooLarge(ServiceError):
    """The URL and headers of the request are over the limit."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    code = "head_too_large"


class NotServing(ServiceError):
    """A translation would fail: the models are not loaded or do not work, or the service is shutting down."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_serving"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Not ready: {reason}", retry_after=5)


class Overloaded(ServiceError):
    """The queue is full."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "overloaded"

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The service is busy: try again in {retry_after} s", retry_after)


class DeadlineExceeded(ServiceError):
    """The translation did not finish within the time that the request allows."""

    status = HTTPStatus.GATEWAY_TIMEOUT
    code = "deadline_exceeded"
    default_message = "The translation did not finish in time"


class Unavailable(ServiceError):
    """No worker is available, or the service is shutting down."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "unavailable"
    default_message = "The translation worker has stopped"
    default_retry = 5


class StorageUnavailable(ServiceError):
    """The database is locked by another process or cannot be used."""

    status: ClassVar[int] = HTTPStatus.SERVICE_UNAVAILABLE
    code = "storage_unavailable"
    default_message = "The database is locked: try again in 2 s"
    default_retry = 2


class StorageFull(StorageUnavailable):
    """The disk of the service is full."""

    status = HTTPStatus.INSUFFICIENT_STORAGE
    code = "storage_full"
    default_message = "The disk of the service is full: try again in 60 s"
    default_retry = 60


class InternalError(ServiceError):
    """The service has a defect. The log names the line of code, with the same request id."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    code = "internal_error"

    def __init__(self, location: str) -> None:
        super().__init__("Internal error")
        self.location = location


class ReloadRefused(ServiceError):
    """A new model cannot be used. The models that are being served stay in use."""

    status = HTTPStatus.CONFLICT
    code = "reload_refused"


class Problem(BaseModel):
    """Body of every error."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Bad Request",
                "status": 400,
                "detail": "Invalid request: missing q parameter",
                "instance": "/translate",
                "code": "invalid_request",
                "request_id": "5f0c7ad1b6f94d5f8f6f4b3b1c1b8a55",
                "error": "Invalid request: missing q parameter",
                "message": "Invalid request: missing q parameter",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    error: str
    message: str


def error_location(error: BaseException) -> str:
    """Return the type and the traceback of an exception, without the message, which may quote a client's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))


def well_formed(text: str) -> str:
    """Replace each lone surrogate, which JSON can encode but UTF-8 cannot, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def shorten(text: str) -> str:
    """Shorten a value that a client sent, so that a message can quote it."""
    return text if len(text) <= 40 else text[:39] + "…"


def error_response(scope: Scope, error: ServiceError) -> JSONResponse:
    """Return the response that reports `error` to the client. `scope` is the ASGI scope of the request."""
    return _response(scope, problem_body(scope, error), error.headers)


def problem_body(scope: Scope, error: ServiceError) -> Problem:
    """Return the body of the error response, to be sent as an event of a stream that has already begun."""
    problem = _problem(scope, _status(scope, error), error.code, error.message)
    return problem.model_copy(update={"error": _quotable(error.error)})


def path_of(scope: Scope) -> str:
    """Return the path of a request without `root_path`, the prefix under which a proxy serves the application."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def speaks_deepl(scope: Scope) -> bool:
    """Return whether the path of a request belongs to DeepL's contract."""
    return path_of(scope).startswith(("/v2/", "/v3/"))


def _status(scope: Scope, error: ServiceError) -> int:
    return error.deepl_status if error.deepl_status and speaks_deepl(scope) else error.status


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(OSError, _os_error)


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    if isinstance(error, InternalError):
        structlog.get_logger().error("failed", request_id=request.scope["state"]["request_id"], location=error.location)
    return error_response(request.scope, error)


async def _os_error(request: Request, error: Exception) -> JSONResponse:
    """Answer 507 if `error` means that the disk is full. Otherwise, raise `error`."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error_response(request.scope, StorageFull())
    raise error


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    listed = [_explain(problem) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        listed.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return error_response(request.scope, InvalidRequest.listing(listed))


async def _http_exception(request: Request, error: Exception) -> Response:
    """Answer an HTTPException, such as 404 or 405, with a `Problem`; answer OPTIONS with the methods of the path."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(allowed_methods(request))
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
    return _response(request.scope, _problem(request.scope, status, status.name.lower(), error.detail), headers)


def allowed_methods(request: Request) -> list[str]:
    """Return the methods of the request's path. Each route has only one of them."""
    methods = [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    return [*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"]


def _explain(problem: Any) -> str:
    """Return the message for a pydantic error, in LibreTranslate's wording if LibreTranslate has the same error."""
    if problem["type"] == "misspelt":
        return str(problem["msg"])
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    field = next((part for part in problem["loc"][1:] if isinstance(part, str)), None)
    if field is None and problem["type"] == "value_error":  # of a model's validator
        return f"the body {message}"
    if field is None:
        return "the body must be a JSON object, sent with Content-Type: application/json"
    if problem["type"] == "missing":
        return f"missing {field} parameter"
    if problem["type"] in _LENGTHS:
        return f"{field} " + _LENGTHS[problem["type"]].format(**problem["ctx"])
    return f"{field} {message}"


def _response(scope: Scope, body: Problem, headers: Mapping[str, str]) -> JSONResponse:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    # Clients that ask for JSON test for this type; they do not know application/problem+json.
    media_type = "application/json" if b"application/json" in accepted else PROBLEM_JSON
    return JSONResponse(body.model_dump(), body.status, dict(headers), media_type=media_type)


def _quotable(message: str) -> str:
    return well_formed(message[:MAX_MESSAGE])


def _problem(scope: Scope, status: int, code: str, message: str) -> Problem:
    message = _quotable(message)
    return Problem(
        type="about:blank",
        title=responses.get(status, "Error"),  # 456 is DeepL's and has no standard title
        status=int(status),
        detail=message,
        instance=quote(scope["path"][:MAX_PATH]),
        code=code,
        request_id=scope["state"]["request_id"],
        error=message,
        message=message,
    )
