"""LibreTranslate's dialect on a free port, in a thread, over models that a test controls."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from fastapi import FastAPI

from service.access.api_keys import NewApiKey, make_key
from service.access.control import AccessControl, AccessPolicy
from service.access.database import Database
from service.errors import install_error_handlers
from service.glossaries.store import GlossaryLimits, GlossaryStore
from service.http.admission import RequestGate
from service.http.middleware import GateMiddleware, RequestLimitMiddleware, RequestLimits, RequestLogMiddleware
from service.memories.store import MemoryLimits, MemoryStore
from service.metrics import Metrics
from service.parsers.pool import Parsers
from service.routes import detect, files, frontend, languages, memories, suggest, translate
from service.settings import Settings
from service.translation.backend import TranslationBackend
from service.translation.document_store import DocumentStore
from service.translation.service import TranslationService
from tests.service.app_thread import AppThread


class Native(AppThread):
    """A running service. `keys` are "rich", without a quota, and "poor", with 20 characters."""

    def __init__(
        self, models: Callable[[], TranslationBackend], translations: dict[str, Any], settings: dict[str, Any]
    ) -> None:
        """`models` are made in the event loop."""
        self.settings = Settings(model=(Path("unused"),), **settings)
        self.store = Database.open(None)
        wanted = (NewApiKey("rich"), NewApiKey("poor", quota=20))
        self.keys = {each.name: self.store.run_sync(partial(make_key, new=each))[0] for each in wanted}
        self.access = AccessControl(self.store, AccessPolicy(self.settings.require_key))
        self.glossaries = GlossaryStore(self.store, GlossaryLimits())
        self.memories = MemoryStore(self.store, MemoryLimits())
        self.documents = DocumentStore(
            self.store, self.settings.max_stored_file_bytes, self.settings.file_retention_seconds
        )
        self.parsers = Parsers()
        super().__init__(partial(self._app, models, translations))
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=60)

    def _app(self, models: Callable[[], TranslationBackend], translations: dict[str, Any]) -> FastAPI:
        self.models = models()
        self.translations = TranslationService(
            self.models, **translations, parsers=self.parsers, find_matches=self.memories.matches
        )

        gate = RequestGate()

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with self.access.open():
                self.services = SimpleNamespace(
                    settings=self.settings,
                    fleet=SimpleNamespace(gate=gate),
                    translations=self.translations,
                    access=self.access,
                    glossaries=self.glossaries,
                    memories=self.memories,
                    parsers=self.parsers,
                    documents=self.documents,
                )
                yield {"services": self.services}
            self.parsers.close()

        app = FastAPI(lifespan=lifespan)
        for each in (translate, detect, languages, files, memories, suggest, frontend):
            app.include_router(each.router)
        install_error_handlers(app)
        app.add_middleware(GateMiddleware, gate=gate)
        app.add_middleware(
            RequestLimitMiddleware, limits=RequestLimits(60_000, self.settings.max_body_bytes, 10**6, 10**7, 10.0)
        )
        app.add_middleware(RequestLogMiddleware, metrics=Metrics())
        return app

    def spent(self, key: str) -> int:
        """Characters charged to a key."""

        async def usage() -> int:
            caller = await self.access.admit(self.keys[key], "")
            return (await self.access.usage(caller)).characters

        return self.wait(usage())

    def stop(self) -> None:
        self.client.close()
        super().stop()
