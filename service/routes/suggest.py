"""POST /suggest, by LibreTranslate's contract: stores a user's better translation in a memory of the operator."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from mt.languages import language_name
from service.access.glossaries import glossary_direction
from service.access.memories import MAX_TEXT_LENGTH, OPERATOR, MemoryUnit, storable
from service.bodies import SuggestBody, documented_body
from service.dependencies import (
    AccessDependency,
    MemoriesDependency,
    SettingsDependency,
    TranslationsDependency,
    client_address,
)
from service.errors import (
    InvalidRequest,
    SuggestionsDisabled,
)
from service.schemas import SuggestRequest

SUGGESTIONS = "suggestions"  # name of the operator's memories of suggestions
router = APIRouter(tags=["translation memories"])


class Suggested(BaseModel):
    """Answer to a suggestion that has been stored."""

    success: bool = True


@router.post(
    "/suggest",
    openapi_extra=documented_body(SuggestRequest),
)
async def suggest(
    body: SuggestBody,
    request: Request,
    access: AccessDependency,
    translations: TranslationsDependency,
    memories: MemoriesDependency,
    settings: SettingsDependency,
) -> Suggested:
    """Suggest a better translation of a text. Suggestions are refused unless the setting `suggestions` is on."""
    caller = await access.admit(body.api_key, client_address(request))
    if not settings.suggestions:
        raise SuggestionsDisabled("Suggestions are disabled on this server")
    source, target = (translations.routes.resolve(code) for code in (body.source, body.target))
    translations.routes.check_supported(source, target)
    if source == target:
        raise InvalidRequest.listing([f"source and target are both {language_name(source)}"])
    unit = MemoryUnit(body.q, body.s)
    if not storable(unit):
        raise InvalidRequest.listing([f"q and s must have 1 to {MAX_TEXT_LENGTH} characters"])
    access.count_suggestion(caller)
    await memories.put(OPERATOR, SUGGESTIONS, glossary_direction(source, target), [unit])
    return Suggested()
