"""POST /detect, by LibreTranslate's contract."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import ConfigDict, Field

from service.errors import InvalidRequest
from service.http.bodies import BodyReader
from service.http.fields import TextOrTexts
from service.routes.access import CallerDependency
from service.schemas import DetectedLanguage, RequestFields
from service.services import ServicesDependency

router = APIRouter(tags=["translation"])


class DetectRequest(RequestFields):
    """A text whose language is to be detected."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Where is the train station?"}]})

    q: TextOrTexts = Field(description="Text, or a list of texts in one language.")

    @property
    def text(self) -> str:
        """The text, or all texts joined by line breaks."""
        return self.q if isinstance(self.q, str) else "\n".join(self.q)


DetectBody = Annotated[DetectRequest, Depends(BodyReader(DetectRequest))]


@router.post("/detect")
async def detect(caller: CallerDependency, body: DetectBody, services: ServicesDependency) -> list[DetectedLanguage]:
    """List the languages that a text may be in, the most likely first."""
    limit = services.settings.max_characters
    if len(body.text) > limit:
        problem = f"request ({len(body.text)}) exceeds text limit ({limit})"
        raise InvalidRequest.listing(problem, accepted=f"at most {limit} characters")
    languages = list(map(DetectedLanguage.of, await services.translations.detect(body.text, caller.id)))
    return [language for language in languages if language.confidence > 0] or languages[:1]
