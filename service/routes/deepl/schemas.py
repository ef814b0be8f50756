"""Bodies and responses of DeepL's contract, with its names."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, WithJsonSchema, model_validator

from service.access.eviction import MAX_NAME_LENGTH
from service.glossaries.entries import EntriesFormat
from service.glossaries.store import Glossary
from service.http.fields import (
    AsChoice,
    FileField,
    FlagField,
    FormalityField,
    LanguageField,
    Number,
    OptionalText,
    TextField,
    Texts,
    Words,
)
from service.schemas import FORMALITY

MAX_GLOSSARIES = 5  # limit for one request
UNSUPPORTED_FIELDS = ("style_id", "custom_instructions")
MAX_PAGE = 100  # items of a page
MAX_FILTER = 1000  # characters of a text that each segment must contain

NameField = Annotated[
    TextField, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": r"\S"})
]
MODEL_TYPES = ("latency_optimized", "quality_optimized", "prefer_quality_optimized")


class Body(BaseModel):
    """Base class of bodies. Unknown fields are ignored, because new versions of the SDKs send new fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class CommonFields(Body):
    """The fields that requests for texts and requests for documents have in common."""

    target_lang: LanguageField = Field(description="A code of GET /v2/languages?type=target.")
    source_lang: OptionalText = Field(None, description="A code of GET /v2/languages; detected if left out.")
    formality: FormalityField = FORMALITY
    glossary_id: OptionalText = Field(None, description="The id of a stored glossary; it requires source_lang.")
    glossary_ids: Words = Field(
        [],
        max_length=MAX_GLOSSARIES,
        description="The ids of several stored glossaries; if several contain a term, the first applies.",
    )
    translation_memory_id: OptionalText = Field(None, description="The id of a translation memory.")
    translation_memory_threshold: Number = Field(
        70, ge=0, le=100, description="Smallest similarity of a match that is used, from 0 to 100."
    )
    style_id: Any = Field(None, description="Refused unless it is empty: the models know no style rules.")
    custom_instructions: Any = Field(None, description="Refused unless it is empty: the models take no instructions.")


class TranslateBody(CommonFields):
    """The texts to translate, and the options."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": ["Where is the train station?"], "target_lang": "DE"}]}
    )

    text: Texts = Field(min_length=1, description="Texts, each of one language.")
    context: OptionalText = Field(None, description="Ignored: every sentence is translated by itself.")
    split_sentences: Annotated[Literal["0", "1", "nonewlines"] | None, AsChoice] = Field(
        None,
        description="`0`: each text is one sentence; `nonewlines`: a single line break does not end a sentence. "
        "In markup, no line break ends a sentence.",
    )
    preserve_formatting: FlagField = Field(False, description="Ignored: formatting is always preserved.")
    model_type: OptionalText = Field(
        None,
        description="Extension: the name of a model of GET /models. DeepL's values, latency_optimized, "
        "quality_optimized and prefer_quality_optimized, select the default model.",
    )
    tag_handling: Annotated[Literal["xml", "html"] | None, AsChoice] = Field(
        None, description="The markup of the texts; plain text if left out."
    )
    tag_handling_version: Annotated[Literal["v1", "v2"] | None, AsChoice] = Field(
        None,
        description="Ignored, but repeated in the response: both versions give the same result, in which each tag "
        "stays with its words.",
    )
    outline_detection: FlagField = Field(
        True,
        description="Whether the service detects which elements of XML separate texts, as paragraphs do. Without XML, "
        "it has no effect.",
    )
    non_splitting_tags: Words = Field(
        [], description="Elements that do not separate texts. Without tag_handling, they have no effect."
    )
    splitting_tags: Words = Field(
        [], description="Elements that separate texts, as paragraphs do. Without tag_handling, they have no effect."
    )
    ignore_tags: Words = Field(
        [], description="Elements whose text is not translated. Without tag_handling, they have no effect."
    )
    show_billed_characters: FlagField = Field(
        False, description="Whether the response has the number of charged characters."
    )
    show_untranslated: FlagField = Field(
        False, description="Extension: whether to list the sentences that stay unchanged and the missing clauses."
    )


class TranslatedText(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int | None = Field(None, description="Only with show_billed_characters.")
    model_type_used: str | None = Field(None, description="Only with model_type.")
    tag_handling_version: str | None = Field(None, description="Only with tag_handling; v2 unless the request has v1.")
    untranslated: list[str] | None = Field(None, description="Only with show_untranslated.")
    match: float | None = Field(
        None, description="Extension: similarity, from 0 to 1, to the match in the translation memory."
    )


class TranslateResult(BaseModel):
    """A translation of each text, in the order of the texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"translations": [{"detected_source_language": "EN", "text": "Wo ist der Bahnhof?"}]}
        }
    )

    translations: list[TranslatedText]


class LanguagesBody(Body):
    """The languages to list."""

    type: Annotated[Literal["source", "target"] | None, AsChoice] = Field(None, description="`source` if left out.")


class DeeplLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool | None = Field(None, description="Of target languages only.")


class ResourceBody(Body):
    """The resource, such as `translate_text`, whose languages are to be listed."""

    resource: Annotated[
        Literal[
            "translate_text",
            "translate_document",
            "glossary",
            "translation_memory",
            "write",
            "voice",
            "style_rules",
        ],
        AsChoice,
    ] = Field(description="The service has no languages for `write`, `voice` and `style_rules`.")
    include: Words = Field([], description="Ignored: all languages of the service are stable.")


class FeatureStatus(BaseModel):
    status: Literal["stable"] = "stable"


class ResourceLanguage(BaseModel):
    """A language of a resource. `features` has a key for each supported feature."""

    lang: str
    name: str
    status: Literal["stable"] = "stable"
    usable_as_source: bool
    usable_as_target: bool
    features: dict[str, FeatureStatus]


class ResourceFeature(BaseModel):
    """A feature of a resource, and whether the source, the target or both languages must support the feature."""

    name: str
    needs_source_support: bool
    needs_target_support: bool


class Resource(BaseModel):
    name: str
    features: list[ResourceFeature]


class DeeplUsage(BaseModel):
    """Characters used this month, and the limit. Without a limit, `character_limit` is 10^12."""

    character_count: int
    character_limit: int


class LanguagePair(BaseModel):
    source_lang: str
    target_lang: str


class LanguagePairs(BaseModel):
    supported_languages: list[LanguagePair]


class DictionaryBody(Body):
    """The entries of a dictionary."""

    source_lang: LanguageField
    target_lang: LanguageField
    entries: TextField = Field(
        json_schema_extra={"minLength": 1},
        description="One entry per line: a term and its translation, separated by a tab, or by a comma in CSV.",
    )
    entries_format: Annotated[EntriesFormat, AsChoice] = Field(EntriesFormat.TSV, strict=False)


Dictionaries = Annotated[list[DictionaryBody], FailFast()]  # otherwise, pydantic describes each of 400,000 errors


class GlossaryBody(DictionaryBody):
    """A glossary for one pair of languages."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Stations",
                    "source_lang": "EN",
                    "target_lang": "DE",
                    "entries": "train station\tHauptbahnhof",
                    "entries_format": "tsv",
                }
            ]
        }
    )

    name: NameField


class MultilingualBody(Body):
    """A glossary with a dictionary for each pair of languages."""

    name: NameField
    dictionaries: Dictionaries = Field([])


class ChangeBody(Body):
    """Changes of a glossary. An entry is added, or replaces the entry with the same term."""

    name: NameField | None = None
    dictionaries: Dictionaries = Field([])

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.name is None and not self.dictionaries:
            raise ValueError("has neither name nor dictionaries; accepted: at least one of them")
        return self


class GlossaryInfo(BaseModel):
    """A glossary for one pair of languages, without its entries."""

    glossary_id: str
    name: str
    ready: bool
    source_lang: str
    target_lang: str
    creation_time: str
    entry_count: int

    @classmethod
    def of(cls, glossary: Glossary) -> "GlossaryInfo":
        ((direction, count),) = glossary.dictionaries
        return cls(
            glossary_id=glossary.id,
            name=glossary.name,
            ready=True,
            source_lang=direction.source,
            target_lang=direction.target,
            creation_time=timestamp(glossary.created),
            entry_count=count,
        )


class GlossaryInfos(BaseModel):
    glossaries: list[GlossaryInfo]


class DictionaryInfo(BaseModel):
    source_lang: str
    target_lang: str
    entry_count: int


class MultilingualInfo(BaseModel):
    """A glossary, without its entries."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DictionaryInfo]

    @classmethod
    def of(cls, glossary: Glossary) -> "MultilingualInfo":
        dictionaries = [
            DictionaryInfo(source_lang=direction.source, target_lang=direction.target, entry_count=count)
            for direction, count in glossary.dictionaries
        ]
        return cls(
            glossary_id=glossary.id,
            name=glossary.name,
            creation_time=timestamp(glossary.created),
            dictionaries=dictionaries,
        )


class MultilingualInfos(BaseModel):
    glossaries: list[MultilingualInfo]


class DictionaryEntries(BaseModel):
    source_lang: str
    target_lang: str
    entries: str
    entries_format: EntriesFormat = EntriesFormat.TSV


class DictionariesEntries(BaseModel):
    dictionaries: list[DictionaryEntries]


class DocumentBody(CommonFields):
    """A file to translate, and the options."""

    file: FileField = Field(description="The file.")
    filename: OptionalText = Field(None, description="The name of the file; by default the name in the upload.")
    output_format: OptionalText = Field(
        None,
        description="The format of the translation. For a PDF file, it is required and must be docx. Other files keep "
        "their format.",
    )


class MemoriesBody(Body):
    """The requested page of a list."""

    page: Number = Field(0, ge=0, le=1_000_000)
    page_size: Number = Field(25, ge=1, le=MAX_PAGE)


class SegmentsBody(Body):
    """The requested page of segments, and a text that each segment must contain."""

    page_size: Number = Field(50, ge=1, le=MAX_PAGE)
    page_cursor: OptionalText = Field(None, pattern=r"^\d{1,9}$")
    filter_text: OptionalText = Field(None, max_length=MAX_FILTER)
    filter_case_sensitive: FlagField = False


class TranslationMemoryInfo(BaseModel):
    """A translation memory, without its segments."""

    translation_memory_id: str
    name: str
    source_language: str
    target_languages: list[str]
    segment_count: int
    creation_time: str
    updated_time: str


class MemoryInfos(BaseModel):
    translation_memories: list[TranslationMemoryInfo]
    total_count: int


class TargetSegment(BaseModel):
    target_segment_id: str
    target_language: str
    target_text: str


class MemorySegment(BaseModel):
    """A source text and its translation."""

    source_segment_id: str
    source_text: str
    targets: list[TargetSegment]


class MemorySegments(BaseModel):
    """A page of segments. `segment_count` counts all segments of the memory. The last page has no cursor."""

    segments: list[MemorySegment]
    segment_count: int
    next_page_cursor: str | None = None


class KeyBody(Body):
    """Key of the document, from the answer to its upload."""

    document_key: TextField


class DocumentHandle(BaseModel):
    document_id: str
    document_key: str


class DocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    billed_characters: int | None = Field(None, description="Only of a document that is done.")
    error_message: str | None = Field(None, description="Only of a document that could not be translated.")


def timestamp(seconds: float) -> str:
    """Return a time such as `2026-01-31T12:00:00.000000Z`. DeepL's SDK cannot parse a time without a fraction."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
