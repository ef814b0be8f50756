"""POST /suggest, by LibreTranslate's contract: stores a user's better translation in a memory of the operator."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from mt.languages import language_name
from service.errors import InvalidRequest, SuggestionsDisabled
from service.glossaries.store import glossary_direction
from service.http.bodies import BodyReader
from service.http.fields import LanguageField, TextField
from service.memories.store import OPERATOR, SUGGESTIONS
from service.memories.units import MAX_TEXT_LENGTH, MemoryUnit, unit_problem
from service.routes.access import CallerDependency
from service.schemas import RequestFields
from service.services import ServicesDependency

router = APIRouter(tags=["translation memories"])


UnitField = Annotated[
    TextField, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH, "pattern": r"\S"})
]


class SuggestRequest(RequestFields):
    """A better translation of a text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "s": "Wo ist der Hauptbahnhof?", "source": "en", "target": "de"}
            ]
        }
    )

    q: UnitField = Field(description="Text.")
    s: UnitField = Field(description="Suggested translation.")
    source: LanguageField = Field(description="Code of GET /languages.")
    target: LanguageField = Field(description="Code of GET /languages.")


SuggestBody = Annotated[SuggestRequest, Depends(BodyReader(SuggestRequest))]


class Suggested(BaseModel):
    """Answer to a suggestion that has been stored."""

    success: bool = True


@router.post("/suggest")
async def suggest(caller: CallerDependency, body: SuggestBody, services: ServicesDependency) -> Suggested:
    """Suggest a better translation of a text. Suggestions are refused unless the setting `suggestions` is on."""
    if not services.settings.suggestions:
        raise SuggestionsDisabled("Suggestions are disabled on this server")
    source, target = services.translations.routes.resolve_supported(body.source, body.target)
    if source == target:
        raise InvalidRequest.listing(f"source and target are both {language_name(source)}")
    if unit_problem(unit := MemoryUnit(body.q, body.s)):
        raise InvalidRequest.listing(f"q and s must have 1 to {MAX_TEXT_LENGTH} characters")
    services.access.count_suggestion(caller)
    await services.memories.put(OPERATOR, SUGGESTIONS, glossary_direction(source, target), [unit])
    return Suggested()
