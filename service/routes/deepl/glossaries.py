"""Glossaries of DeepL's contract.

A glossary of /v2/glossaries has one pair of languages and cannot be changed. A glossary of /v3/glossaries has a
dictionary for each of several pairs of languages, and can be changed.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, FailFast, Field, WithJsonSchema, model_validator

from mt.languages import Direction
from service.access.eviction import MAX_NAME_LENGTH
from service.errors import InvalidRequest, NotFound, shorten
from service.glossaries.entries import EntriesFormat, check_entries, format_entries, parse_entries
from service.glossaries.store import Dictionary, Glossary, GlossaryLimits
from service.http.bodies import JSON, URLENCODED, BodyReader
from service.http.fields import AsChoice, LanguageField, TextField
from service.languages import TranslationRoutes
from service.routes.access import CallerDependency
from service.routes.deepl.language_codes import parse_glossary_direction
from service.routes.deepl.schemas import Body, LanguagePair, timestamp
from service.services import Services, ServicesDependency

bilingual = APIRouter(tags=["DeepL"], prefix="/v2/glossaries")
multilingual = APIRouter(tags=["DeepL"], prefix="/v3/glossaries")

TSV = "text/tab-separated-values"


NameField = Annotated[
    TextField, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": r"\S"})
]


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

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["name"]}, {"required": ["dictionaries"]}]})

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


class DictionaryInfo(LanguagePair):
    entry_count: int

    @classmethod
    def of(cls, direction: Direction, count: int) -> Self:
        return cls(source_lang=direction.source, target_lang=direction.target, entry_count=count)


class MultilingualInfo(BaseModel):
    """A glossary, without its entries."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DictionaryInfo]

    @classmethod
    def of(cls, glossary: Glossary) -> "MultilingualInfo":
        return cls(
            glossary_id=glossary.id,
            name=glossary.name,
            creation_time=timestamp(glossary.created),
            dictionaries=[DictionaryInfo.of(*dictionary) for dictionary in glossary.dictionaries],
        )


class MultilingualInfos(BaseModel):
    glossaries: list[MultilingualInfo]


class DictionaryEntries(LanguagePair):
    entries: str
    entries_format: EntriesFormat = EntriesFormat.TSV


class DictionariesEntries(BaseModel):
    dictionaries: list[DictionaryEntries]


LanguageQuery = Annotated[str, Query(min_length=1)]


async def direction_of(
    services: ServicesDependency, source_lang: LanguageQuery, target_lang: LanguageQuery
) -> Direction:
    """Return the direction of the dictionary that the query names. This is a dependency of routes."""
    return parse_glossary_direction(source_lang, target_lang, services.translations.routes)


DirectionDependency = Annotated[Direction, Depends(direction_of)]
GlossaryFields = Annotated[GlossaryBody, Depends(BodyReader(GlossaryBody, JSON, URLENCODED))]
MultilingualFields = Annotated[MultilingualBody, Depends(BodyReader(MultilingualBody, JSON))]
ChangeFields = Annotated[ChangeBody, Depends(BodyReader(ChangeBody, JSON))]
DictionaryFields = Annotated[DictionaryBody, Depends(BodyReader(DictionaryBody, JSON, URLENCODED))]


@bilingual.post("", status_code=201)
async def create(caller: CallerDependency, body: GlossaryFields, services: ServicesDependency) -> GlossaryInfo:
    """Create a glossary."""
    dictionaries = await parse_dictionaries([body], services.translations.routes)
    return GlossaryInfo.of(await services.glossaries.create(caller.id, body.name, dictionaries))


@bilingual.get("")
async def list_bilingual(caller: CallerDependency, services: ServicesDependency) -> GlossaryInfos:
    """List the glossaries of this key, except those of /v3 that have several pairs of languages.

    Without a key, the list is empty: a glossary that was created without a key is found only by its id, for a week.
    """
    glossaries = await services.glossaries.owned(caller.id)
    return GlossaryInfos(
        glossaries=[GlossaryInfo.of(glossary) for glossary in glossaries if len(glossary.dictionaries) == 1]
    )


@bilingual.get("/{glossary_id}")
async def get_bilingual(glossary_id: str, caller: CallerDependency, services: ServicesDependency) -> GlossaryInfo:
    """Return a glossary without its entries."""
    return GlossaryInfo.of(await find_bilingual(glossary_id, caller.id, services))


@bilingual.delete("/{glossary_id}", status_code=204)
@multilingual.delete("/{glossary_id}", status_code=204)
async def delete(glossary_id: str, caller: CallerDependency, services: ServicesDependency) -> None:
    """Delete a glossary."""
    await services.glossaries.delete(caller.id, glossary_id)


@bilingual.get(
    "/{glossary_id}/entries",
    responses={200: {"content": {TSV: {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def bilingual_entries(glossary_id: str, caller: CallerDependency, services: ServicesDependency) -> Response:
    """Return the entries as TSV: a term, a tab and its translation on each line."""
    ((direction, _),) = (await find_bilingual(glossary_id, caller.id, services)).dictionaries
    stored = await services.glossaries.entries(caller.id, glossary_id, direction)
    return Response(format_entries(stored), media_type=f"{TSV}; charset=utf-8")


@multilingual.post("", status_code=201)
async def create_multilingual(
    caller: CallerDependency, body: MultilingualFields, services: ServicesDependency
) -> MultilingualInfo:
    """Create a glossary."""
    dictionaries = await parse_dictionaries(body.dictionaries, services.translations.routes)
    return MultilingualInfo.of(await services.glossaries.create(caller.id, body.name, dictionaries))


@multilingual.get("")
async def list_multilingual(caller: CallerDependency, services: ServicesDependency) -> MultilingualInfos:
    """List the glossaries of this key. Without a key, the list is empty."""
    glossaries = await services.glossaries.owned(caller.id)
    return MultilingualInfos(glossaries=[MultilingualInfo.of(glossary) for glossary in glossaries])


@multilingual.get("/{glossary_id}")
async def get(glossary_id: str, caller: CallerDependency, services: ServicesDependency) -> MultilingualInfo:
    """Return a glossary without its entries."""
    return MultilingualInfo.of(await services.glossaries.get(caller.id, glossary_id))


@multilingual.patch("/{glossary_id}")
async def change(
    glossary_id: str, caller: CallerDependency, body: ChangeFields, services: ServicesDependency
) -> MultilingualInfo:
    """Rename a glossary, or add entries to it."""
    more = await parse_dictionaries(body.dictionaries, services.translations.routes)
    return MultilingualInfo.of(await services.glossaries.update(caller.id, glossary_id, body.name, more))


@multilingual.get("/{glossary_id}/entries")
async def entries(
    glossary_id: str, caller: CallerDependency, direction: DirectionDependency, services: ServicesDependency
) -> DictionariesEntries:
    """Return the entries for one pair of languages as TSV."""
    tsv = format_entries(await services.glossaries.entries(caller.id, glossary_id, direction))
    dictionary = DictionaryEntries(source_lang=direction.source, target_lang=direction.target, entries=tsv)
    return DictionariesEntries(dictionaries=[dictionary])


@multilingual.put("/{glossary_id}/dictionaries")
async def replace_dictionary(
    glossary_id: str, caller: CallerDependency, body: DictionaryFields, services: ServicesDependency
) -> DictionaryInfo:
    """Add a dictionary, or replace the dictionary for the same languages."""
    (new,) = await parse_dictionaries([body], services.translations.routes)
    await services.glossaries.replace(caller.id, glossary_id, new)
    return DictionaryInfo.of(new.direction, len(new.entries))


@multilingual.delete("/{glossary_id}/dictionaries", status_code=204)
async def delete_dictionary(
    glossary_id: str, caller: CallerDependency, direction: DirectionDependency, services: ServicesDependency
) -> None:
    """Delete the entries for one pair of languages."""
    await services.glossaries.delete_dictionary(caller.id, glossary_id, direction)


async def parse_dictionaries(bodies: Sequence[DictionaryBody], routes: TranslationRoutes) -> list[Dictionary]:
    """Return the dictionaries in a request.

    Raises: UnsupportedLanguage, or InvalidRequest if entries are not valid or two dictionaries have the same languages.
    """
    # First all languages, and in a thread: a body has room for 14,000 dictionaries.
    directions = await asyncio.to_thread(parse_directions, bodies, routes)
    dictionaries = []
    for direction, body in zip(directions, bodies, strict=True):
        entries = await asyncio.to_thread(parse_entries, body.entries, body.entries_format)
        check_entries(len(entries), GlossaryLimits.entries)  # before they wait, 8 MB each, for the thread that writes
        dictionaries.append(Dictionary(direction, entries))
    return dictionaries


def parse_directions(bodies: Sequence[DictionaryBody], routes: TranslationRoutes) -> list[Direction]:
    """Return the languages of the dictionaries in a request.

    Raises: UnsupportedLanguage, or InvalidRequest if two dictionaries have the same languages.
    """
    directions: dict[Direction, None] = {}
    for body in bodies:
        direction = parse_glossary_direction(body.source_lang, body.target_lang, routes)
        if direction in directions:
            raise InvalidRequest.listing(f"there are several dictionaries for {direction}")
        directions[direction] = None
    return list(directions)


async def find_bilingual(id: str, caller: str, services: Services) -> Glossary:
    """Return the glossary with this id. Raises: NotFound if it does not exist, or has not exactly one language pair."""
    glossary = await services.glossaries.get(caller, id)
    if len(glossary.dictionaries) != 1:
        raise NotFound(f"The glossary {shorten(id)} has several pairs of languages, or none; use /v3/glossaries for it")
    return glossary
