"""DeepL's fields, with DeepL's names."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.access.glossaries import EntriesFormat, Glossary
from service.routes.deepl.body import AsChoice, Body, Flag, OptionalText, Text, Texts, Words

MAX_GLOSSARIES = 5  # in one request
NOT_OFFERED = ("style_id", "translation_memory_id", "custom_instructions")

Formality = Literal["default", "less", "more", "prefer_less", "prefer_more"]
ModelType = Literal["latency_optimized", "quality_optimized", "prefer_quality_optimized"]


class Options(Body):
    """What a text and a document have in common."""

    target_lang: Text = Field(description="A code of GET /v2/languages?type=target.")
    source_lang: OptionalText = Field(None, description="A code of GET /v2/languages; detected if left out.")
    formality: Annotated[Formality | None, AsChoice] = Field(
        None, description="No language has it here: `less` and `more` are refused, the others change nothing."
    )
    glossary_id: OptionalText = Field(None, description="A stored glossary; it needs source_lang.")
    glossary_ids: Words = Field(
        [], max_length=MAX_GLOSSARIES, description="Several; where they differ, the first one holds."
    )


class TranslateBody(Options):
    """What to translate, and how."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": ["Where is the train station?"], "target_lang": "DE"}]}
    )

    text: Texts = Field(min_length=1, description="Texts, each of one language.")
    context: OptionalText = Field(None, description="Passed over: sentences are translated one by one.")
    split_sentences: Annotated[Literal["0", "1", "nonewlines"] | None, AsChoice] = Field(
        None, description="`0`: each text is one sentence; `nonewlines`: a single line break ends none."
    )
    preserve_formatting: Flag = Field(False, description="Passed over: the formatting stays as it is, always.")
    model_type: Annotated[ModelType | None, AsChoice] = Field(None, description="All of them are the one model here.")
    tag_handling: Annotated[Literal["xml", "html"] | None, AsChoice] = Field(None, description="What the texts are.")
    outline_detection: Flag = Field(True, description="Whether the structure of XML is to be found out.")
    non_splitting_tags: Words = Field([], description="Elements that end no text.")
    splitting_tags: Words = Field([], description="Elements that end a text.")
    ignore_tags: Words = Field([], description="Elements whose text stays as it is.")
    show_billed_characters: Flag = Field(False, description="Whether to say how many characters were charged.")


class TranslatedText(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int | None = Field(None, description="Absent unless asked for.")
    model_type_used: str | None = Field(None, description="Absent unless model_type is given.")


class Translated(BaseModel):
    """A translation for each text, in the same order."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"translations": [{"detected_source_language": "EN", "text": "Wo ist der Bahnhof?"}]}
        }
    )

    translations: list[TranslatedText]


class LanguagesBody(Body):
    """Which languages to list."""

    type: Annotated[Literal["source", "target"] | None, AsChoice] = Field(None, description="`source` if left out.")


class DeeplLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool | None = Field(None, description="Of target languages only.")


class DeeplUsage(BaseModel):
    """Characters of this month; the limit is 10^12 where there is none."""

    character_count: int
    character_limit: int


class LanguagePair(BaseModel):
    source_lang: str
    target_lang: str


class LanguagePairs(BaseModel):
    supported_languages: list[LanguagePair]


class DictionaryBody(Body):
    """The entries of a dictionary."""

    source_lang: Text
    target_lang: Text
    entries: Text = Field(description="A line for each entry: a term, and its translation.")
    entries_format: Annotated[EntriesFormat, AsChoice] = Field(EntriesFormat.TSV, strict=False)


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

    name: Text


class MultilingualBody(Body):
    """A glossary with a dictionary for each pair of languages."""

    name: Text
    dictionaries: list[DictionaryBody] = Field(min_length=1)


class ChangeBody(Body):
    """What to change of a glossary; entries come to those that are there, or in the place of their terms."""

    name: Text | None = None
    dictionaries: list[DictionaryBody] = Field([])


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
        ((pair, count),) = glossary.dictionaries
        return cls(
            glossary_id=glossary.id,
            name=glossary.name,
            ready=True,
            source_lang=pair.source,
            target_lang=pair.target,
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
            DictionaryInfo(source_lang=pair.source, target_lang=pair.target, entry_count=count)
            for pair, count in glossary.dictionaries
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


class DocumentBody(Options):
    """A file, and how to translate it."""

    filename: OptionalText = Field(None, description="The file's name, if the part of the form does not say it.")
    output_format: OptionalText = Field(None, description="The file's own suffix: no other is offered.")


class KeyBody(Body):
    """What the upload was answered with."""

    document_key: Text


class DocumentHandle(BaseModel):
    document_id: str
    document_key: str


class DocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    billed_characters: int | None = Field(None, description="Of a document that is done.")
    error_message: str | None = Field(None, description="Of one that could not be translated.")


def timestamp(seconds: float) -> str:
    """`2026-01-31T12:00:00.000000Z`: DeepL's SDK cannot read one without a fraction."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
