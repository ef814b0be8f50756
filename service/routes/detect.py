"""POST /detect, in LibreTranslate's shape."""

from fastapi import APIRouter, Request

from service.bodies import DetectBody, documented_body
from service.dependencies import AccessDependency, SettingsDependency, TranslationsDependency, address
from service.errors import BodyTooLarge, InvalidKey, InvalidRequest, TooManyRequests, documented
from service.schemas import DetectedLanguage, DetectRequest

router = APIRouter(tags=["translation"])


@router.post(
    "/detect",
    responses=documented(InvalidRequest, BodyTooLarge, InvalidKey, TooManyRequests),
    openapi_extra=documented_body(DetectRequest),
)
async def detect(
    asked: DetectBody,
    request: Request,
    translations: TranslationsDependency,
    access: AccessDependency,
    settings: SettingsDependency,
) -> list[DetectedLanguage]:
    """The languages that a text may be in, the likeliest first."""
    await access.admit(asked.api_key, address(request))
    if len(asked.q) > settings.max_characters:
        found = f"request ({len(asked.q)}) exceeds text limit ({settings.max_characters})"
        raise InvalidRequest.listing([found])
    languages = [
        DetectedLanguage(confidence=round(100 * each.confidence, 1), language=each.language)
        for each in await translations.detect(asked.q)
    ]
    return [each for each in languages if each.confidence > 0] or languages[:1]
