"""Fields and forms of values that several routes of DeepL's contract share."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from service.http.fields import FormalityField, LanguageField, Number, OptionalText, Words
from service.schemas import FORMALITY

MAX_GLOSSARIES = 5  # limit for one request
Empty = Annotated[Any, WithJsonSchema({"anyOf": [{"const": ""}, {"const": []}, {"type": "null"}]})]


class Body(BaseModel):
    """Base class of bodies. Unknown fields are ignored, because new versions of the SDKs send new fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class CommonFields(Body):
    """The fields that requests for texts and requests for documents have in common."""

    target_lang: LanguageField = Field(description="A code of GET /v2/languages?type=target.")
    source_lang: OptionalText = Field(None, description="A code of GET /v2/languages; detected if left out.")
    formality: FormalityField = FORMALITY
    glossary_id: OptionalText = Field(None, description="A stored glossary's id, or `operator`; requires source_lang.")
    glossary_ids: Words = Field(
        [],
        max_length=MAX_GLOSSARIES,
        description="The ids of several stored glossaries; if several contain a term, the first applies.",
    )
    translation_memory_id: OptionalText = Field(None, description="The id of a translation memory.")
    translation_memory_threshold: Number = Field(
        70,
        ge=0,
        le=100,
        description="Smallest similarity of a match that is used, from 0 to 100; requires translation_memory_id.",
    )
    style_id: Empty = Field(None, description="Refused unless it is empty: the models know no style rules.")
    custom_instructions: Empty = Field(None, description="Refused unless it is empty: the models take no instructions.")


class LanguagePair(BaseModel):
    source_lang: str
    target_lang: str


def timestamp(seconds: float) -> str:
    """Return a time such as `2026-01-31T12:00:00.000000Z`. DeepL's SDK cannot parse a time without a fraction."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


Timestamp = Annotated[str, BeforeValidator(timestamp)]
