"""GET and POST /v2/languages, GET /v2/glossary-language-pairs.

`type` is read from the query and from the body: DeepL's SDK sends it in the body of a GET.
"""

from fastapi import APIRouter

from service.bodies import parse_body
from service.errors import error_responses
from service.routes.deepl.admission import ALWAYS, AdmittedDependency
from service.routes.deepl.body import form_or_json
from service.routes.deepl.language_codes import glossary_directions, source_languages, target_languages
from service.routes.deepl.schemas import DeeplLanguage, LanguagePair, LanguagePairs, LanguagesBody

RESPONSES = error_responses(*ALWAYS)

router = APIRouter()

TYPE = {"name": "type", "in": "query", "schema": {"enum": ["source", "target"], "default": "source"}}


@router.get(
    "/v2/languages", responses=RESPONSES, response_model_exclude_none=True, openapi_extra={"parameters": [TYPE]}
)
async def languages(call: AdmittedDependency) -> list[DeeplLanguage]:
    """List the source languages or the target languages."""
    body = parse_body(LanguagesBody, call.fields)
    routes = call.translations.routes
    if body.type == "target":
        targets = target_languages(routes)
        return [DeeplLanguage(language=code, name=name, supports_formality=False) for code, name in targets]
    return [DeeplLanguage(language=code, name=name) for code, name in source_languages(routes)]


@router.post(
    "/v2/languages",
    responses=RESPONSES,
    response_model_exclude_none=True,
    openapi_extra=form_or_json(LanguagesBody, required=False),
)
async def languages_by_post(call: AdmittedDependency) -> list[DeeplLanguage]:
    """List the source languages or the target languages, as GET does."""
    return await languages(call)


@router.get("/v2/glossary-language-pairs", responses=RESPONSES)
async def glossary_language_pairs(call: AdmittedDependency) -> LanguagePairs:
    """List the pairs of languages that a glossary can have."""
    pairs = [
        LanguagePair(source_lang=direction.source, target_lang=direction.target)
        for direction in glossary_directions(call.translations.routes)
    ]
    return LanguagePairs(supported_languages=pairs)
