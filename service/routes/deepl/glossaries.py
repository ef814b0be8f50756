"""/v2/glossaries: each for one pair of languages, and never changed."""

from fastapi import APIRouter, Response

from service.access.glossaries import Dictionary, Glossary, parse_entries, write_entries
from service.bodies import parsed
from service.errors import NotFound, documented, shown
from service.routes.deepl.access import FINDING, Call, CallDependency
from service.routes.deepl.body import form_or_json
from service.routes.deepl.codes import our_pair
from service.routes.deepl.schemas import DictionaryBody, GlossaryBody, GlossaryInfo, GlossaryInfos

RESPONSES = documented(*FINDING)

router = APIRouter()

TSV = "text/tab-separated-values"


@router.post("/v2/glossaries", status_code=201, responses=RESPONSES, openapi_extra=form_or_json(GlossaryBody))
async def create(call: CallDependency) -> GlossaryInfo:
    """Keep a glossary."""
    asked = parsed(GlossaryBody, call.fields)
    made = await call.glossaries.create(call.caller.id, asked.name, [dictionary(asked, call)])
    return GlossaryInfo.of(made)


@router.get("/v2/glossaries", responses=RESPONSES)
async def listed(call: CallDependency) -> GlossaryInfos:
    """The glossaries of this key; without those of /v3 that have not just one pair of languages."""
    found = await call.glossaries.owned(call.caller.id)
    return GlossaryInfos(glossaries=[GlossaryInfo.of(each) for each in found if len(each.dictionaries) == 1])


@router.get("/v2/glossaries/{glossary_id}", responses=RESPONSES)
async def get(glossary_id: str, call: CallDependency) -> GlossaryInfo:
    """A glossary, without its entries."""
    return GlossaryInfo.of(await monolingual(glossary_id, call))


@router.delete("/v2/glossaries/{glossary_id}", status_code=204, responses=RESPONSES)
async def delete(glossary_id: str, call: CallDependency) -> None:
    """Forget a glossary."""
    await call.glossaries.delete(call.caller.id, glossary_id)


@router.get(
    "/v2/glossaries/{glossary_id}/entries",
    responses=RESPONSES | {200: {"content": {TSV: {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def entries(glossary_id: str, call: CallDependency) -> Response:
    """A line for each entry: a term, a tab, its translation."""
    ((pair, _),) = (await monolingual(glossary_id, call)).dictionaries
    found = await call.glossaries.entries(call.caller.id, glossary_id, pair)
    return Response(write_entries(found), media_type=f"{TSV}; charset=utf-8")


def dictionary(asked: DictionaryBody, call: Call) -> Dictionary:
    """Raises UnsupportedLanguage, and InvalidRequest for the entries."""
    pair = our_pair(asked.source_lang, asked.target_lang, call.translations.pairs)
    return Dictionary(pair, parse_entries(asked.entries, asked.entries_format))


async def monolingual(id: str, call: Call) -> Glossary:
    """Raises NotFound, too, for a glossary that this version cannot show."""
    found = await call.glossaries.get(call.caller.id, id)
    if len(found.dictionaries) != 1:
        raise NotFound(f"The glossary {shown(id)} has not just one pair of languages: ask /v3/glossaries for it")
    return found
