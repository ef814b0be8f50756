"""POST /detect, by LibreTranslate's contract."""

from fastapi import APIRouter, Request

from service.bodies import DetectBody, documented_body
from service.dependencies import AccessDependency, SettingsDependency, TranslationsDependency, client_address
from service.errors import InvalidRequest
from service.schemas import DetectedLanguage, DetectRequest

router = APIRouter(tags=["translation"])


@router.post(
    "/detect",
    openapi_extra=documented_body(DetectRequest),
)
async def detect(
    body: DetectBody,
    request: Request,
    translations: TranslationsDependency,
    access: AccessDependency,
    settings: SettingsDependency,
) -> list[DetectedLanguage]:
    """List the languages that a text may be in, the most likely first."""
    caller = await access.admit(body.api_key, client_address(request))
    if len(body.text) > settings.max_characters:
        problem = f"request ({len(body.text)}) exceeds text limit ({settings.max_characters})"
        raise InvalidRequest.listing([problem])
    languages = list(map(DetectedLanguage.of, await translations.detect(body.text, caller.id)))
    return [language for language in languages if language.confidence > 0] or languages[:1]
