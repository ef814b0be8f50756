"""/v3/glossaries: each with a dictionary for each of its pairs of languages, which can be changed."""

from collections import Counter
from collections.abc import Sequence

from fastapi import APIRouter

from service.access.glossaries import Dictionary, write_entries
from service.bodies import parsed
from service.errors import InvalidRequest, documented
from service.routes.deepl.access import FINDING, Call, CallDependency
from service.routes.deepl.body import form_or_json
from service.routes.deepl.codes import our_pair
from service.routes.deepl.glossaries import dictionary
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

RESPONSES = documented(*FINDING)

router = APIRouter(prefix="/v3/glossaries")


@router.post("", status_code=201, responses=RESPONSES, openapi_extra=form_or_json(MultilingualBody))
async def create(call: CallDependency) -> MultilingualInfo:
    """Keep a glossary."""
    asked = parsed(MultilingualBody, call.fields)
    made = await call.glossaries.create(call.caller.id, asked.name, dictionaries(asked.dictionaries, call))
    return MultilingualInfo.of(made)


@router.get("", responses=RESPONSES)
async def listed(call: CallDependency) -> MultilingualInfos:
    """The glossaries of this key."""
    found = await call.glossaries.owned(call.caller.id)
    return MultilingualInfos(glossaries=[MultilingualInfo.of(each) for each in found])


@router.get("/{glossary_id}", responses=RESPONSES)
async def get(glossary_id: str, call: CallDependency) -> MultilingualInfo:
    """A glossary, without its entries."""
    return MultilingualInfo.of(await call.glossaries.get(call.caller.id, glossary_id))


@router.patch("/{glossary_id}", responses=RESPONSES, openapi_extra=form_or_json(ChangeBody))
async def change(glossary_id: str, call: CallDependency) -> MultilingualInfo:
    """Give a glossary another name, or more entries."""
    asked = parsed(ChangeBody, call.fields)
    more = dictionaries(asked.dictionaries, call)
    return MultilingualInfo.of(await call.glossaries.update(call.caller.id, glossary_id, asked.name, more))


@router.delete("/{glossary_id}", status_code=204, responses=RESPONSES)
async def delete(glossary_id: str, call: CallDependency) -> None:
    """Forget a glossary."""
    await call.glossaries.delete(call.caller.id, glossary_id)


@router.get("/{glossary_id}/entries", responses=RESPONSES)
async def entries(glossary_id: str, source_lang: str, target_lang: str, call: CallDependency) -> DictionariesEntries:
    """The entries for one pair of languages, as TSV."""
    pair = our_pair(source_lang, target_lang, call.translations.pairs)
    found = await call.glossaries.entries(call.caller.id, glossary_id, pair)
    written = DictionaryEntries(source_lang=pair.source, target_lang=pair.target, entries=write_entries(found))
    return DictionariesEntries(dictionaries=[written])


@router.put("/{glossary_id}/dictionaries", responses=RESPONSES, openapi_extra=form_or_json(DictionaryBody))
async def replace(glossary_id: str, call: CallDependency) -> DictionaryInfo:
    """Put a dictionary in the place of the one for the same languages, if there is one."""
    asked = parsed(DictionaryBody, call.fields)
    new = dictionary(asked, call)
    await call.glossaries.replace(call.caller.id, glossary_id, new)
    return DictionaryInfo(source_lang=new.pair.source, target_lang=new.pair.target, entry_count=len(new.entries))


@router.delete("/{glossary_id}/dictionaries", status_code=204, responses=RESPONSES)
async def delete_dictionary(glossary_id: str, source_lang: str, target_lang: str, call: CallDependency) -> None:
    """Forget the entries for one pair of languages."""
    pair = our_pair(source_lang, target_lang, call.translations.pairs)
    await call.glossaries.delete_dictionary(call.caller.id, glossary_id, pair)


def dictionaries(asked: Sequence[DictionaryBody], call: Call) -> list[Dictionary]:
    """One for each pair of languages. Raises InvalidRequest and UnsupportedLanguage."""
    found = [dictionary(each, call) for each in asked]
    counts = Counter(each.pair for each in found)
    twice = sorted("-".join(pair) for pair, count in counts.items() if count > 1)
    if twice:
        raise InvalidRequest.listing([f"there are two dictionaries for {', '.join(twice)}"])
    return found
