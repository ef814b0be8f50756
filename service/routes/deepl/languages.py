"""GET /v2/languages, /v2/usage and /v2/glossary-language-pairs; the first two by POST, too.

`type` is read wherever it stands: DeepL's SDK sends it in the body of a GET.
"""

from fastapi import APIRouter

from service.bodies import parsed
from service.routes.deepl.access import ASKING, CallDependency
from service.routes.deepl.body import form_or_json
from service.routes.deepl.codes import glossary_pairs, source_languages, target_languages
from service.routes.deepl.schemas import DeeplLanguage, DeeplUsage, LanguagePair, LanguagePairs, LanguagesBody

router = APIRouter()

NO_LIMIT = 1_000_000_000_000  # what DeepL answers where there is none
TYPE = {"name": "type", "in": "query", "schema": {"enum": ["source", "target"], "default": "source"}}


@router.get("/v2/languages", responses=ASKING, response_model_exclude_none=True, openapi_extra={"parameters": [TYPE]})
async def languages(call: CallDependency) -> list[DeeplLanguage]:
    """The languages that can be translated, or translated into."""
    asked = parsed(LanguagesBody, call.fields)
    pairs = call.translations.pairs
    if asked.type == "target":
        listed = target_languages(pairs)
        return [DeeplLanguage(language=code, name=name, supports_formality=False) for code, name in listed]
    return [DeeplLanguage(language=code, name=name) for code, name in source_languages(pairs)]


@router.post(
    "/v2/languages",
    responses=ASKING,
    response_model_exclude_none=True,
    openapi_extra=form_or_json(LanguagesBody, required=False),
)
async def languages_by_post(call: CallDependency) -> list[DeeplLanguage]:
    """The same."""
    return await languages(call)


@router.get("/v2/usage", responses=ASKING)
async def usage(call: CallDependency) -> DeeplUsage:
    """The characters that were translated with this key, and how many may be."""
    used = await call.access.usage(call.caller)
    limit = NO_LIMIT if used.limit is None else used.limit
    return DeeplUsage(character_count=used.characters, character_limit=limit)


@router.post("/v2/usage", responses=ASKING)
async def usage_by_post(call: CallDependency) -> DeeplUsage:
    """The same."""
    return await usage(call)


@router.get("/v2/glossary-language-pairs", responses=ASKING)
async def pairs(call: CallDependency) -> LanguagePairs:
    """The pairs of languages that there can be a glossary for."""
    found = [
        LanguagePair(source_lang=pair.source, target_lang=pair.target)
        for pair in glossary_pairs(call.translations.pairs)
    ]
    return LanguagePairs(supported_languages=found)
