"""GET /frontend/settings, by LibreTranslate's contract."""

from dataclasses import asdict

from fastapi import APIRouter
from pydantic import BaseModel, Field

from mt.languages import language_name
from mt.text.documents import SUFFIXES
from mt.text.formality import FORMALITY_LANGUAGES
from service.memories.store import OPERATOR
from service.schemas import AUTO
from service.services import ServicesDependency

router = APIRouter(tags=["translation"])

TYPING_PAUSE = 500  # milliseconds from the last key press until the page translates


class NamedLanguage(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    """Languages that the page selects at first."""

    source: NamedLanguage
    target: NamedLanguage


class PageTerm(BaseModel):
    """A term that the operator has the page send for every user."""

    term: str
    translation: str
    source: str
    target: str


class PageMemory(BaseModel):
    """A translation memory that the operator offers to every user of the page."""

    id: str
    name: str
    source: str
    target: str
    units: int


class FrontendSettings(BaseModel):
    """Settings for a web page. `frontendTimeout`: milliseconds from the last key press to the translation."""

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: DefaultLanguages
    glossary: list[PageTerm] = Field(description="Terms of the operator.")
    memories: list[PageMemory] = Field(description="Translation memories of the operator.")
    formality: list[str] = Field(description="Target languages whose translations can be formal or informal.")


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
            for direction, terms in services.offered.terms.items()
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
