"""LibreTranslate's shapes, and our extensions of them. Unknown fields are ignored, as there.

A form has texts only, so a number, a boolean, a list or an object may always come as the text that spells it.
"""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from service.errors import well_formed

_FLAGS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}


def _text(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _text_or_texts(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if not isinstance(value, list):
        raise ValueError("must be a string or a list of strings")
    wrong = [str(place) for place, item in enumerate(value) if not isinstance(item, str)]
    if wrong:
        places = ", ".join(wrong[:10]) + (" ..." if len(wrong) > 10 else "")
        raise ValueError(f"must be a string or a list of strings; no strings at the places (from 0) {places}")
    return [well_formed(item) for item in value]


def _spelt(value: Any, opening: str) -> Any:
    """A list or an object that stands in a form as JSON."""
    if isinstance(value, str) and value.strip().startswith(opening):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("is not JSON") from None
    return value


def _texts(value: Any) -> Any:
    found = _spelt(value, "[")
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError("must be a list of strings")
    return [well_formed(item) for item in found]


def _pairs(value: Any) -> Any:
    found = _spelt(value, "{")
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise ValueError("must be an object whose values are strings")
    return {well_formed(name): well_formed(item) for name, item in found.items()}


def _number(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value, re.ASCII):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("parameter is not a number")
    return value


def _flag(value: Any) -> Any:
    found = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError("must be true or false")
    return found


Text = Annotated[str, BeforeValidator(_text)]
TextOrTexts = Annotated[str | list[str], BeforeValidator(_text_or_texts)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Pairs = Annotated[dict[str, str], BeforeValidator(_pairs)]
Number = Annotated[int, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Place = tuple[int, int]
"""Where characters (code points) begin and end in a text."""


class _Request(BaseModel):
    """A field that is null, or a language that is an empty text, is as good as missing: clients send such."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        empty = {"source", "target", "format", "api_key"}
        return {name: item for name, item in fields.items() if item is not None and not (item == "" and name in empty)}


class TranslateRequest(_Request):
    """What to translate, and between which languages. Sentences are translated one by one; what is between stays."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "source": "en", "target": "de"},
                {"q": ["Good morning.", "Thank you."], "source": "auto", "target": "de", "alternatives": 2},
            ]
        },
    )

    q: TextOrTexts = Field(description="A text, or a list of texts.")
    source: Text = Field(description="A code of GET /languages; or auto, which tells the language of each text.")
    target: Text = Field(description="A code of GET /languages.")
    format: Annotated[Text, WithJsonSchema({"type": "string", "enum": ["text", "html"]})] = Field(
        "text", description="html: tags go where their words go, and nothing is un-escaped."
    )
    alternatives: Number = Field(0, ge=0, description="How many other translations of each text to give, if there are.")
    api_key: Text | None = Field(None, description="Where the service asks for one.")
    targets: Texts = Field([], description="Several targets at once: `translations` has an answer for each.")
    glossary: Pairs = Field({}, description="Terms and how they are to be translated.")
    glossary_id: Text | None = Field(
        None, description="One of the caller's glossaries, as POST /v2/glossaries keeps them; `glossary` comes first."
    )
    do_not_translate: Texts = Field([], description="Words that stay as they are.")
    split_sentences: Flag = Field(True, description="Off: each text is one sentence already.")
    beam_size: Number | None = Field(None, ge=1, description="How wide to search; the model's own if left out.")
    quality: Flag = Field(False, description="How good each translation is likely to be, from 0 to 100.")
    segments: Flag = Field(False, description="Where each sentence stands in both texts; of plain text only.")
    alignment: Flag = Field(False, description="`segments` with what translates what.")
    attention: Flag = Field(False, description="`segments` with the cross-attention of the model: much.")
    stream: Flag = Field(False, description="Server-sent events, one a sentence.")
    timeout_ms: Number | None = Field(
        None, ge=1, le=86_400_000, description="After this time an answer is of no use: 504."
    )

    @model_validator(mode="before")
    @classmethod
    def _first_target(cls, fields: Any) -> Any:
        """Where there are targets, they need not be said twice."""
        targets = fields.get("targets") if isinstance(fields, dict) else None
        if targets and isinstance(targets, list) and fields.get("target") in (None, ""):
            return fields | {"target": targets[0]}
        return fields

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.q,) if isinstance(self.q, str) else tuple(self.q)


class DetectRequest(_Request):
    """A text whose language is asked for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Where is the train station?"}]})

    q: Text = Field(description="A text.")
    api_key: Text | None = Field(None, description="Where the service asks for one.")


class DetectedLanguage(BaseModel):
    """What `auto` found a text to be in; the confidence is from 0 to 100."""

    confidence: float
    language: str


class SegmentAttention(BaseModel):
    """`weights` [layer][head][target piece][source piece]."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]


class Segment(BaseModel):
    """A sentence: its characters (code points) in the text and in the translation."""

    source: Place
    target: Place
    quality: float | None = Field(None, description="0 to 100.")
    alternatives: tuple[str, ...] | None = None
    alignment: tuple[tuple[Place, Place], ...] | None = Field(None, description="What translates what.")
    attention: SegmentAttention | None = None


class TargetResponse(BaseModel):
    """A text for a text, a list for a list, in the same order. What was not asked for, or did not happen, is absent."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(None, description="Only for auto.")
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Others, the best first.")
    bridge: str | list[str | None] | None = Field(
        None, description="The language that a text went through, where no model goes from source to target."
    )
    quality: float | list[float | None] | None = Field(None, description="0 to 100.")
    segments: list[Segment] | list[list[Segment]] | None = None


class TranslateResponse(TargetResponse):
    """The answer for `target`; `translations` has those for `targets`, if there are."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"translatedText": "Wo ist der Bahnhof?"},
                {
                    "translatedText": ["Guten Morgen.", "Danke."],
                    "detectedLanguage": [
                        {"confidence": 98.7, "language": "en"},
                        {"confidence": 95.2, "language": "en"},
                    ],
                    "alternatives": [["Morgen.", "Einen guten Morgen."], ["Danke schön.", "Vielen Dank."]],
                },
            ]
        }
    )

    translations: dict[str, TargetResponse] | None = None


class StreamedSegment(BaseModel):
    """A sentence that is ready: its `translatedText`, with what stands before it, goes on where the last one ended."""

    text: int | None = Field(None, description="The number of the text in the list; absent for a single text.")
    index: int
    source: Place
    translatedText: str
    quality: float | None = None


class Language(BaseModel):
    """A language, and those that it can be translated into, be it through another."""

    model_config = ConfigDict(json_schema_extra={"example": {"code": "en", "name": "English", "targets": ["de"]}})

    code: str
    name: str
    targets: list[str]


class NamedLanguage(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    """What a page begins with."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """What a page must know. `frontendTimeout`: milliseconds without a key after which a text counts as typed."""

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: DefaultLanguages


class TranslatedFile(BaseModel):
    """Where the translated file is, for a while."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"translatedFileUrl": "http://localhost:8000/download_file/8JtY.letter_de.txt"}}
    )

    translatedFileUrl: str


class Health(BaseModel):
    """The worker lives."""

    status: Literal["ok"] = "ok"
