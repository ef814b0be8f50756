"""Request bodies of LibreTranslate's clients, who send fields as JSON, a form, a form with files, or a query."""

import json
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import FormParserError
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException

from service.errors import InvalidRequest
from service.schemas import DetectRequest, TranslateRequest

BodyType = TypeVar("BodyType", bound=BaseModel)

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
FORMS = (URLENCODED, "multipart/form-data")
REFERENCES = "#/components/schemas/{model}"
NOT_AN_OBJECT = "the body must be a JSON object, sent with Content-Type: application/json"


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of the body and, if the body is a form, of the query. A repeated field becomes a list.

    Raises:
        InvalidRequest: if the body is not valid for its Content-Type.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON or kind.endswith("+json"):
        return _json_object(await request.body())
    if kind in FORMS:
        if kind == URLENCODED and (await request.body()).lstrip()[:1] == b"{":  # `curl -d` without a header
            raise InvalidRequest.listing([f"the body is JSON, but its Content-Type is {kind}; send {JSON}"])
        try:
            form = await request.form()
        except (HTTPException, FormParserError, ValueError) as error:
            raise InvalidRequest.listing([f"the body is not a valid form of Content-Type {kind}"]) from error
        return form_fields(request.query_params) | form_fields(form)
    if (await request.body()).strip():
        raise InvalidRequest.listing([f"{NOT_AN_OBJECT}, or a form"])
    return form_fields(request.query_params)


def parse_body(model: type[BodyType], fields: dict[str, Any]) -> BodyType:
    """Return the validated body.

    Raises:
        RequestValidationError: if a field is invalid; lists every invalid field.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise RequestValidationError(problems) from error


async def _translate_request(request: Request) -> TranslateRequest:
    return parse_body(TranslateRequest, await read_fields(request))


async def _detect_request(request: Request) -> DetectRequest:
    return parse_body(DetectRequest, await read_fields(request))


TranslateBody = Annotated[TranslateRequest, Depends(_translate_request)]
DetectBody = Annotated[DetectRequest, Depends(_detect_request)]


def documented_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body of type `model`, which `body_schemas` defines."""
    schema = {"$ref": REFERENCES.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in (JSON, *FORMS)}}}


def body_schemas() -> dict[str, Any]:
    """Return the schemas of the bodies by name, for the components of the OpenAPI document."""
    return {
        model.__name__: model.model_json_schema(ref_template=REFERENCES) for model in (TranslateRequest, DetectRequest)
    }


def form_fields(form: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """Return the text fields of a form or a query, without uploaded files."""
    fields: dict[str, Any] = {}
    for name in form:
        values = [value for value in form.getlist(name) if isinstance(value, str)]
        if values:
            fields[name] = values[0] if len(values) == 1 else values
    return fields


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
