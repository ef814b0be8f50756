"""Request bodies of DeepL's clients: JSON, or a form whose lists are repeated fields or are separated by commas."""

import re
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict

from service.bodies import query_fields, read_fields
from service.errors import well_formed

Fields = dict[str, Any]

_INDEXED = re.compile(r"([a-z_]{1,40})\[(\d{1,3})\]\.([a-z_]{1,40})")  # how deepl-node sends lists of objects in forms
_FLAGS = {"0": False, "1": True, "false": False, "true": True}


async def read_deepl_fields(request: Request) -> Fields:
    """Return the fields of the body and of the query. Raises: InvalidRequest if the body is not valid."""
    if not (await request.body()).strip():  # the SDK sends a Content-Type with an empty body
        return query_fields(request)
    return _nest(await read_fields(request))


def first_text(fields: Fields, name: str) -> str:
    """Return the field `name`, or its first item if it is a list. Return "" if the result is not a text."""
    value = fields.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


def _nest(fields: Fields) -> Fields:
    """Convert fields such as `dictionaries[0].entries` to a list `dictionaries` of objects with a field `entries`."""
    lists: dict[str, dict[int, Fields]] = {}
    plain: Fields = {}
    for name, value in fields.items():
        if match := _INDEXED.fullmatch(name):
            lists.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
        else:
            plain[name] = value
    return plain | {name: [items[index] for index in sorted(items)] for name, items in lists.items()}


def form_or_json(model: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body of type `model`, sent as JSON or as a form."""
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": required, "content": {kind: {"schema": inlined(model)} for kind in kinds}}}


def inlined(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON schema with every reference replaced by its definition."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def expand(part: Any) -> Any:
        if isinstance(part, list):
            return [expand(item) for item in part]
        if not isinstance(part, dict):
            return part
        referred = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {name: expand(value) for name, value in {**referred, **part}.items() if name != "$ref"}

    expanded: dict[str, Any] = expand(schema)
    return expanded


def _single(value: Any) -> Any:
    """Return the item of a list with one item. Return any other value itself. In a text, replace lone surrogates."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return well_formed(value) if isinstance(value, str) else value


def _flag(value: Any) -> Any:
    value = _single(value)
    return _FLAGS.get(str(value).strip().lower(), value)


def _number(value: Any) -> Any:
    value = _single(value)
    return int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII) else value


def _choice(value: Any) -> Any:
    """Convert an integer to text and an empty text to None. Return any other value itself."""
    value = _single(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if value != "" else None


def _texts(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in values):
        raise ValueError("must be a list of strings")
    return list(map(well_formed, values))


def _words(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in values):
        raise ValueError("must be a list of strings")
    return [word.strip() for item in values for word in well_formed(item).split(",") if word.strip()]


FormNumber = Annotated[int, BeforeValidator(_number)]
FormText = Annotated[str, BeforeValidator(_single)]
OptionalText = Annotated[str | None, BeforeValidator(_choice)]
AsChoice = BeforeValidator(_choice)
FormFlag = Annotated[bool, BeforeValidator(_flag)]
FormTexts = Annotated[list[str], BeforeValidator(_texts)]
Words = Annotated[list[str], BeforeValidator(_words)]


class Body(BaseModel):
    """Base class of bodies. Unknown fields are ignored, because new versions of the SDKs send new fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
