"""POST /explain: an HTML page with every step of the translation of one sentence. "Look inside" opens this page."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from mt.languages import Direction
from service.bodies import ExplainBody, documented_body
from service.dependencies import (
    AccessDependency,
    ExplanationsDependency,
    FleetDependency,
    SettingsDependency,
    TranslationsDependency,
    client_address,
    while_connected,
)
from service.errors import BodyTooLarge, InvalidRequest, NotFound, error_responses
from service.routes.translate import ACCESS, WORK, model_of
from service.schemas import AUTO, ExplainRequest
from service.settings import Settings
from service.translation.service import TranslationService

MAX_CHARACTERS = 300
MAX_WORDS = 30
ERRORS = (InvalidRequest, BodyTooLarge, NotFound, *ACCESS, *WORK)
HEADERS = {
    "Cache-Control": "no-store",
    # The page has a policy of its own for styles and its script. In a sandbox without `allow-same-origin`, its script
    # could not read what the translation page stores.
    "Content-Security-Policy": "sandbox allow-scripts; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
router = APIRouter(tags=["translation"])


@router.post(
    "/explain",
    response_class=HTMLResponse,
    responses={**error_responses(*ERRORS), 200: {"description": "The page: one file, which connects to no host."}},
    openapi_extra=documented_body(ExplainRequest),
)
async def explain(
    body: ExplainBody,
    request: Request,
    translations: TranslationsDependency,
    explanations: ExplanationsDependency,
    fleet: FleetDependency,
    access: AccessDependency,
    settings: SettingsDependency,
) -> HTMLResponse:
    """Return an HTML page that shows each step of the translation of one sentence. The page connects to no host."""
    caller = await access.admit(body.api_key, client_address(request))
    check_sentence(body.q, settings)
    direction = await direction_of(body, translations)
    async with access.charged(caller, len(body.q)):
        directory = fleet.model_for(direction, model_of(body.model)).directory
        work = explanations.page(caller.id, directory, body.q, direction)
        return HTMLResponse(await while_connected(request, work), headers=HEADERS)


def check_sentence(text: str, settings: Settings) -> None:
    """Raise InvalidRequest if a text is empty or too long. The message lists each limit that is exceeded."""
    most, words = min(MAX_CHARACTERS, settings.max_characters), len(text.split())
    problems = []
    if not any(map(str.isalnum, text)):
        problems.append("q has no word; accepted: one sentence")
    if len(text) > most:
        problems.append(f"q has {len(text)} characters; accepted: one sentence of at most {most}")
    if words > MAX_WORDS:
        problems.append(f"q has {words} words; accepted: one sentence of at most {MAX_WORDS}")
    if problems:
        raise InvalidRequest.listing(problems)


async def direction_of(body: ExplainRequest, translations: TranslationService) -> Direction:
    """Return the direction of a request. If `source` is auto, detect the source language.

    Raises:
        UnknownModel: if the service has no model with the name in the request.
        UnsupportedLanguage: if no model translates the direction.
        InvalidRequest: if source and target are equal, or the direction needs two models.
    """
    routes = translations.routes_of(model_of(body.model))
    target = routes.resolve(body.target)
    routes.check_supported(target)
    source = routes.resolve(body.source)
    if body.source == AUTO:
        guesses, supported = await translations.detect(body.q), {target, *routes.sources_of(target)}
        source = next((guess for guess in guesses if guess.language in supported), guesses[0]).language
    route = routes.find(source, target)
    if not route:
        raise InvalidRequest.listing([f"source and target are both {target}; accepted: two languages"])
    if len(route) > 1:
        raise InvalidRequest.listing(
            [
                f"{source} to {target} needs two models; accepted: a direction of one model, such as {route[0]} "
                f"or {route[1]}"
            ]
        )
    return route[0]
