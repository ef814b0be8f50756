"""GET /languages, by LibreTranslate's contract."""

from functools import lru_cache

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, TypeAdapter

from mt.languages import language_name, native_name
from service.languages import TranslationRoutes
from service.services import ServicesDependency

router = APIRouter(tags=["translation"])


class LanguageInfo(BaseModel):
    """A language, and the languages into which it can be translated, directly or through a pivot."""

    code: str
    name: str
    native_name: str = Field(description="Name of the language in the language itself.")
    targets: list[str]


_LIST = TypeAdapter(list[LanguageInfo])


@router.get("/languages", response_model=list[LanguageInfo])
async def languages(services: ServicesDependency) -> Response:
    """List every language, and the languages into which it can be translated, directly or through a pivot."""
    return Response(encoded_languages(services.translations.routes), media_type="application/json")


@lru_cache(1)
def encoded_languages(routes: TranslationRoutes) -> bytes:
    """Return the answer of GET /languages as JSON. The answer is cached until the models change."""
    return _LIST.dump_json(
        [
            LanguageInfo(
                code=code,
                name=language_name(code),
                native_name=native_name(code),
                targets=list(routes.targets_of(code)),
            )
            for code in routes.languages
        ]
    )
