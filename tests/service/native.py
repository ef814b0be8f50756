"""LibreTranslate's dialect on a free port, in a thread, over models that a test controls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI

from mt.text.documents import DocumentOptions
from service.access.api_keys import NewApiKey, make_key
from service.access.control import AccessControl, AccessPolicy
from service.access.database import Database
from service.access.glossaries import GlossaryLimits, GlossaryStore
from service.access.memories import MemoryLimits, MemoryStore
from service.errors import install_error_handlers
from service.metrics import Metrics
from service.middleware import RequestLimitMiddleware, RequestLimits, RequestLogMiddleware
from service.parsers.pool import Parsers
from service.routes import detect, documents, files, frontend, languages, memories, suggest, translate
from service.settings import Settings
from service.translation.editable_documents import EditableDocumentLimits, EditableDocuments
from service.translation.files import FileLimits, FileStore
from service.translation.service import TranslationBackend, TranslationService

T = TypeVar("T")


class Native:
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
        self.documents = EditableDocuments(self.store, EditableDocumentLimits(), DocumentOptions())
        self.parsers = Parsers()
        self._make = models, translations
        self._started = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(60)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=60)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.models = self._make[0]()
        self.translations = TranslationService(
            self.models, **self._make[1], parsers=self.parsers, find_matches=self.memories.matches
        )
        self._server = uvicorn.Server(uvicorn.Config(self._app(), port=0, log_config=None))
        running = asyncio.ensure_future(self._server.serve())
        while not self._server.started and not running.done():
            await asyncio.sleep(0.01)
        self._started.set()
        await running

    def _app(self) -> FastAPI:
        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
            self.files = FileStore(
                FileLimits(self.settings.file_retention_seconds, self.settings.max_stored_file_bytes)
            )
            async with self.access.open():
                yield {
                    "settings": self.settings,
                    "translations": self.translations,
                    "access": self.access,
                    "glossaries": self.glossaries,
                    "memories": self.memories,
                    "parsers": self.parsers,
                    "files": self.files,
                    "editable_documents": self.documents,
                }
            self.files.close()
            self.parsers.close()

        app = FastAPI(lifespan=lifespan)
        for each in (translate, detect, languages, files, documents, memories, suggest, frontend):
            app.include_router(each.router)
        install_error_handlers(app)
        app.add_middleware(
            RequestLimitMiddleware, limits=RequestLimits(60_000, self.settings.max_body_bytes, 10**6, 10**7, 10.0)
        )
        app.add_middleware(RequestLogMiddleware, metrics=Metrics())
        return app

    def do(self, action: Callable[[], Any]) -> Any:
        """In the event loop."""

        async def doing() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(doing(), self.loop).result()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, run in the event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def spent(self, key: str) -> int:
        """Characters charged to a key."""

        async def usage() -> int:
            caller = await self.access.admit(self.keys[key], "")
            return (await self.access.usage(caller)).characters

        return asyncio.run_coroutine_threadsafe(usage(), self.loop).result()

    def stop(self) -> None:
        self.client.close()
        self._server.should_exit = True
        self._thread.join()
