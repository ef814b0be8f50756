"""The HTTP application: routes, middleware and error handlers for a fleet of models."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog
from fastapi import FastAPI

from mt.text.documents import DocumentOptions
from service.access.control import AccessControl, AccessPolicy
from service.access.database import Database
from service.access.glossaries import GlossaryLimits, GlossaryStore
from service.access.memories import MemoryLimits, MemoryStore
from service.bodies import body_schemas
from service.dependencies import AppState
from service.draining import DrainMiddleware
from service.errors import PROBLEM_JSON, Problem, install_error_handlers
from service.metrics import CACHE_METRICS, FLEET_METRICS, PARSER_METRICS, Metrics
from service.middleware import install_middleware
from service.parsers.pool import Parsers
from service.readiness import Readiness
from service.routes import (
    admin,
    deepl,
    detect,
    docs,
    files,
    frontend,
    health,
    languages,
    memories,
    models,
    page,
    suggest,
    translate,
)
from service.routes import metrics as metrics_route
from service.settings import Settings
from service.translation.detached_work import DetachedWork
from service.translation.document_jobs import DocumentCallbacks, DocumentJobLimits, DocumentJobs
from service.translation.files import FileLimits, FileStore
from service.translation.service import TranslationService
from service.workers.fleet import Fleet

ROUTERS = tuple(
    routes.router
    for routes in (
        translate,
        detect,
        languages,
        files,
        memories,
        suggest,
        frontend,
        deepl,
        health,
        metrics_route,
        models,
        admin,
        docs,
        page,
    )
)

PROBLEM_SCHEMA = {"schema": {"$ref": "#/components/schemas/Problem"}}
PROBLEM: dict[str, Any] = {
    "description": "The field `code` tells the errors apart.",
    "content": {PROBLEM_JSON: PROBLEM_SCHEMA, "application/json": PROBLEM_SCHEMA},
}


class Application(FastAPI):
    """FastAPI whose OpenAPI document describes the service's own error responses."""

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document. The errors of all routes have one description, in place of status 422."""
        if self.openapi_schema is None:
            schema = super().openapi()
            for operations in schema["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    operation["responses"] |= {"4XX": PROBLEM, "5XX": PROBLEM}
            schema["components"]["schemas"]["Problem"] = Problem.model_json_schema()
            schema["components"]["schemas"] |= body_schemas()
            for unused in ("HTTPValidationError", "ValidationError"):
                schema["components"]["schemas"].pop(unused, None)
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(settings: Settings, fleet: Fleet, database: Database) -> FastAPI:
    """Create the application. `fleet` and `database` must be open, and must stay open while the application runs."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[AppState]:
        async with open_state(settings, fleet, database, metrics) as state:
            yield state

    app = Application(
        title="mt-service",
        version=version("mt-service"),
        description="Translation with your own models, by the contracts of LibreTranslate and DeepL.",
        lifespan=lifespan,
        openapi_url=None,  # FastAPI encodes the document for each request; routes/docs.py encodes it once
        docs_url=None,  # FastAPI's page loads scripts from another host; the page of routes/docs.py has no scripts
        redoc_url=None,
    )
    for router in ROUTERS:
        app.include_router(router)
    install_error_handlers(app)
    app.add_middleware(DrainMiddleware, gate=fleet.gate)
    install_middleware(app, settings, metrics)
    return app


@asynccontextmanager
async def open_state(settings: Settings, fleet: Fleet, database: Database, metrics: Metrics) -> AsyncIterator[AppState]:
    """Open the objects that routes use, yield them, and close them when the context ends."""
    log = structlog.get_logger()
    options = DocumentOptions(
        max_bytes=settings.max_file_bytes,
        max_unpacked_bytes=settings.max_unpacked_bytes,
        max_characters=settings.max_document_characters,
    )
    parsers = Parsers()
    store = MemoryStore(database, MemoryLimits(settings.max_memories, settings.max_memory_units))
    translations = TranslationService(
        fleet, settings.cache_characters, options, parsers=parsers, find_matches=store.matches
    )
    metrics.sample(FLEET_METRICS, fleet.stats)
    metrics.sample(CACHE_METRICS, lambda: translations.work)
    metrics.sample(PARSER_METRICS, lambda: parsers.counts)
    with ExitStack() as stack:
        files = FileStore(FileLimits(settings.file_retention_seconds, settings.max_stored_file_bytes))
        detached_work = DetachedWork()
        for part in (parsers, files, detached_work):
            stack.callback(part.close)
        access = AccessControl(database, AccessPolicy(settings.require_key, settings.anonymous_rate))
        callbacks = DocumentCallbacks(
            translations.translate_document, access.refund, lambda location: log.error("failed", location=location)
        )
        document_jobs = DocumentJobs(database, DocumentJobLimits(), callbacks)
        readiness = Readiness(fleet)
        warming = asyncio.ensure_future(translations.warm_up())
        stack.callback(warming.cancel)
        async with access.open(), document_jobs.open():
            try:
                yield AppState(
                    settings=settings,
                    fleet=fleet,
                    translations=translations,
                    access=access,
                    glossaries=GlossaryStore(
                        database, GlossaryLimits(settings.max_glossaries, settings.max_glossary_entries)
                    ),
                    memories=store,
                    parsers=parsers,
                    files=files,
                    document_jobs=document_jobs,
                    detached_work=detached_work,
                    metrics=metrics,
                    readiness=readiness,
                )
            finally:
                await readiness.close()
