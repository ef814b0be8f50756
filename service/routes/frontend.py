"""GET /frontend/settings, in LibreTranslate's shape."""

from fastapi import APIRouter

from mt.text.documents import SUFFIXES
from service.dependencies import SettingsDependency, TranslationsDependency
from service.languages import name_of
from service.schemas import DefaultLanguages, FrontendSettings, NamedLanguage

router = APIRouter(tags=["translation"])

TYPING_PAUSE = 500  # milliseconds after which a page takes a text for typed


@router.get("/frontend/settings")
async def frontend_settings(settings: SettingsDependency, translations: TranslationsDependency) -> FrontendSettings:
    """What a page must know."""
    target = next((direction.target for direction in translations.directions), "")
    return FrontendSettings(
        charLimit=settings.max_characters,
        frontendTimeout=TYPING_PAUSE,
        apiKeys=settings.database is not None,
        keyRequired=settings.require_key,
        suggestions=False,
        filesTranslation=True,
        supportedFilesFormat=list(SUFFIXES),
        language=DefaultLanguages(
            source=NamedLanguage(code="auto", name="Auto Detect"),
            target=NamedLanguage(code=target, name=name_of(target)),
        ),
    )
