"""What LibreTranslate's clients send: JSON, a form, a form with files, or a query string; the same fields in each."""

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
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
REFERENCES = "#/components/schemas/{model}"


async def read_fields(request: Request) -> dict[str, Any]:
    """A field that a form, or the query, has several times is a list. Raises InvalidRequest."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON or kind.endswith("+json"):
        return _object(await request.body())
    if kind in FORMS:
        try:
            form = await request.form()
        except (HTTPException, FormParserError, ValueError) as error:
            raise InvalidRequest.listing(["the body is not the form that it says it is"]) from error
        return of_form(request.query_params) | of_form(form)
    if (await request.body()).strip():
        raise InvalidRequest.listing(
            ["the body must be a JSON object, sent with Content-Type: application/json, or a form"]
        )
    return of_form(request.query_params)


def parsed(model: type[BodyType], fields: dict[str, Any]) -> BodyType:
    """Raises RequestValidationError, which lists every problem."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from error


async def _translate_request(request: Request) -> TranslateRequest:
    return parsed(TranslateRequest, await read_fields(request))


async def _detect_request(request: Request) -> DetectRequest:
    return parsed(DetectRequest, await read_fields(request))


TranslateBody = Annotated[TranslateRequest, Depends(_translate_request)]
DetectBody = Annotated[DetectRequest, Depends(_detect_request)]


def documented_body(model: type[BaseModel]) -> dict[str, Any]:
    """For a route's `openapi_extra`: a body of that model in each of the ways. `body_schemas` has what it refers to."""
    schema = {"$ref": REFERENCES.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in (JSON, *FORMS)}}}


def body_schemas() -> dict[str, Any]:
    """The schemas of bodies, by name, for the components of the OpenAPI document."""
    return {
        model.__name__: model.model_json_schema(ref_template=REFERENCES) for model in (TranslateRequest, DetectRequest)
    }


def _object(body: bytes) -> dict[str, Any]:
    """Raises InvalidRequest."""
    try:
        fields = json.loads(body) if body.strip() else None
    except json.JSONDecodeError as error:
        raise InvalidRequest.listing([f"the body is not JSON: {error.msg} at character {error.pos}"]) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest.listing(["the body is not JSON in UTF-8, or nested too deep"]) from error
    if not isinstance(fields, dict):
        raise InvalidRequest.listing(["the body must be a JSON object, sent with Content-Type: application/json"])
    return fields


def of_form(given: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """Files are no fields."""
    found: dict[str, Any] = {}
    for name in given:
        values = [value for value in given.getlist(name) if isinstance(value, str)]
        if values:
            found[name] = values[0] if len(values) == 1 else values
    return found
