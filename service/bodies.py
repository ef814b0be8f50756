"""Request bodies of LibreTranslate's clients, who send fields as JSON, a form, a form with files, or a query.

The time of parsing depends on the number of fields, on the charset of a form, and on the headers of its parts. All of
these are checked before or during parsing.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from service.errors import InvalidRequest, shorten
from service.schemas import (
    DetectRequest,
    FileRequest,
    MemoryRequest,
    SuggestRequest,
)
from service.translate_schemas import TranslateRequest

BodyType = TypeVar("BodyType", bound=BaseModel)
FormItems = list[tuple[str, str | UploadFile]]

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = (URLENCODED, MULTIPART)
CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})  # other codecs may take quadratic time
MAX_FIELDS = 1000  # limit for a query or a form
MAX_FILES = 10  # files of a form
MAX_PART_HEAD = 1000  # bytes of a Content-Type, or of a header of a part of a form
CHUNK = 16_384  # bytes of a form that are parsed before the next look at the clock
SLICE_SECONDS = 0.003  # time of parsing a form after which other requests have a turn
REFERENCES = "#/components/schemas/{model}"
NOT_AN_OBJECT = "the body must be a JSON object, sent with Content-Type: application/json"


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of the body. If the body is not JSON, add the fields of the query.

    A repeated field becomes a list.

    Raises:
        InvalidRequest: if the body is not valid for its Content-Type, or has too many fields.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == JSON or kind.endswith("+json"):
        return _json_object(body)
    query = query_fields(request)
    if kind == MULTIPART:
        return query | form_fields(await read_form(request))
    if kind == URLENCODED:
        if body.lstrip()[:1] == b"{":  # `curl -d` without a header
            raise InvalidRequest.listing([f"the body is JSON, but its Content-Type is {kind}; send {JSON}"])
        return query | form_fields(_pairs(body) if len(body) < CHUNK else await asyncio.to_thread(_pairs, body))
    if body.strip():
        raise InvalidRequest.listing([f"{NOT_AN_OBJECT}, or a form"])
    return query


async def read_form(request: Request) -> FormItems:
    """Return the fields and files of a multipart form; an empty list for a body of another type.

    Raises:
        InvalidRequest: if the body is not a valid form, or exceeds a limit of forms.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MULTIPART:
        return []
    if not hasattr(request.state, "form"):
        chunks = _chunks(await request.body(), request)
        try:
            form = await _PartParser(request.headers, chunks, max_fields=MAX_FIELDS, max_files=MAX_FILES).parse()
        except (MultiPartException, ValueError) as error:
            reason = error.message if isinstance(error, MultiPartException) else "a value is not text"
            raise InvalidRequest.listing([f"the body is not a valid form of type {MULTIPART}: {reason}"]) from error
        request.state.form = form.multi_items()
    items: FormItems = request.state.form
    return items


async def read_file(request: Request) -> UploadFile | None:
    """Return the uploaded file of the field `file`; None if this field is missing, repeated, or not a file."""
    files = [value for name, value in await read_form(request) if name == "file"]
    return files[0] if len(files) == 1 and isinstance(files[0], UploadFile) else None


def check_fields(content_type: str, query: bytes) -> None:
    """Check the query and the Content-Type of a request before its body is read.

    Raises:
        InvalidRequest: if the query has more than MAX_FIELDS fields, the Content-Type is too long, or a form has a
            charset other than UTF-8 or ASCII.
    """
    if query.count(b"&") >= MAX_FIELDS:
        raise InvalidRequest.listing([f"the query has more than {MAX_FIELDS} fields"])
    if len(content_type) > MAX_PART_HEAD:
        raise InvalidRequest.listing([f"Content-Type is longer than {MAX_PART_HEAD} characters"])
    kind, parameters = parse_options_header(content_type)
    charset = parameters.get(b"charset", b"utf-8").decode("latin-1")
    if kind.decode("latin-1") in FORMS and charset.lower() not in CHARSETS:
        raise InvalidRequest.listing([f"the charset of the form is {shorten(charset)}; accepted: utf-8 or us-ascii"])


def parse_body(model: type[BodyType], fields: dict[str, Any]) -> BodyType:
    """Validate `fields`, and return them as an object of type `model`.

    Raises:
        RequestValidationError: if fields are not valid; it lists all of them.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise RequestValidationError(problems) from error


def _body(model: type[BaseModel], upload: bool = False) -> Any:
    """Return a FastAPI dependency that reads a body of type `model`: a form with a file if `upload` is true."""

    async def read(request: Request) -> BaseModel:
        if not upload:
            return parse_body(model, await read_fields(request))
        fields = form_fields(await read_form(request)) | {"file": await read_file(request)}
        return parse_body(model, query_fields(request) | fields)

    return Depends(read)


TranslateRequestBody = Annotated[TranslateRequest, _body(TranslateRequest)]
FileBody = Annotated[FileRequest, _body(FileRequest, upload=True)]
DetectBody = Annotated[DetectRequest, _body(DetectRequest)]
MemoryBody = Annotated[MemoryRequest, _body(MemoryRequest, upload=True)]
SuggestBody = Annotated[SuggestRequest, _body(SuggestRequest)]


def documented_body(model: type[BaseModel], kinds: Sequence[str] = (JSON, *FORMS)) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body of type `model`. It refers to a schema of `body_schemas`."""
    schema = {"$ref": REFERENCES.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def body_schemas() -> dict[str, Any]:
    """Return the JSON schemas of all request bodies by name, for the OpenAPI document."""
    return {
        model.__name__: model.model_json_schema(ref_template=REFERENCES)
        for model in (
            *(TranslateRequest, DetectRequest, FileRequest),
            *(MemoryRequest, SuggestRequest),
        )
    }


def form_fields(items: Iterable[tuple[str, str | UploadFile]]) -> dict[str, Any]:
    """Return the text fields of a form or a query, without uploaded files. A repeated field becomes a list."""
    fields: dict[str, list[str]] = {}
    for name, value in items:
        if isinstance(value, str):
            fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def query_fields(request: Request) -> dict[str, Any]:
    return form_fields(_pairs(request.scope["query_string"]))


class _PartParser(MultiPartParser):
    """Form parser that refuses long headers of a form's parts, because Starlette needs 8 ms for a header of 4 KB."""

    spool_max_size = 1 << 30  # files stay in memory, where the body is already

    def on_header_end(self) -> None:
        if len(self._current_partial_header_value) > MAX_PART_HEAD:
            raise MultiPartException(f"a header of a part, with its file name, is longer than {MAX_PART_HEAD} bytes")
        super().on_header_end()


async def _chunks(body: bytes, request: Request) -> AsyncGenerator[bytes, None]:
    """Yield the body in chunks. After every SLICE_SECONDS of parsing, wait until the request gets another turn."""
    started = time.perf_counter()
    for begin in range(0, len(body), CHUNK):
        yield body[begin : begin + CHUNK]
        if time.perf_counter() - started > SLICE_SECONDS:
            await request.state.next_turn()
            started = time.perf_counter()


def _pairs(query: bytes) -> list[tuple[str, str]]:
    """Parse a query or a URL-encoded form, and return (name, value) of each field.

    Raises: InvalidRequest if there are more than MAX_FIELDS fields.
    """
    try:
        return parse_qsl(query.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InvalidRequest.listing([f"there are more than {MAX_FIELDS} fields"]) from None


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body) if body.strip() else None
    except json.JSONDecodeError as error:
        raise InvalidRequest.listing([f"the body is not JSON: {error.msg} at character {error.pos}"]) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest.listing(["the body is not JSON in UTF-8, or is nested too deeply"]) from error
    if not isinstance(fields, dict):
        raise InvalidRequest.listing([NOT_AN_OBJECT])
    return fields
