"""Bodies and responses of LibreTranslate's contract, with our extensions, except those of POST /translate.

Unknown fields of a body are ignored.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from service.glossaries.offered import OFFERED
from service.http.fields import (
    FileField,
    FlagField,
    FormalityField,
    JsonPairs,
    JsonTexts,
    LanguageField,
    Number,
    TextField,
    TextOrTexts,
)
from service.memories.store import MAX_TEXT_LENGTH
from service.translation.jobs import DetectedSource

TextRange = tuple[int, int]
"""Begin and end of a range of characters (code points) in a text."""

MAX_TERMS = 1000  # glossary terms of a request
AUTO = "auto"  # source language that stands for the detected one
MODEL = "Name of a model of GET /models; `default` selects the default model of each direction."
DEFAULT_MODEL = "default"
FORMALITY: Any = Field(
    None,
    description="`less` and `prefer_less`: informal; `more` and `prefer_more`: formal. German and French have them; "
    "for other targets, `less` and `more` are refused, and the other values have no effect.",
)
THRESHOLD: Any = Field(
    100,
    ge=0,
    le=100,
    description="Smallest similarity of a match of the memory that is used, from 0 to 100; 100: exact matches only.",
)

SourceField = Annotated[LanguageField, AfterValidator(lambda code: AUTO if code.lower() == AUTO else code)]
"""A source language, or AUTO in any letter case."""


class RequestFields(BaseModel):
    """Base class of bodies. A field that is null counts as missing, and so does an empty language."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    api_key: TextField | None = Field(None, description="API key, if the service requires one.")

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_fields(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        empty = {"source", "target", "format", "model", "api_key"}
        return {name: item for name, item in fields.items() if item is not None and not (item == "" and name in empty)}


class DetectRequest(RequestFields):
    """A text whose language is to be detected."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Where is the train station?"}]})

    q: TextOrTexts = Field(description="Text, or a list of texts in one language.")

    @property
    def text(self) -> str:
        """The text, or all texts joined by line breaks."""
        return self.q if isinstance(self.q, str) else "\n".join(self.q)


class TermFields(RequestFields):
    """Terms of a request."""

    glossary: JsonPairs = Field({}, description="Terms and their translations.")
    glossary_id: TextField | None = Field(
        None,
        description="Id of a glossary stored by POST /v2/glossaries; or `operator`: the terms that GET "
        "/frontend/settings lists, those of the language of each text. `glossary` takes precedence.",
    )
    do_not_translate: JsonTexts = Field([], description="Terms that are not translated.")

    def term_problems(self, source: str) -> list[str]:
        """Return what is wrong with the terms of a text in `source`."""
        terms = len(self.glossary) + len(self.do_not_translate)
        problems = []
        if terms > MAX_TERMS:
            problems.append(f"glossary and do_not_translate have {terms} terms; accepted: at most {MAX_TERMS}")
        if self.glossary_id not in (None, OFFERED) and source == AUTO:
            problems.append("glossary_id needs a source language")
        return problems


class FileRequest(TermFields):
    """A file to translate."""

    file: FileField = Field(description="File in a format that GET /frontend/settings lists.")
    source: SourceField = Field(description="Code of GET /languages, or auto.")
    target: LanguageField = Field(description="Code of GET /languages.")
    memory: TextField = Field("", description="Id of a translation memory (PUT /memories).")
    memory_threshold: Number = THRESHOLD
    formality: FormalityField = FORMALITY
    columns: TextField = Field(
        "",
        description="Columns to translate of a .csv or .tsv file, separated by commas: names in the first row, or "
        "numbers.",
    )
    encoding: TextField = Field("", description="Encoding of a text file that is not Unicode; detected if left out.")
    model: TextField | None = Field(None, description=MODEL)
    quality: FlagField = Field(False, description="Whether to return how many sentences are doubtful.")
    tmx: FlagField = Field(False, description="Whether to write the sentences and their translations to a TMX file.")


class MemoryRequest(RequestFields):
    """A file with units of a translation memory."""

    file: FileField = Field(
        description="File .tmx, .xliff, .xlf or .po; or .tsv, with a source, a tab and its translation on each line."
    )
    source: LanguageField = Field(description="Code of GET /languages.")
    target: LanguageField = Field(description="Code of GET /languages.")
    name: TextField = Field("", description="Name of the memory; the name of the file without its ending if left out.")


UnitField = Annotated[
    TextField, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH, "pattern": r"\S"})
]


class SuggestRequest(RequestFields):
    """A better translation of a text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "s": "Wo ist der Hauptbahnhof?", "source": "en", "target": "de"}
            ]
        }
    )

    q: UnitField = Field(description="Text.")
    s: UnitField = Field(description="Suggested translation.")
    source: LanguageField = Field(description="Code of GET /languages.")
    target: LanguageField = Field(description="Code of GET /languages.")


class DetectedLanguage(BaseModel):
    """The detected language of a text, with a confidence from 0 to 100."""

    confidence: float
    language: str

    @classmethod
    def of(cls, detected: DetectedSource) -> Self:
        return cls(confidence=round(100 * detected.confidence, 1), language=detected.language)


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


class PageTerm(BaseModel):
    """A term that the operator has the page send for every user."""

    term: str
    translation: str
    source: str
    target: str


class PageMemory(BaseModel):
    """A translation memory that the operator offers to every user of the page."""

    id: str
    name: str
    source: str
    target: str
    units: int


class FrontendSettings(BaseModel):
    """Settings for a web page. `frontendTimeout`: milliseconds from the last key press to the translation."""

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: DefaultLanguages
    glossary: list[PageTerm] = Field(description="Terms of the operator.")
    memories: list[PageMemory] = Field(description="Translation memories of the operator.")
    formality: list[str] = Field(description="Target languages whose translations can be formal or informal.")


class TranslatedFile(BaseModel):
    """Addresses of the translated file and of its sentences. The files are deleted after `file_retention_seconds`."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"translatedFileUrl": "http://localhost:8000/download_file/8JtY.letter_de.txt"}}
    )

    translatedFileUrl: str
    tmxUrl: str | None = Field(None, description="TMX file with the sentences; only with `tmx`.")
    sentences: int | None = Field(None, description="Number of translated sentences; only with `quality`.")
    doubtful: int | None = Field(
        None,
        description="Number of sentences whose `quality` in POST /translate is below 55, or that no model could "
        "translate; only with `quality`, and absent if the model estimates none.",
    )


class Health(BaseModel):
    """Answer to a probe if the service works."""

    status: Literal["ok"] = "ok"
