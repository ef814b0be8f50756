"""Bodies and responses of LibreTranslate's contract, with our extensions. Unknown fields are ignored.

The values of a form are texts. A number, boolean, list or object may therefore be sent as JSON text.
"""

import json
import re
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError
from starlette.datastructures import UploadFile

from service.errors import shorten, well_formed

_FLAGS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}


def _text(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


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


def _parse_json(value: Any, opening: str) -> Any:
    """Return the parsed JSON if `value` is a text that begins with `opening`, otherwise `value` itself."""
    if isinstance(value, str) and value.strip().startswith(opening):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("is not JSON") from None
    return value


def _texts(value: Any) -> Any:
    items = _parse_json(value, "[")
    items = [items] if isinstance(items, str) else items
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("must be a list of strings")
    return [well_formed(item) for item in items]


def _pairs(value: Any) -> Any:
    items = _parse_json(value, "{")
    if not isinstance(items, dict) or not all(isinstance(item, str) for item in items.values()):
        raise ValueError("must be an object whose values are strings")
    return {well_formed(name): well_formed(item) for name, item in items.items()}


def _number(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value, re.ASCII):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("parameter is not a number")
    return value


def _flag(value: Any) -> Any:
    flag = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise ValueError("must be true or false")
    return flag


TextField = Annotated[str, BeforeValidator(_text)]
TextOrTexts = Annotated[str | list[str], BeforeValidator(_text_or_texts)]
TextsField = Annotated[list[str], BeforeValidator(_texts)]
Pairs = Annotated[dict[str, str], BeforeValidator(_pairs)]
Number = Annotated[int, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(lambda value: max(0, _number(value)))]  # LibreTranslate reads -1 as 0
FlagField = Annotated[bool, BeforeValidator(_flag)]
TextRange = tuple[int, int]
"""Begin and end of a range of characters (code points) in a text."""


MODEL = "Name of a model of GET /models; `default` selects the default model of each direction."
DEFAULT_MODEL = "default"


class _Request(BaseModel):
    """Base class of bodies. A field that is null counts as missing, and so does an empty language."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_fields(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        empty = {"source", "target", "format", "model", "api_key"}
        return {name: item for name, item in fields.items() if item is not None and not (item == "" and name in empty)}


class TranslateRequest(_Request):
    """Texts to translate, and their languages. The text between sentences is preserved."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "source": "en", "target": "de"},
                {"q": ["Good morning.", "Thank you."], "source": "auto", "target": "de", "alternatives": 2},
            ],
            "required": ["q", "source"],  # see `_first_target`
        },
    )

    q: TextOrTexts = Field(description="Text, or list of texts.")
    source: TextField = Field(description="Code of GET /languages; or auto, which detects the language of each text.")
    target: TextField = Field(
        description="Code of GET /languages. Required without `targets`; with `targets`, the default is the first of "
        "them."
    )
    format: Annotated[TextField, WithJsonSchema({"type": "string", "enum": ["text", "html"]})] = Field(
        "text", description="text, or html: tags then stay with their words, and entities stay escaped."
    )
    alternatives: Count = Field(0, description="Largest number of alternative translations of each text.")
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")
    targets: TextsField = Field(
        [], description="Several target languages; `translations` has an answer for each language."
    )
    glossary: Pairs = Field({}, description="Terms and their translations.")
    glossary_id: TextField | None = Field(
        None, description="Id of a glossary stored by POST /v2/glossaries; `glossary` takes precedence."
    )
    do_not_translate: TextsField = Field([], description="Terms that are not translated.")
    memory: TextField | None = Field(
        None, description="Id of a translation memory (PUT /memories). The response then has `match`."
    )
    split_sentences: FlagField = Field(True, description="False if each text is one sentence.")
    beam_size: Number | None = Field(
        None, ge=1, description="Beam size of the search; the model's default if left out."
    )
    model: TextField | None = Field(None, description=MODEL + " The response then has `models`.")
    quality: FlagField = Field(
        False, description="Whether to return the estimated quality of each translation, from 0 to 100."
    )
    untranslated: FlagField = Field(
        False, description="Whether to list the sentences that the model left untranslated; they stay unchanged."
    )
    segments: FlagField = Field(
        False, description="Whether to return the ranges of each sentence in both texts; for plain text only."
    )
    alignment: FlagField = Field(False, description="Whether to return `segments` with the alignment of words.")
    attention: FlagField = Field(
        False, description="Whether to return `segments` with the model's cross-attention, of at most 500,000 weights."
    )
    stream: FlagField = Field(False, description="Whether to answer with server-sent events, one per sentence.")
    timeout_ms: Number | None = Field(
        None, ge=1, le=86_400_000, description="Time after which the request is answered with 504."
    )

    @model_validator(mode="before")
    @classmethod
    def _first_target(cls, fields: Any) -> Any:
        """Use the first of `targets` as `target` if `target` is missing."""
        targets = fields.get("targets") if isinstance(fields, dict) else None
        if targets and isinstance(targets, list) and fields.get("target") in (None, ""):
            return fields | {"target": targets[0]}
        return fields

    @model_validator(mode="before")
    @classmethod
    def _no_misspelt_field(cls, fields: Any) -> Any:
        """Refuse an unknown field whose name is nearly the name of an extension. Other unknown fields are ignored."""
        unknown = [name for name in fields if name not in cls.model_fields] if isinstance(fields, dict) else []
        for name in unknown[:10]:  # the comparison is slow
            if similar := get_close_matches(str(name)[:50], _EXTENSIONS, 1, 0.85):
                message = "unknown parameter {name}; did you mean {similar}?"
                raise PydanticCustomError("misspelt", message, {"name": shorten(str(name)), "similar": similar[0]})
        return fields

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.q,) if isinstance(self.q, str) else tuple(self.q)


_CONTRACT = {"q", "source", "target", "format", "alternatives", "api_key"}
_EXTENSIONS = [name for name in TranslateRequest.model_fields if name not in _CONTRACT]


class DetectRequest(_Request):
    """A text whose language is to be detected."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Where is the train station?"}]})

    q: TextOrTexts = Field(description="Text, or a list of texts in one language.")
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")

    @property
    def text(self) -> str:
        """The text, or all texts joined by line breaks."""
        return self.q if isinstance(self.q, str) else "\n".join(self.q)


class ExplainRequest(_Request):
    """A sentence to translate, and its languages; the answer shows each step of the translation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"q": "Where is the train station?", "source": "en", "target": "de"}]}
    )

    q: TextField = Field(description="One sentence of at most 300 characters and 30 words.")
    source: TextField = Field(description="Code of GET /languages, or auto.")
    target: TextField = Field(description="Code of GET /languages.")
    model: TextField | None = Field(None, description=MODEL)
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")


class FileRequest(_Request):
    """A file to translate."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    file: Annotated[UploadFile, WithJsonSchema({"type": "string", "format": "binary"})] = Field(
        description="File in a format that GET /frontend/settings lists."
    )
    source: TextField = Field(description="Code of GET /languages, or auto.")
    target: TextField = Field(description="Code of GET /languages.")
    memory: TextField = Field("", description="Id of a translation memory (PUT /memories).")
    columns: TextField = Field(
        "",
        description="Columns to translate of a .csv or .tsv file, separated by commas: names in the first row, or "
        "numbers.",
    )
    model: TextField | None = Field(None, description=MODEL)
    segments: FlagField = Field(
        False, description="Whether to keep the sentences of the translation, to be read and edited by GET /documents."
    )
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")


class MemoryRequest(_Request):
    """A file with units of a translation memory."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    file: Annotated[UploadFile, WithJsonSchema({"type": "string", "format": "binary"})] = Field(
        description="File .tmx, .xliff, .xlf or .po; or .tsv, with a source, a tab and its translation on each line."
    )
    source: TextField = Field(description="Code of GET /languages.")
    target: TextField = Field(description="Code of GET /languages.")
    name: TextField = Field("", description="Name of the memory; the name of the file without its ending if left out.")
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")


class SuggestRequest(_Request):
    """A better translation of a text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "s": "Wo ist der Hauptbahnhof?", "source": "en", "target": "de"}
            ]
        }
    )

    q: TextField = Field(description="Text.")
    s: TextField = Field(description="Suggested translation.")
    source: TextField = Field(description="Code of GET /languages.")
    target: TextField = Field(description="Code of GET /languages.")
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")


class EditRequest(BaseModel):
    """Another translation of a sentence of a document."""

    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        frozen=True,
        json_schema_extra={"examples": [{"target": "Wo ist der Hauptbahnhof?"}]},
    )

    target: TextField = Field(description="Translation; line breaks become spaces. It may be empty.")
    api_key: TextField | None = Field(None, description="API key, if the service requires one.")


class DetectedLanguage(BaseModel):
    """The detected language of a text, with a confidence from 0 to 100."""

    confidence: float
    language: str


class SegmentAttention(BaseModel):
    """Cross-attention of a sentence: its tokens, and `weights[layer][head][target token][source token]`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]


class SegmentResponse(BaseModel):
    """A sentence. `source` is its range in the text, and `target` is the range of its translation."""

    source: TextRange
    target: TextRange
    quality: float | None = Field(None, description="From 0 to 100.")
    unfamiliar: bool | None = Field(
        None, description="True if `quality` is absent because the sentence is unlike the model's training text."
    )
    match: float | None = Field(None, description="From 0 to 1; only with a match in the memory.")
    alternatives: tuple[str, ...] | None = None
    alignment: tuple[tuple[TextRange, TextRange], ...] | None = Field(None, description="Pairs of aligned ranges.")
    attention: SegmentAttention | None = None


class TargetResponse(BaseModel):
    """Answer for one target. If `q` is a list, each field is a list. Fields that are not requested are absent."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(None, description="Only with auto.")
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Other translations, the best first.")
    bridge: str | list[str | None] | None = Field(
        None, description="Pivot language of a text, if no model translates directly from source to target."
    )
    quality: float | list[float | None] | None = Field(None, description="From 0 to 100.")
    match: float | list[float | None] | None = Field(
        None, description="Similarity, from 0 to 1, of the text to its match in the memory; absent without a match."
    )
    untranslated: list[str] | list[list[str]] | None = Field(None, description="Sentences that stay unchanged.")
    models: list[str] | list[list[str]] | None = Field(
        None, description="Names of the models that translated a text: two if there is a pivot. Only with `model`."
    )
    segments: list[SegmentResponse] | list[list[SegmentResponse]] | None = None


class TranslateResponse(TargetResponse):
    """Answer for `target`. If the request has `targets`, `translations` has the answer for each of them."""

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
    """A translated sentence. Joined together, the `translatedText` of all sentences is the whole translation."""

    text: int | None = Field(None, description="Index of the text in the list; absent for a single text.")
    index: int
    source: TextRange
    translatedText: str
    quality: float | None = None


class LanguageInfo(BaseModel):
    """A language, and the languages into which it can be translated, directly or through a pivot."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"code": "en", "name": "English", "native_name": "English", "targets": ["de"]}}
    )

    code: str
    name: str
    native_name: str = Field(description="Name of the language in the language itself.")
    targets: list[str]


class NamedLanguage(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    """Languages that the page selects at first."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """Settings for a web page.

    `frontendTimeout`: milliseconds from the last key press to the translation. `explanations`: whether POST /explain
    works, which needs torch.
    """

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    explanations: bool
    language: DefaultLanguages


class TranslatedFile(BaseModel):
    """Address of the translated file. The file is deleted after `file_retention_seconds`.

    `documentId` is present if the request has `segments`, unless the document is too large to be kept.
    """

    model_config = ConfigDict(
        json_schema_extra={"example": {"translatedFileUrl": "http://localhost:8000/download_file/8JtY.letter_de.txt"}}
    )

    translatedFileUrl: str
    documentId: str | None = Field(None, description="Id for /documents.")


class Health(BaseModel):
    """Answer to a probe if the service works."""

    status: Literal["ok"] = "ok"
