"""GET /languages, in LibreTranslate's shape."""

from fastapi import APIRouter

from service.dependencies import TranslationsDependency
from service.languages import name_of
from service.schemas import Language

router = APIRouter(tags=["translation"])


@router.get("/languages")
async def languages(translations: TranslationsDependency) -> list[Language]:
    """Every language, sources and targets alike, and what each can be translated into, be it through another."""
    pairs = translations.pairs
    return [
        Language(code=code, name=name_of(code), targets=[target for source, target in pairs if source == code])
        for code in translations.routes.languages
    ]
