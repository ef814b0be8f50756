"""Request bodies of both dialects: fields as JSON, a form, a form with a file, or a query.

A list of a form is a repeated field. The time of parsing depends on the number of fields, on the charset of a form, and
on the headers of its parts. All of these are checked before or during parsing.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import lru_cache, partial
from itertools import islice
from pathlib import PurePath
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from service.errors import InvalidRequest, accepted_value, shorten, well_formed
from service.fair_semaphore import FairSemaphore
from service.http.admission import while_connected
from service.http.fields import FLAGS
from service.logs import current_record
from service.translation.coroutines import deadline_at

BodyType = TypeVar("BodyType", bound=BaseModel)
Content = TypeVar("Content")
Parsed = TypeVar("Parsed")
FormItems = list[tuple[str, str | UploadFile]]
Fields = dict[str, Any]

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = (URLENCODED, MULTIPART)
CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})  # other codecs may take quadratic time
MAX_FIELDS, MAX_FILES = 1000, 10  # limits for a query or a form
MAX_VALUES = 20_000  # strings, commas and brackets of JSON; the time of parsing and validation grows with their number
MAX_PART_HEAD = 1000  # bytes of a Content-Type, or of a header of a part of a form
NUMBERS = ("not_a_number", "greater_than_equal", "less_than_equal")  # problems whose message says what is accepted
CHUNK = 16_384  # longer JSON is parsed in a thread
FORM_CHUNK = 4096  # so is a longer query or form; a multipart form is parsed in chunks of this size, in 1 ms each
REFERENCES = "#/components/schemas/{model}"
_VALUES = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[,\[{]', re.DOTALL)
_INDEXED = re.compile(r"([a-z_]{1,40})\[(\d{1,3})\]\.([a-z_]{1,40})")  # how deepl-node sends lists of objects in forms
schema_of = lru_cache(lambda model: model.model_json_schema())  # takes 10 ms
NOT_AN_OBJECT = "the body must be a JSON object, sent with Content-Type: application/json"


class BodyReader:
    """FastAPI dependency that returns the fields of a request as an object of type `model`."""

    def __init__(self, model: type[BaseModel], *kinds: str) -> None:
        """`kinds` are the content types that the OpenAPI document names; by default, JSON and both types of forms."""
        self.model = model
        self._kinds = kinds or (JSON, *FORMS)

    async def __call__(self, request: Request) -> BaseModel:
        fields = await read_fields(request)
        return await _parsed(request, partial(parse_body, self.model), fields, len(body_of(request)) >= CHUNK)

    def document(self, operation: dict[str, Any], method: str) -> None:
        """Add the body to an operation of the OpenAPI document; for GET, add its fields as parameters."""
        schema = self.model.model_json_schema(ref_template=REFERENCES)
        required = schema.get("required", [])
        if method == "GET":
            operation["parameters"] = operation.get("parameters", []) + [
                {"name": name, "in": "query", "required": name in required, "schema": field}
                for name, field in _sent_as_text(schema)["properties"].items()
            ]
            return
        names = {kind: self.model.__name__ + ("Form" if kind in FORMS else "") for kind in self._kinds}
        content = {kind: {"schema": {"$ref": REFERENCES.format(model=name)}} for kind, name in names.items()}
        operation["requestBody"] = {"required": bool(required), "content": content}


def body_schemas(readers: Iterable[BodyReader]) -> dict[str, Any]:
    """Return the JSON schemas of request bodies and their forms, and of the types that they contain, by name."""
    models = {reader.model.__name__: reader.model for reader in readers}
    _, schema = models_json_schema([(model, "validation") for model in models.values()], ref_template=REFERENCES)
    definitions: dict[str, Any] = schema.get("$defs", {})
    return definitions | {f"{name}Form": _sent_as_text(definitions[name]) for name in models}


def _sent_as_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object whose fields are sent as texts: no null, no empty list, flags as words."""
    fields = {}
    for name, described in schema["properties"].items():
        field = {key: value for key, value in described.items() if value is not None}
        kinds = [kind for kind in field.pop("anyOf", ()) if kind != {"type": "null"}]
        kinds = [{"minItems": 1, **kind} if kind.get("type") == "array" else kind for kind in kinds]
        field |= {"anyOf": kinds} if len(kinds) > 1 else kinds[0] if kinds else {}
        if field.get("type") == "boolean":
            field |= {"type": "string", "enum": list(FLAGS)}
            if "default" in field:
                field["default"] = str(field["default"]).lower()
        fields[name] = field
    return {**schema, "properties": fields}


def body_of(request: Request) -> bytearray:
    """Return the body of a request, which service/http/middleware.py has read."""
    body: bytearray = request.scope["state"]["body"]
    return body


async def read_fields(request: Request) -> Fields:
    """Return the fields of the body and, unless the body is JSON, of the query. A repeated field becomes a list.

    The uploaded file of a form is its field `file`.

    Raises: InvalidRequest if the body is not valid for its Content-Type, or has too many fields.
    """
    state = request.scope["state"]
    if "fields" not in state:
        state["fields"] = await _parse_fields(request)
    fields: Fields = state["fields"]
    return fields


def uploaded_name(file: UploadFile, name: str | None = None) -> str:
    """Return the name of an uploaded file, or `name`, which a field states, without the folders of its path."""
    return PurePath(well_formed(name or file.filename or "").replace("\\", "/")).name


def uploaded_content(file: UploadFile) -> bytes:
    """Return the content of an uploaded file without a copy, which would take the event loop 5 ms for 10 MB."""
    return cast(bytes, cast(Any, file.file)._file.getvalue())


def first_text(fields: Fields, name: str) -> str:
    """Return the field `name`, or its first item if it is a list. Return "" if the result is not a text."""
    value = fields.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


async def _parse_fields(request: Request) -> Fields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = body_of(request)
    is_empty = not body  # DeepL's SDK sends a Content-Type with an empty body
    if not is_empty and (kind == JSON or kind.endswith("+json")):
        return await _parsed(request, _json_object, body, len(body) >= CHUNK)
    query = request.scope["state"]["query"]
    query = _joined(await _parsed(request, _pairs, query, len(query) >= FORM_CHUNK))
    if is_empty:
        return query
    if kind == MULTIPART:
        return query | _nested(_joined(await while_connected(request, read_form(request))))
    if kind != URLENCODED:
        raise InvalidRequest.listing(f"{NOT_AN_OBJECT}, or a form")
    if body[:CHUNK].lstrip()[:1] == b"{":  # `curl -d` without a header
        raise InvalidRequest.listing(f"the body is JSON, but its Content-Type is {kind}; send {JSON}")
    return query | _nested(_joined(await _parsed(request, _pairs, body, len(body) >= FORM_CHUNK)))


async def _parsed(request: Request, parse: Callable[[Content], Parsed], content: Content, is_long: bool) -> Parsed:
    """Return `parse(content)`. A thread does long work; callers take turns.

    Raises: DeadlineExceeded, ClientDisconnect.
    """
    if not is_long:
        return parse(content)
    turns: FairSemaphore = request.scope["state"]["parsing"]
    async with deadline_at(request.scope["state"]["deadline"]):
        working = turns.run(current_record().caller, lambda: asyncio.to_thread(parse, content))
        return await while_connected(request, working)


async def read_form(request: Request) -> FormItems:
    """Return the fields and files of a multipart form.

    Raises: InvalidRequest if the body is not a valid form, or exceeds a limit of forms.
    """
    chunks = _chunks(body_of(request))
    try:
        form = await _PartParser(request.headers, chunks, max_fields=MAX_FIELDS, max_files=MAX_FILES).parse()
    except (MultiPartException, ValueError) as error:
        reason = error.message if isinstance(error, MultiPartException) else "a value is not text"
        raise InvalidRequest.listing(f"the body is not a valid form of type {MULTIPART}: {reason}") from error
    return form.multi_items()


def check_fields(content_type: str, query: bytes) -> None:
    """Check the query and the Content-Type of a request before its body is read.

    Raises: InvalidRequest if the query has more than MAX_FIELDS fields, the Content-Type is too long, or a form has a
        charset other than UTF-8 or ASCII.
    """
    if query.count(b"&") >= MAX_FIELDS:
        raise InvalidRequest.listing(f"the query has more than {MAX_FIELDS} fields")
    if len(content_type) > MAX_PART_HEAD:
        raise InvalidRequest.listing(f"Content-Type is longer than {MAX_PART_HEAD} characters")
    kind, parameters = parse_options_header(content_type)
    charset = parameters.get(b"charset", b"utf-8").decode("latin-1")
    if kind.decode("latin-1") in FORMS and charset.lower() not in CHARSETS:
        raise InvalidRequest.listing(f"the charset of the form is {shorten(charset)}; accepted: utf-8 or us-ascii")


def parse_body(model: type[BodyType], fields: Fields) -> BodyType:
    """Validate `fields`, and return them as an object of type `model`.

    Raises: RequestValidationError if fields are not valid; it lists all of them.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems: list[Fields] = []
        for problem in error.errors():
            problem.get("ctx", {}).pop("error", None)  # a cycle: its traceback leads here, and to the body
            accepted = accepted_value(schema_of(model), *problem["loc"]) if problem["type"] in NUMBERS else ""
            problems.append({**problem, "loc": ("body", *problem["loc"]), "accepted": accepted})
        raise RequestValidationError(problems) from error


def _joined(items: Iterable[tuple[str, str | UploadFile]]) -> Fields:
    """Return the fields of a form or a query: a text or a list of texts by name, and the uploaded file `file`."""
    texts: dict[str, list[str]] = {}
    files = []
    for name, value in items:
        if isinstance(value, str):
            texts.setdefault(name, []).append(value)
        elif name == "file":
            files.append(value)
    fields: Fields = {name: values[0] if len(values) == 1 else values for name, values in texts.items()}
    return fields | {"file": files[0]} if len(files) == 1 else fields


def _nested(fields: Fields) -> Fields:
    """Convert fields such as `dictionaries[0].entries` to a list `dictionaries` of objects with a field `entries`."""
    lists: dict[str, dict[int, Fields]] = {}
    plain: Fields = {}
    for name, value in fields.items():
        if match := _INDEXED.fullmatch(name):
            lists.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
        else:
            plain[name] = value
    return plain | {name: [items[index] for index in sorted(items)] for name, items in lists.items()}


class _PartParser(MultiPartParser):
    """Form parser that refuses what Starlette reads slowly or as Latin-1.

    These are long headers of a form's parts, because a header of 4 KB takes 8 ms, and fields that are not in UTF-8.
    """

    spool_max_size = 1 << 30  # files stay in memory, where the body is already

    def on_header_end(self) -> None:
        if len(self._current_partial_header_value) > MAX_PART_HEAD:
            raise MultiPartException(f"a header of a part, with its file name, is longer than {MAX_PART_HEAD} bytes")
        super().on_header_end()

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            check_utf8(self._current_part.data, self._current_part.field_name)
        super().on_part_end()


async def _chunks(body: bytearray) -> AsyncGenerator[bytes, None]:
    """Yield the body in chunks. Other requests are served in between."""
    for begin in range(0, len(body), FORM_CHUNK):
        yield bytes(body[begin : begin + FORM_CHUNK])
        await asyncio.sleep(0)


def _pairs(query: bytes | bytearray) -> list[tuple[str, str]]:
    """Parse a query or a URL-encoded form, and return (name, value) of each field.

    Raises: InvalidRequest if there are more than MAX_FIELDS fields, or a name or a value is not in UTF-8.
    """
    text = query.decode("utf-8", "surrogateescape")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="surrogateescape")
    except ValueError:
        raise InvalidRequest.listing(f"there are more than {MAX_FIELDS} fields") from None
    for name, value in pairs:
        check_utf8(name.encode("utf-8", "surrogateescape"), "the name of a field")
        check_utf8(value.encode("utf-8", "surrogateescape"), name)
    return pairs


def check_utf8(value: bytes | bytearray, name: str) -> None:
    """Raise InvalidRequest if `value`, the value of the field `name`, is not text in UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest.listing(f"{shorten(name)} is not text in UTF-8 at byte {error.start}") from None


def _json_object(body: bytes | bytearray) -> dict[str, Any]:
    if len(body) > MAX_VALUES and next(islice(_VALUES.finditer(body), MAX_VALUES, None), None):
        raise InvalidRequest.listing(f"the body has more than {MAX_VALUES} strings, commas and brackets")
    try:
        fields = json.loads(body.decode("utf-8-sig"))  # of bytes, it would also read UTF-16 and UTF-32
    except json.JSONDecodeError as error:
        raise InvalidRequest.listing(f"the body is not JSON: {error.msg} at character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest.listing(f"the body is not JSON in UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        problem = "the body is not JSON: it is nested too deeply, or has a number with too many digits"
        raise InvalidRequest.listing(problem) from error
    if not isinstance(fields, dict):
        raise InvalidRequest("Invalid JSON format", accepted=f"a JSON object, sent with Content-Type: {JSON}")
    return fields
