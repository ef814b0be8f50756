"""/v3/glossaries: glossaries that have a dictionary for each of several pairs of languages and can be changed."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter

from mt.languages import Direction
from service.access.glossaries import Dictionary
from service.access.glossary_entries import format_entries
from service.bodies import parse_body
from service.errors import InvalidRequest
from service.languages import TranslationRoutes
from service.routes.deepl.admission import AdmittedDependency, AdmittedRequest
from service.routes.deepl.body import form_or_json
from service.routes.deepl.glossaries import parse_dictionary
from service.routes.deepl.language_codes import parse_glossary_direction
from service.routes.deepl.schemas import (
    ChangeBody,
    DictionariesEntries,
    DictionaryBody,
    DictionaryEntries,
    DictionaryInfo,
    MultilingualBody,
    MultilingualInfo,
    MultilingualInfos,
)

router = APIRouter(prefix="/v3/glossaries")


@router.post("", status_code=201, openapi_extra=form_or_json(MultilingualBody))
async def create(call: AdmittedDependency) -> MultilingualInfo:
    """Create a glossary."""
    body = parse_body(MultilingualBody, call.fields)
    dictionaries = await parse_dictionaries(body.dictionaries, call)
    return MultilingualInfo.of(await call.glossaries.create(call.caller.id, body.name, dictionaries))


@router.get("")
async def list_glossaries(call: AdmittedDependency) -> MultilingualInfos:
    """List the glossaries of this key. Without a key, the list is empty."""
    glossaries = await call.glossaries.owned(call.caller.id)
    return MultilingualInfos(glossaries=[MultilingualInfo.of(glossary) for glossary in glossaries])


@router.get("/{glossary_id}")
async def get(glossary_id: str, call: AdmittedDependency) -> MultilingualInfo:
    """Return a glossary without its entries."""
    return MultilingualInfo.of(await call.glossaries.get(call.caller.id, glossary_id))


@router.patch("/{glossary_id}", openapi_extra=form_or_json(ChangeBody))
async def change(glossary_id: str, call: AdmittedDependency) -> MultilingualInfo:
    """Rename a glossary, or add entries to it."""
    body = parse_body(ChangeBody, call.fields)
    more = await parse_dictionaries(body.dictionaries, call)
    return MultilingualInfo.of(await call.glossaries.update(call.caller.id, glossary_id, body.name, more))


@router.delete("/{glossary_id}", status_code=204)
async def delete(glossary_id: str, call: AdmittedDependency) -> None:
    """Delete a glossary."""
    await call.glossaries.delete(call.caller.id, glossary_id)


@router.get("/{glossary_id}/entries")
async def entries(
    glossary_id: str, source_lang: str, target_lang: str, call: AdmittedDependency
) -> DictionariesEntries:
    """Return the entries for one pair of languages as TSV."""
    direction = parse_glossary_direction(source_lang, target_lang, call.translations.routes)
    tsv = format_entries(await call.glossaries.entries(call.caller.id, glossary_id, direction))
    dictionary = DictionaryEntries(source_lang=direction.source, target_lang=direction.target, entries=tsv)
    return DictionariesEntries(dictionaries=[dictionary])


@router.put("/{glossary_id}/dictionaries", openapi_extra=form_or_json(DictionaryBody))
async def replace(glossary_id: str, call: AdmittedDependency) -> DictionaryInfo:
    """Add a dictionary, or replace the dictionary for the same languages."""
    new = await parse_dictionary(parse_body(DictionaryBody, call.fields), call)
    await call.glossaries.replace(call.caller.id, glossary_id, new)
    return DictionaryInfo(
        source_lang=new.direction.source, target_lang=new.direction.target, entry_count=len(new.entries)
    )


@router.delete("/{glossary_id}/dictionaries", status_code=204)
async def delete_dictionary(glossary_id: str, source_lang: str, target_lang: str, call: AdmittedDependency) -> None:
    """Delete the entries for one pair of languages."""
    direction = parse_glossary_direction(source_lang, target_lang, call.translations.routes)
    await call.glossaries.delete_dictionary(call.caller.id, glossary_id, direction)


async def parse_dictionaries(bodies: Sequence[DictionaryBody], call: AdmittedRequest) -> list[Dictionary]:
    """Return the dictionaries in a request.

    Raises: UnsupportedLanguage, or InvalidRequest if entries are not valid or two dictionaries have the same languages.
    """
    # First all languages, in a thread: a body has room for 14,000 dictionaries.
    await asyncio.to_thread(check_directions, bodies, call.translations.routes)
    return [await parse_dictionary(body, call) for body in bodies]


def check_directions(bodies: Sequence[DictionaryBody], routes: TranslationRoutes) -> None:
    """Check the languages of the dictionaries in a request.

    Raises: UnsupportedLanguage, or InvalidRequest if two dictionaries have the same languages.
    """
    directions = set[Direction]()
    for body in bodies:
        direction = parse_glossary_direction(body.source_lang, body.target_lang, routes)
        if direction in directions:
            raise InvalidRequest.listing([f"there are several dictionaries for {direction}"])
        directions.add(direction)
