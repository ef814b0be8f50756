"""GET /frontend/settings, by LibreTranslate's contract."""

from dataclasses import asdict

from fastapi import APIRouter

from mt.languages import language_name
from mt.text.documents import SUFFIXES
from mt.text.formality import FORMALITY_LANGUAGES
from service.memories.store import OPERATOR
from service.schemas import AUTO, DefaultLanguages, FrontendSettings, NamedLanguage, PageMemory, PageTerm
from service.services import ServicesDependency

router = APIRouter(tags=["translation"])

TYPING_PAUSE = 500  # milliseconds from the last key press until the page translates


@router.get("/frontend/settings")
async def frontend_settings(services: ServicesDependency) -> FrontendSettings:
    """Return the settings that a web page needs."""
    settings, target = services.settings, services.translations.routes.default_target
    memories = await services.memories.owned(OPERATOR) if settings.page_memories else []
    return FrontendSettings(
        charLimit=settings.max_characters,
        frontendTimeout=TYPING_PAUSE,
        apiKeys=settings.database is not None,
        keyRequired=settings.require_key,
        suggestions=settings.suggestions,
        filesTranslation=True,
        supportedFilesFormat=list(SUFFIXES),
        language=DefaultLanguages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"),
            target=NamedLanguage(code=target, name=language_name(target)),
        ),
        glossary=[
            PageTerm(term=term, translation=translation, **asdict(direction))
            for direction, terms in services.offered_terms.items()
            for term, translation in terms.glossary
        ],
        memories=[
            PageMemory.model_validate(memory, from_attributes=True)
            for name in dict.fromkeys(settings.page_memories)
            for memory in memories
            if memory.name == name
        ],
        formality=list(FORMALITY_LANGUAGES),
    )
