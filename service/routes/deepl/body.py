"""What DeepL's clients send: JSON, or a form in which lists are repeated fields or words between commas."""

from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict

from service.bodies import of_form, read_fields
from service.errors import well_formed

Fields = dict[str, Any]

_FLAGS = {"0": False, "1": True, "false": False, "true": True}


async def read(request: Request) -> Fields:
    """Of a body of either kind, and of the query. Raises InvalidRequest."""
    if not (await request.body()).strip():  # whatever kind of nothing a GET says that it has
        return of_form(request.query_params)
    return await read_fields(request)


def first(fields: Fields, name: str) -> str:
    """A text of the body, or nothing."""
    value = fields.get(name)
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


def form_or_json(model: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """For a route's `openapi_extra`: a body of that model, of either kind."""
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": required, "content": {kind: {"schema": inlined(model)} for kind in kinds}}}


def inlined(model: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON schema, with what it refers to in the places of the references."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def expand(part: Any) -> Any:
        if isinstance(part, list):
            return [expand(each) for each in part]
        if not isinstance(part, dict):
            return part
        named = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {name: expand(value) for name, value in {**named, **part}.items() if name != "$ref"}

    expanded: dict[str, Any] = expand(schema)
    return expanded


def _single(value: Any) -> Any:
    """A form's list of one."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return well_formed(value) if isinstance(value, str) else value


def _flag(value: Any) -> Any:
    value = _single(value)
    return _FLAGS.get(str(value).strip().lower(), value)


def _choice(value: Any) -> Any:
    """A number for the digits that a form has; nothing for an empty word."""
    value = _single(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if value != "" else None


def _texts(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    return [well_formed(each) if isinstance(each, str) else each for each in values]


def _words(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in values):
        return value
    return [word.strip() for each in values for word in well_formed(each).split(",") if word.strip()]


Text = Annotated[str, BeforeValidator(_single)]
OptionalText = Annotated[str | None, BeforeValidator(_choice)]
AsChoice = BeforeValidator(_choice)
Flag = Annotated[bool, BeforeValidator(_flag)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Words = Annotated[list[str], BeforeValidator(_words)]


class Body(BaseModel):
    """Unknown fields are passed over: clients send more from year to year."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
