"""POST /translate, in LibreTranslate's shape."""

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request

from mt.decoding.options import SearchOptions
from mt.engine.plan import Translation
from service.dependencies import SettingsDependency, WorkerDependency, while_connected
from service.errors import (
    BodyTooLarge,
    CannotTranslate,
    InternalError,
    InvalidRequest,
    Overloaded,
    Unavailable,
    UnsupportedLanguage,
    documented,
)
from service.languages import choose
from service.schemas import TranslateRequest, TranslateResponse
from service.settings import Settings

router = APIRouter(tags=["translation"])

ERRORS = documented(
    InvalidRequest, UnsupportedLanguage, CannotTranslate, BodyTooLarge, InternalError, Overloaded, Unavailable
)


@router.post("/translate", responses=ERRORS, response_model_exclude_none=True)
async def translate(
    asked: TranslateRequest, request: Request, worker: WorkerDependency, settings: SettingsDependency
) -> TranslateResponse:
    """Translate a text, or a list of texts."""
    check_limits(asked, settings)
    direction = choose(asked.source, asked.target, worker.directions)
    search = with_alternatives(worker.options, asked.alternatives)
    translations = await while_connected(request, worker.translate(asked.texts, direction, search))
    return respond(asked, translations)


def check_limits(asked: TranslateRequest, settings: Settings) -> None:
    """Raises InvalidRequest."""
    found = []
    size = sum(map(len, asked.texts))
    if size > settings.max_characters:
        found.append(f"request ({size}) exceeds text limit ({settings.max_characters})")
    if asked.alternatives > settings.max_alternatives:
        found.append(f"alternatives parameter must be <= {settings.max_alternatives}")
    if found:
        raise InvalidRequest.listing(found)


def with_alternatives(options: SearchOptions, alternatives: int) -> SearchOptions:
    """The model's own search, with as many beams as the answers need."""
    wanted = 1 + alternatives
    return replace(options, n_best=wanted, beam_size=max(options.beam_size, wanted))


def respond(asked: TranslateRequest, translations: Sequence[Translation]) -> TranslateResponse:
    """A text for a text, a list for a list; alternatives that read alike are given once."""
    ranked = [list(dict.fromkeys(each.text for each in found.alternatives)) for found in translations]
    best = [texts[0] for texts in ranked]
    others = [texts[1:] for texts in ranked]
    single = isinstance(asked.q, str)
    return TranslateResponse(
        translatedText=best[0] if single else best,
        alternatives=None if not asked.alternatives else others[0] if single else others,
    )
