"""/v2/glossaries: glossaries that have one pair of languages each and cannot be changed."""

import asyncio

from fastapi import APIRouter, Response

from service.access.glossaries import Dictionary, Glossary
from service.access.glossary_entries import format_entries, parse_entries
from service.bodies import parse_body
from service.errors import NotFound, shorten
from service.routes.deepl.admission import AdmittedDependency, AdmittedRequest
from service.routes.deepl.body import form_or_json
from service.routes.deepl.language_codes import parse_glossary_direction
from service.routes.deepl.schemas import DictionaryBody, GlossaryBody, GlossaryInfo, GlossaryInfos

router = APIRouter()

TSV = "text/tab-separated-values"


@router.post("/v2/glossaries", status_code=201, openapi_extra=form_or_json(GlossaryBody))
async def create(call: AdmittedDependency) -> GlossaryInfo:
    """Create a glossary."""
    body = parse_body(GlossaryBody, call.fields)
    dictionary = await parse_dictionary(body, call)
    return GlossaryInfo.of(await call.glossaries.create(call.caller.id, body.name, [dictionary]))


@router.get("/v2/glossaries")
async def list_glossaries(call: AdmittedDependency) -> GlossaryInfos:
    """List the glossaries of this key, except those of /v3 that have several pairs of languages.

    Without a key, the list is empty: a glossary that was created without a key is found only by its id, for a week.
    """
    glossaries = await call.glossaries.owned(call.caller.id)
    return GlossaryInfos(
        glossaries=[GlossaryInfo.of(glossary) for glossary in glossaries if len(glossary.dictionaries) == 1]
    )


@router.get("/v2/glossaries/{glossary_id}")
async def get(glossary_id: str, call: AdmittedDependency) -> GlossaryInfo:
    """Return a glossary without its entries."""
    return GlossaryInfo.of(await find_bilingual(glossary_id, call))


@router.delete("/v2/glossaries/{glossary_id}", status_code=204)
async def delete(glossary_id: str, call: AdmittedDependency) -> None:
    """Delete a glossary."""
    await call.glossaries.delete(call.caller.id, glossary_id)


@router.get(
    "/v2/glossaries/{glossary_id}/entries",
    responses={200: {"content": {TSV: {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def entries(glossary_id: str, call: AdmittedDependency) -> Response:
    """Return the entries as TSV: a term, a tab and its translation on each line."""
    ((direction, _),) = (await find_bilingual(glossary_id, call)).dictionaries
    stored = await call.glossaries.entries(call.caller.id, glossary_id, direction)
    return Response(format_entries(stored), media_type=f"{TSV}; charset=utf-8")


async def parse_dictionary(body: DictionaryBody, call: AdmittedRequest) -> Dictionary:
    """Return the dictionary in a body. Raises: UnsupportedLanguage, or InvalidRequest if entries are not valid."""
    direction = parse_glossary_direction(body.source_lang, body.target_lang, call.translations.routes)
    return Dictionary(direction, await asyncio.to_thread(parse_entries, body.entries, body.entries_format))


async def find_bilingual(id: str, call: AdmittedRequest) -> Glossary:
    """Return the glossary with this id. Raises: NotFound if it does not exist, or has not exactly one language pair."""
    glossary = await call.glossaries.get(call.caller.id, id)
    if len(glossary.dictionaries) != 1:
        raise NotFound(f"The glossary {shorten(id)} has several pairs of languages, or none; use /v3/glossaries for it")
    return glossary
