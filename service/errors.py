"""One family of errors, one body for all of them.

The body is RFC 9457's (`type`, `title`, `status`, `detail`, `instance`) with what the contracts that we speak read:
`error` (LibreTranslate), `message` (DeepL), and `code` and `request_id` for programs and people. Messages use
LibreTranslate's words where it has some.
"""

import traceback
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.client import responses
from typing import Any, ClassVar
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.types import Scope

PROBLEM_JSON = "application/problem+json"


class ServiceError(Exception):
    """Base of every answer that is no translation."""

    status: ClassVar[int]
    code: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.headers: dict[str, str] = {}


class InvalidRequest(ServiceError):
    """A request of the wrong shape or size."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_request"

    @classmethod
    def listing(cls, found: Iterable[str]) -> "InvalidRequest":
        """All problems at once."""
        return cls("Invalid request: " + "; ".join(found))


class UnsupportedLanguage(ServiceError):
    """A language, or a pair of them, that the model does not translate."""

    status = HTTPStatus.BAD_REQUEST
    code = "unsupported_language"


class CannotTranslate(ServiceError):
    """A text on which the model fails, now and whenever it is sent again: not a 5xx, which clients repeat."""

    status = HTTPStatus.BAD_REQUEST
    code = "cannot_translate"


class NotFound(ServiceError):
    """There is no such thing, or it belongs to somebody else."""

    status = HTTPStatus.NOT_FOUND
    code = "not_found"


class NotReady(ServiceError):
    """A document that is still being translated."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_ready"

    def __init__(self) -> None:
        super().__init__("The document is not ready yet")
        self.headers["Retry-After"] = "1"


class InvalidDocument(ServiceError):
    """A file of an unknown kind, or not of the kind that its name says, or too large."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_document"


class BodyTooLarge(ServiceError):
    """A request body over the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "body_too_large"


class InvalidKey(ServiceError):
    """No API key where one is needed, or one that is unknown, revoked or expired."""

    status = HTTPStatus.FORBIDDEN
    code = "invalid_key"


class QuotaExceeded(ServiceError):
    """The characters of an API key for this month are used up: a 403, which Mastodon takes for just that."""

    status: ClassVar[int] = HTTPStatus.FORBIDDEN
    code = "quota_exceeded"


class DeepLQuotaExceeded(QuotaExceeded):
    """The characters of an API key for this month are used up: DeepL's own status."""

    status = 456


class TooManyRequests(ServiceError):
    """More than the key, or an address without one, may send in a minute, or have in work at a time."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    code = "too_many_requests"

    def __init__(self, limit: str, retry_after: int) -> None:
        super().__init__(f"Slowdown: {limit}; try again in {retry_after} s")
        self.headers["Retry-After"] = str(retry_after)


class SlowRequest(ServiceError):
    """A request whose body did not come in time."""

    status = HTTPStatus.REQUEST_TIMEOUT
    code = "slow_request"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Invalid request: the body did not come within {seconds:g} s")
        self.headers["Connection"] = "close"


class HeadTooLarge(ServiceError):
    """A request whose address and headers are over the limit."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    code = "head_too_large"


class NotServing(ServiceError):
    """A translation would not work: the models are not loaded, or fail, or the service is being stopped."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_serving"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Not ready: {reason}")
        self.headers["Retry-After"] = "5"


class Overloaded(ServiceError):
    """The queue is full."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "overloaded"

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The service is busy: try again in {retry_after} s")
        self.headers["Retry-After"] = str(retry_after)


class DeadlineExceeded(ServiceError):
    """The translation was not there within the time that the request allowed."""

    status = HTTPStatus.GATEWAY_TIMEOUT
    code = "deadline_exceeded"

    def __init__(self) -> None:
        super().__init__("The translation was not there in time")


class Unavailable(ServiceError):
    """The worker is not there, or the service is being stopped."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "unavailable"

    def __init__(self, message: str = "The translation worker has stopped") -> None:
        super().__init__(message)
        self.headers["Retry-After"] = "5"


class InternalError(ServiceError):
    """Our own mistake; where it was stands in the log, under the same request id."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    code = "internal_error"

    def __init__(self, where: str) -> None:
        super().__init__("Internal error")
        self.where = where


class ReloadRefused(ServiceError):
    """A model that cannot take the place of the one that serves, which goes on."""

    status = HTTPStatus.CONFLICT
    code = "reload_refused"


class Problem(BaseModel):
    """The body of every error."""

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


def documented(*errors: type[ServiceError]) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: the errors that it answers with."""
    found: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        said = (error.__doc__ or "").splitlines()[0]
        known = found.setdefault(int(error.status), {"model": Problem, "description": ""})
        known["description"] = f"{known['description']} `{error.code}`: {said}".strip()
    return found


def where(error: BaseException) -> str:
    """What went wrong and in which lines of code; without the message, which may hold a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))


def well_formed(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates, which JSON can spell but UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(text: str) -> str:
    """What a message quotes of a value that a client sent."""
    return text if len(text) <= 40 else text[:39] + "…"


def answer(scope: Scope, error: ServiceError) -> JSONResponse:
    """The response to the request of `scope`."""
    return _response(scope, error.status, error.code, error.message, error.headers)


def problem(scope: Scope, error: ServiceError) -> Problem:
    """The body alone, for a response that has begun."""
    return _problem(scope, error.status, error.code, error.message)


def install_handlers(app: FastAPI) -> None:
    """Every error that leaves a route, ours or the framework's, gets the one body."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    if isinstance(error, InternalError):
        structlog.get_logger().error("failed", request_id=request.scope["state"]["request_id"], where=error.where)
    return answer(request.scope, error)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return answer(request.scope, InvalidRequest.listing(map(_explain, error.errors())))


async def _http_exception(request: Request, error: Exception) -> JSONResponse:
    """404, 405 and their kin, which the router raises."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.BAD_REQUEST:  # FastAPI's, for a body at which the JSON parser itself fails
        return answer(request.scope, InvalidRequest.listing(["the body is not JSON in UTF-8, or nested too deep"]))
    return _response(request.scope, status, status.name.lower(), error.detail, error.headers or {})


def _explain(problem: Any) -> str:
    """One problem of pydantic's, in LibreTranslate's words where it has some."""
    field = next((part for part in problem["loc"][1:] if isinstance(part, str)), None)
    if problem["type"] == "json_invalid":
        return f"the body is not JSON: {problem['ctx']['error']} at character {problem['loc'][-1]}"
    if field is None:
        return "the body must be a JSON object, sent with Content-Type: application/json"
    if problem["type"] == "missing":
        return f"missing {field} parameter"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return f"{field} {message}"


def _response(scope: Scope, status: int, code: str, message: str, headers: Mapping[str, str]) -> JSONResponse:
    body = _problem(scope, status, code, message)
    return JSONResponse(body.model_dump(), int(status), dict(headers), media_type=PROBLEM_JSON)


def _problem(scope: Scope, status: int, code: str, message: str) -> Problem:
    message = well_formed(message)
    return Problem(
        type="about:blank",
        title=responses.get(status, "Error"),  # DeepL's 456 has no name
        status=status,
        detail=message,
        instance=quote(scope["path"]),
        code=code,
        request_id=scope["state"]["request_id"],
        error=message,
        message=message,
    )
