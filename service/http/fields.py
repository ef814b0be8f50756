"""Types of the fields of request bodies, for both dialects.

The values of a form or a query are texts. A number or a flag may therefore be sent as text, a list or an object as JSON
text, and a list with one item stands for the item. In texts, lone surrogates are replaced.
"""

import json
import re
from typing import Annotated, Any, Literal, LiteralString

from pydantic import BeforeValidator, InstanceOf, WithJsonSchema
from pydantic_core import PydanticCustomError
from starlette.datastructures import UploadFile

from service.errors import well_formed

FLAGS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}
MAX_COMMAS = 20_000  # of JSON in a form: it is parsed in one piece
MAX_WORDS = 1000  # names of elements or of columns; the event loop reads and pickles them


def _single(value: Any) -> Any:
    """Return the item of a list with one item. Return any other value itself. In a text, replace lone surrogates."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return well_formed(value) if isinstance(value, str) else value


def _choice(value: Any) -> Any:
    """Convert an integer to text and an empty text to None. Return any other value itself."""
    value = _single(value)
    value = str(value) if type(value) is int else value
    return value if value != "" else None


def _number(value: Any, problem: LiteralString = "not_a_number") -> Any:
    value = _single(value)
    if isinstance(value, float) and value.is_integer():  # JSON Schema takes 1.0 for an integer
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value, re.ASCII):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError(problem, "parameter is not a number")
    return value


def _flag(value: Any) -> Any:
    value = _single(value)
    flag = FLAGS.get(str(value).strip().lower()) if isinstance(value, str | int) else None
    if flag is None:
        raise ValueError("must be true or false")
    return flag


def _text_or_texts(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if not isinstance(value, list):
        raise ValueError("must be a string or a list of strings")
    wrong = [str(index) for index, item in enumerate(value) if not isinstance(item, str)]
    if wrong:
        indices = ", ".join(wrong[:10]) + (" ..." if len(wrong) > 10 else "")
        raise ValueError(f"must be a string or a list of strings; the items at indices {indices} are not strings")
    return [well_formed(item) for item in value]


def _texts(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in values):
        raise ValueError("must be a list of strings")
    return list(map(well_formed, values))


def _words(value: Any) -> Any:
    words = [word.strip() for item in _texts(value) for word in item.split(",") if word.strip()]
    if len(words) > MAX_WORDS:
        raise ValueError(f"has {len(words)} items; accepted: at most {MAX_WORDS}")
    return words


def _parse_json(value: Any, opening: str) -> Any:
    """Return the parsed JSON if `value` is a text that begins with `opening`, otherwise `value` itself."""
    if isinstance(value, str) and value.strip().startswith(opening):
        if value.count(",") >= MAX_COMMAS:
            raise ValueError(f"has more than {MAX_COMMAS} items")
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("is not JSON") from None
    return value


def _json_texts(value: Any) -> Any:
    return _texts(_parse_json(value, "["))


def _json_pairs(value: Any) -> Any:
    items = _parse_json(value, "{")
    if not isinstance(items, dict) or not all(isinstance(item, str) for item in items.values()):
        raise ValueError("must be an object whose values are strings")
    return {well_formed(name): well_formed(item) for name, item in items.items()}


AsChoice = BeforeValidator(_choice)
TextField = Annotated[str, BeforeValidator(_single)]
LanguageField = Annotated[TextField, WithJsonSchema({"type": "string", "minLength": 1})]
"""A language code. The routes name the codes that they accept."""
FormalityField = Annotated[Literal["default", "less", "more", "prefer_less", "prefer_more"] | None, AsChoice]
OptionalText = Annotated[str | None, AsChoice]
AsNumber = BeforeValidator(_number)  # after the limits of a number that may be null: their schema is right only so
Number = Annotated[int, AsNumber]
Count = Annotated[
    int, BeforeValidator(lambda value: max(0, _number(value, "not_a_count")))
]  # LibreTranslate reads -1 as 0
FlagField = Annotated[bool, BeforeValidator(_flag)]
FileField = Annotated[UploadFile, InstanceOf(), WithJsonSchema({"type": "string", "format": "binary"})]
TextOrTexts = Annotated[str | list[str], BeforeValidator(_text_or_texts)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Words = Annotated[list[str], BeforeValidator(_words)]  # may also be one text, separated by commas
_TEXTS = WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}})
JsonTexts = Annotated[list[str], BeforeValidator(_json_texts), _TEXTS]
JsonPairs = Annotated[dict[str, str], BeforeValidator(_json_pairs)]
