"""The objects that routes use, as one dataclass and one FastAPI dependency."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from mt.text.documents import DocumentOptions
from service.access.control import AccessControl
from service.access.database import Database
from service.glossaries.offered import OfferedGlossary
from service.glossaries.store import GlossaryLimits, GlossaryStore
from service.memories.jobs import MemoryJobs
from service.memories.store import MemoryLimits, MemoryStore
from service.metrics import CACHE_METRICS, FLEET_METRICS, MODEL_METRICS, PARSER_METRICS, Metrics
from service.parsers.pool import ParserPool
from service.readiness import Readiness
from service.settings import Settings
from service.translation.document_jobs import DocumentJobLimits, DocumentJobs
from service.translation.document_store import DocumentStore
from service.translation.service import NewDetector, TranslationService
from service.workers.fleet import Fleet


@dataclass(frozen=True)
class Services:
    """Objects that live as long as the application."""

    settings: Settings
    fleet: Fleet
    translations: TranslationService
    access: AccessControl
    glossaries: GlossaryStore
    offered: OfferedGlossary
    memories: MemoryStore
    memory_jobs: MemoryJobs
    parsers: ParserPool
    documents: DocumentStore
    document_jobs: DocumentJobs
    metrics: Metrics
    readiness: Readiness


async def services_of(request: Request) -> Services:
    """Return the services of the application. This is a dependency of routes."""
    services: Services = request.scope["state"]["services"]
    return services


ServicesDependency = Annotated[Services, Depends(services_of)]


@asynccontextmanager
async def open_services(
    settings: Settings,
    fleet: Fleet,
    database: Database,
    metrics: Metrics,
    offered: OfferedGlossary,
    detector: NewDetector,
) -> AsyncIterator[Services]:
    """Open the services of an application, yield them, and close them when the context ends."""
    options = DocumentOptions(
        max_bytes=settings.max_file_bytes,
        max_unpacked_bytes=settings.max_unpacked_bytes,
        max_characters=settings.max_document_characters,
    )
    parsers = ParserPool()
    memories = MemoryStore(database, MemoryLimits(memories=settings.max_memories, units=settings.max_memory_units))
    cache, seconds = settings.cache_characters, settings.request_timeout_seconds
    translations = TranslationService(fleet, cache, options, detector, parsers, memories.matches, seconds)
    access = AccessControl(database, settings.require_key, settings.anonymous_rate)
    document_limits = DocumentJobLimits(bytes=settings.max_stored_file_bytes)
    metrics.sample(FLEET_METRICS, fleet.stats)
    metrics.sample(MODEL_METRICS, lambda: {pool.name: pool for pool in fleet.stats().pools})
    metrics.sample(CACHE_METRICS, lambda: translations.cache)
    metrics.sample(PARSER_METRICS, lambda: parsers.counts)
    with ExitStack() as stack:
        services = Services(
            settings=settings,
            fleet=fleet,
            translations=translations,
            access=access,
            glossaries=GlossaryStore(database, GlossaryLimits(glossaries=settings.max_glossaries)),
            offered=offered,
            memories=memories,
            memory_jobs=MemoryJobs(),
            parsers=parsers,
            documents=DocumentStore(database, settings.max_stored_file_bytes, settings.file_retention_seconds),
            document_jobs=DocumentJobs(
                *(database, document_limits, translations.translate_document, access.refund),
                translations.documents.turns,
            ),
            metrics=metrics,
            readiness=Readiness(fleet, database.lost),
        )
        offered.use(translations.routes)
        fleet.reloads_too = offered.read, lambda: offered.use(translations.routes)
        stack.callback(parsers.close)
        warming = asyncio.ensure_future(translations.warm_up())
        stack.callback(warming.cancel)
        async with access.open(), services.document_jobs.open():
            try:
                yield services
            finally:
                await services.readiness.close()
