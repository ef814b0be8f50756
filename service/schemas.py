"""LibreTranslate's JSON. Types are strict; unknown fields are ignored, as there: clients send `api_key` and more."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from service.errors import well_formed


def _text(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _text_or_texts(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if not isinstance(value, list):
        raise ValueError("must be a string or a list of strings")
    wrong = [str(place) for place, item in enumerate(value) if not isinstance(item, str)]
    if wrong:
        places = ", ".join(wrong[:10]) + (" ..." if len(wrong) > 10 else "")
        raise ValueError(f"must be a string or a list of strings; no strings at the places (from 0) {places}")
    return [well_formed(item) for item in value]


Text = Annotated[str, BeforeValidator(_text)]


class TranslateRequest(BaseModel):
    """What to translate, and between which languages. Sentences are translated one by one; what is between stays."""

    model_config = ConfigDict(
        strict=True,
        extra="ignore",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "source": "en", "target": "de"},
                {"q": ["Good morning.", "Thank you."], "source": "en", "target": "de", "alternatives": 2},
            ]
        },
    )

    q: Annotated[str | list[str], BeforeValidator(_text_or_texts)] = Field(description="A text, or a list of texts.")
    source: Text = Field(description="A code of GET /languages; or auto, where the model has one language to choose.")
    target: Text = Field(description="A code of GET /languages.")
    format: Literal["text"] = Field("text", description="Only plain text, for now.")
    alternatives: int = Field(0, ge=0, description="How many other translations of each text to give, if there are.")

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q


class TranslateResponse(BaseModel):
    """A text for a text, a list for a list, in the same order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"translatedText": "Wo ist der Bahnhof?"},
                {
                    "translatedText": ["Guten Morgen.", "Danke."],
                    "alternatives": [["Morgen.", "Einen guten Morgen."], ["Danke schön.", "Vielen Dank."]],
                },
            ]
        }
    )

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Absent unless asked for.")


class Language(BaseModel):
    """A language of the model, and those that it can be translated into."""

    model_config = ConfigDict(json_schema_extra={"example": {"code": "en", "name": "English", "targets": ["de"]}})

    code: str
    name: str
    targets: list[str]


class Health(BaseModel):
    """The worker lives."""

    status: Literal["ok"] = "ok"


class About(BaseModel):
    """What answers here."""

    name: str
    version: str
    documentation: str
