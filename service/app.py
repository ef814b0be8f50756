"""The application: routes, middleware and errors around a fleet of models."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog
from fastapi import FastAPI

from mt.text.documents import DocumentOptions
from service.access.glossaries import Glossaries, GlossaryLimits
from service.access.limits import Access, Policy
from service.access.store import Store
from service.bodies import body_schemas
from service.dependencies import State
from service.errors import (
    PROBLEM_JSON,
    BodyTooLarge,
    HeadTooLarge,
    InternalError,
    SlowRequest,
    Unavailable,
    documented,
    install_handlers,
)
from service.metrics import CACHE, FLEET, Metrics
from service.middleware import surround
from service.readiness import Readiness
from service.routes import admin, deepl, detect, files, frontend, health, languages, page, translate
from service.routes import metrics as metrics_route
from service.settings import Settings
from service.translation.core import Translations
from service.translation.files import FileLimits, Files
from service.translation.lingering import Lingering
from service.translation.shelf import Means, Shelf, ShelfLimits
from service.workers.door import SAFE, Doorkeeper
from service.workers.fleet import Fleet

ROUTERS = tuple(
    routes.router
    for routes in (translate, detect, languages, files, frontend, deepl, health, metrics_route, admin, page)
)

AROUND = (SlowRequest, BodyTooLarge, HeadTooLarge, InternalError)  # the errors that every route may be answered with
PROBLEM = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}


class Application(FastAPI):
    """FastAPI with an OpenAPI document that tells the truth about errors."""

    def openapi(self) -> dict[str, Any]:
        """Errors are application/problem+json, and what FastAPI would call 422 is a 400 here."""
        if self.openapi_schema is None:
            schema = super().openapi()
            for operations in schema["paths"].values():
                for method, operation in operations.items():
                    responses = operation["responses"]
                    responses.pop("422", None)
                    around = documented(*AROUND, *([] if method.upper() in SAFE else [Unavailable]))
                    for status, response in around.items():
                        responses.setdefault(str(status), {"description": response["description"]})
                    for status, response in responses.items():
                        if status >= "400":
                            response["content"] = PROBLEM
            schema["components"]["schemas"] |= body_schemas()
            for unused in ("HTTPValidationError", "ValidationError"):
                schema["components"]["schemas"].pop(unused, None)
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(settings: Settings, fleet: Fleet, store: Store) -> FastAPI:
    """The application over a fleet and a store that have been opened, and that outlive it."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with opened(settings, fleet, store, metrics) as state:
            yield state

    app = Application(
        title="mt-service",
        version=version("mt-service"),
        description="Translation by models of your own, in the shapes of LibreTranslate and DeepL.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages of it load their scripts from a foreign host; /openapi.json is there
        redoc_url=None,
    )
    for router in ROUTERS:
        app.include_router(router)
    install_handlers(app)
    app.add_middleware(Doorkeeper, door=fleet.door)
    surround(app, settings, metrics)
    return app


@asynccontextmanager
async def opened(settings: Settings, fleet: Fleet, store: Store, metrics: Metrics) -> AsyncIterator[State]:
    """What the routes are given, put away at the end."""
    log = structlog.get_logger()
    documents = DocumentOptions(max_bytes=settings.max_file_bytes, max_unpacked_bytes=settings.max_unpacked_bytes)
    translations = Translations(fleet, settings.cache_characters, documents)
    metrics.watch(FLEET, fleet.stats)
    metrics.watch(CACHE, lambda: translations.work)
    with ExitStack() as stack:
        files = Files(FileLimits(settings.file_seconds, settings.max_kept_file_bytes))
        lingering = Lingering()
        for part in (files, lingering):
            stack.callback(part.close)
        access = Access(store, Policy(settings.require_key, settings.anonymous_rate))
        means = Means(translations.translate_document, access.give_back, lambda where: log.error("failed", where=where))
        shelf = Shelf(store, ShelfLimits(), means)
        readiness = Readiness(fleet)
        warming = asyncio.ensure_future(translations.warm())
        stack.callback(warming.cancel)
        async with access.open(), shelf.open():
            try:
                yield State(
                    settings=settings,
                    fleet=fleet,
                    translations=translations,
                    access=access,
                    glossaries=Glossaries(
                        store, GlossaryLimits(settings.max_glossaries, settings.max_glossary_entries)
                    ),
                    files=files,
                    shelf=shelf,
                    lingering=lingering,
                    metrics=metrics,
                    readiness=readiness,
                )
            finally:
                await readiness.close()
