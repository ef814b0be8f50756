"""GET and POST /v2/languages, GET /v2/glossary-language-pairs and GET /v3/languages.

`type` is read from the query and from the body: DeepL's SDK sends it in the body of a GET.
"""

import asyncio
from functools import lru_cache
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from mt.text.formality import supports_formality
from service.http.bodies import JSON, URLENCODED, BodyReader
from service.http.fields import AsChoice
from service.languages import TranslationRoutes
from service.routes.access import CallerDependency
from service.routes.deepl.language_codes import (
    glossary_directions,
    resource_languages,
    source_languages,
    target_languages,
)
from service.routes.deepl.schemas import Body, LanguagePair
from service.services import ServicesDependency

router = APIRouter(tags=["DeepL"])


class LanguagesBody(Body):
    """The languages to list."""

    type: Annotated[Literal["", "source", "target"] | None, AsChoice] = Field(
        None, description="`source` if left out or empty."
    )


class DeeplLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool | None = Field(None, description="Of target languages only.")


class ResourceBody(Body):
    """The resource, such as `translate_text`, whose languages are to be listed."""

    resource: Annotated[
        Literal[
            "translate_text",
            "translate_document",
            "glossary",
            "translation_memory",
            "write",
            "voice",
            "style_rules",
        ],
        AsChoice,
    ] = Field(description="The service has no languages for `write`, `voice` and `style_rules`.")


class ResourceLanguage(BaseModel):
    """A language of a resource. `features` has a key for each supported feature."""

    lang: str
    name: str
    status: Literal["stable"] = "stable"
    usable_as_source: bool
    usable_as_target: bool
    features: dict[str, dict[str, str]]


class LanguagePairs(BaseModel):
    supported_languages: list[LanguagePair]


RESOURCES = {
    "translate_text": ("tag_handling", "glossary", "formality", "auto_detection"),
    "translate_document": ("glossary", "formality", "auto_detection"),
    "glossary": (),
    "translation_memory": (),
}
"""DeepL's resources that the service has, with the names of each resource's features."""
SOURCE_FEATURES = {"tag_handling", "glossary", "auto_detection"}  # features that a source language supports
TARGET_FEATURES = {"tag_handling", "glossary", "formality"}

LanguagesFields = Annotated[LanguagesBody, Depends(BodyReader(LanguagesBody, JSON, URLENCODED))]
ResourceFields = Annotated[ResourceBody, Depends(BodyReader(ResourceBody))]


@router.post("/v2/languages", response_model_exclude_none=True)
@router.get("/v2/languages", response_model_exclude_none=True)
async def languages(
    caller: CallerDependency, body: LanguagesFields, services: ServicesDependency
) -> list[DeeplLanguage]:
    """List the source languages or, if `type` is target, the target languages."""
    routes = services.translations.routes
    if body.type == "target":
        targets = target_languages(routes)
        return [
            DeeplLanguage(language=code, name=name, supports_formality=supports_formality(code.lower()))
            for code, name in targets
        ]
    return [DeeplLanguage(language=code, name=name) for code, name in source_languages(routes)]


@router.get("/v2/glossary-language-pairs", response_model=LanguagePairs)
async def glossary_language_pairs(caller: CallerDependency, services: ServicesDependency) -> Response:
    """List the pairs of languages that a glossary can have."""
    content = await asyncio.to_thread(encoded_pairs, services.translations.routes)
    return Response(content, media_type="application/json")


@lru_cache(1)
def encoded_pairs(routes: TranslationRoutes) -> bytes:
    """Return the answer of GET /v2/glossary-language-pairs as JSON: 1.5 MB for a model of 200 languages."""
    pairs = [
        LanguagePair(source_lang=direction.source, target_lang=direction.target)
        for direction in glossary_directions(routes)
    ]
    return LanguagePairs(supported_languages=pairs).model_dump_json().encode()


@router.get("/v3/languages")
async def languages_of_resource(
    caller: CallerDependency, body: ResourceFields, services: ServicesDependency
) -> list[ResourceLanguage]:
    """List the languages of a resource, such as `translate_text`, with the features that each language supports."""
    if body.resource not in RESOURCES:
        return []
    listed = []
    for code, name, is_source, is_target in resource_languages(services.translations.routes):
        supported = (SOURCE_FEATURES if is_source else set()) | (TARGET_FEATURES if is_target else set())
        if not supports_formality(code):
            supported -= {"formality"}
        features = {feature: {"status": "stable"} for feature in RESOURCES[body.resource] if feature in supported}
        listed.append(
            ResourceLanguage(
                lang=code, name=name, usable_as_source=is_source, usable_as_target=is_target, features=features
            )
        )
    return listed
