"""The response body that all errors share.

The body has the members of RFC 9457 (`type`, `title`, `status`, `detail`, `instance`), the members that clients of the
two contracts read (`error` for LibreTranslate, `message` for DeepL), and `code` and `request_id`.
"""

import reprlib
from collections.abc import Mapping
from http import HTTPStatus
from http.client import responses
from typing import Any
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from service.errors import InternalError, InvalidRequest, ServiceError, well_formed
from service.http.bodies import NOT_AN_OBJECT
from service.http.not_offered import why_not_offered
from service.logs import current_record

PROBLEM_JSON = "application/problem+json"
MAX_MESSAGE = 4000  # characters; the body of an error contains the message three times
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MAX_PATH = 500  # characters of the path in an error
_LENGTHS = {"too_short": "must have at least {min_length} item", "too_long": "must have at most {max_length} items"}


class Problem(BaseModel):
    """Body of every error."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    error: str
    message: str


def error_response(scope: Scope, error: ServiceError) -> JSONResponse:
    """Return the response that reports `error` to the client. `scope` is the ASGI scope of the request."""
    return _response(scope, problem_body(scope, error), error.headers)


def problem_body(scope: Scope, error: ServiceError) -> Problem:
    """Return the body of the error response, to be sent as an event of a stream that has already begun."""
    status = error.deepl_status if speaks_deepl(scope) else error.status
    return _problem(scope, status, error.code, error.message, error.error)


def path_of(scope: Scope) -> str:
    """Return the path of a request without `root_path`, the prefix under which a proxy serves the application."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def speaks_deepl(scope: Scope) -> bool:
    """Return whether the path of a request belongs to DeepL's contract."""
    return path_of(scope).startswith(("/v2/", "/v3/"))


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    if isinstance(error, InternalError):
        structlog.get_logger().error("failed", request_id=request.scope["state"]["request_id"], location=error.location)
    return error_response(request.scope, error)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    accepted = "a whole number" if any(problem["type"] == "not_a_count" for problem in problems) else ""
    return error_response(request.scope, InvalidRequest.listing(*map(_explain, problems), accepted=accepted))


async def _http_exception(request: Request, error: Exception) -> Response:
    """Answer an HTTPException, such as 404 or 405, with a `Problem`; answer OPTIONS with the methods of the path."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(allowed_methods(request))
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
    detail = (status == HTTPStatus.NOT_FOUND and why_not_offered(path_of(request.scope))) or error.detail
    return _response(request.scope, _problem(request.scope, status, status.name.lower(), detail), headers)


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
    if field is None:  # value_error: of a model's validator
        return f"the body {message}" if problem["type"] == "value_error" else NOT_AN_OBJECT
    if problem.get("accepted"):
        return f"{problem['loc'][-1]} is {reprlib.repr(problem['input'])}; accepted: {problem['accepted']}"
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


def _problem(scope: Scope, status: int, code: str, message: str, error: str = "") -> Problem:
    message, error = (well_formed(text[:MAX_MESSAGE]) for text in (message, error or message))
    current_record().code = code
    return Problem(
        type="about:blank",
        title=responses.get(status, "Error"),  # 456 is DeepL's and has no standard title
        status=int(status),
        detail=message,
        instance=quote(scope["path"][:MAX_PATH]),
        code=code,
        request_id=scope["state"]["request_id"],
        error=error,
        message=message,
    )
