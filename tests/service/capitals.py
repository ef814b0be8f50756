"""DeepL's dialect on a real socket, over a double that translates into capitals."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import deepl
from fastapi import FastAPI

from mt.languages import Direction, DirectionSet
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import Segment, TranslatedSegment, parse_html, parse_xml
from service.access.api_keys import NewApiKey, make_key
from service.access.control import AccessControl, AccessPolicy
from service.access.database import Database
from service.errors import UnknownModel, install_error_handlers
from service.glossaries.store import GlossaryLimits, GlossaryStore
from service.http.admission import RequestGate
from service.http.middleware import GateMiddleware, RequestLimitMiddleware, RequestLimits, RequestLogMiddleware
from service.languages import TranslationRoutes
from service.memories.jobs import MemoryJobs
from service.memories.store import MemoryLimits, MemoryStore
from service.metrics import Metrics
from service.parsers.operations import write_document
from service.routes import deepl as dialect
from service.settings import Settings
from service.translation.coroutines import WorkThreads, when_admitted
from service.translation.detached_work import DetachedWork
from service.translation.document_jobs import DocumentCallbacks, DocumentJobLimits, DocumentJobs
from service.translation.document_store import DocumentStore
from service.translation.documents import DocumentTranslator, OpenedDocument
from service.translation.jobs import Answer, DetectedSource, Format, Job
from service.translation.service import TranslationService
from tests.service.app_thread import AppThread
from tests.service.doubles import DirectParsers

PAIRS = [("en", "de"), ("en", "pb"), ("en", "pt"), ("en", "zh"), ("de", "en"), ("fr", "en")]


@dataclass
class Capitals:
    """Writes what it is given in capitals, with a glossary's terms replaced before; English if it is not told."""

    routes = TranslationRoutes([DirectionSet.of(Direction(*pair) for pair in PAIRS)])
    threads: WorkThreads = field(default_factory=WorkThreads)
    jobs: list[Job] = field(default_factory=list)
    closed: asyncio.Event | None = None  # what waits for it to be set
    failing: list[Exception] = field(default_factory=list)

    def forget(self) -> None:
        """As it was at first."""
        self.jobs.clear()
        self.failing.clear()

    def routes_of(self, model: str) -> TranslationRoutes:
        if model not in ("", "capitals"):
            raise UnknownModel(f"model {model} is not served; accepted: capitals")
        return self.routes

    async def translate(self, job: Job) -> list[Answer]:
        await self._begin(job)
        detected = None if job.source else DetectedSource("en", 0.9)
        return [Answer(self._whole(text, job), job.source or "en", detected) for text in job.texts]

    async def open_document(self, job: Job, name: str, content: bytes) -> OpenedDocument:
        opened = DocumentTranslator(DocumentOptions(), DirectParsers(), WorkThreads())
        return await opened.open(job.caller, name, content, source=job.source or "", target=job.target)

    async def translate_document(self, name: str, content: bytes, job: Job) -> bytes:
        await when_admitted(partial(self._begin, job), raise_overloaded=False)
        opened = await self.open_document(job, name, content)  # refuses an invalid file
        segments = open_document(name, content, opened.options).segments
        translations = [self._segment(segment, job) for segment in segments]
        return write_document(name, content, opened.options, translations)

    async def _begin(self, job: Job) -> None:
        self.jobs.append(job)
        if self.failing:
            raise self.failing.pop()
        if self.closed:
            await self.closed.wait()

    def _whole(self, text: str, job: Job) -> str:
        if job.format is Format.TEXT:
            return self._words(text, job)
        markup = (parse_html if job.format is Format.HTML else parse_xml)(text, job.markup)
        return markup.render([self._segment(each, job) for each in markup.segments])

    def _segment(self, segment: Segment, job: Job) -> TranslatedSegment:
        text, end = "", 0
        for begin, after in segment.kept:
            text, end = text + self._words(segment.text[end:begin], job) + segment.text[begin:after], after
        text += self._words(segment.text[end:], job)
        same = [(found.span(), found.span()) for found in re.finditer(r"\w+", segment.text)]
        return TranslatedSegment(text, tuple(same))

    def _words(self, text: str, job: Job) -> str:
        for term, translation in job.terms.glossary:
            text = text.replace(term, translation)
        return text.upper()


def single(result: deepl.TextResult | list[deepl.TextResult]) -> deepl.TextResult:
    """Return the result for one text, which the SDK gives without a list."""
    assert isinstance(result, deepl.TextResult)
    return result


def several(results: deepl.TextResult | list[deepl.TextResult]) -> list[deepl.TextResult]:
    """Return the results for a list of texts."""
    assert isinstance(results, list)
    return results


class Running(AppThread):
    """The dialect on a free port, in a thread. `keys` are "rich", without a quota, and "poor", with 20 characters."""

    def __init__(
        self, require_key: bool = True, gives_up_after: float = 9.0, translations: TranslationService | None = None
    ) -> None:
        self.store = Database.open(None)
        self.memories = MemoryStore(self.store, MemoryLimits())
        self.keys: dict[str, str] = {}
        self.core = Capitals()
        self._translations = translations or self.core
        self.renew()
        self.detached_work = DetachedWork(gives_up_after)
        self._access = AccessControl(self.store, AccessPolicy(require_key))
        means = DocumentCallbacks(self._translations.translate_document, self._access.refund, lambda problem: None)
        self.document_jobs = DocumentJobs(self.store, DocumentJobLimits(documents_per_caller=3), means)
        self._settings = Settings.model_construct(max_body_bytes=300_000)
        super().__init__(self._app)

    def _app(self) -> FastAPI:
        gate = RequestGate()

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with self._access.open(), self.document_jobs.open():
                services = SimpleNamespace(
                    settings=self._settings,
                    fleet=SimpleNamespace(gate=gate),
                    translations=self._translations,
                    access=self._access,
                    glossaries=GlossaryStore(self.store, GlossaryLimits(glossaries=5, entries=20)),
                    memories=self.memories,
                    memory_jobs=MemoryJobs(),
                    parsers=SimpleNamespace(documents=DirectParsers()),
                    document_jobs=self.document_jobs,
                    documents=DocumentStore(self.store, 10**8, 3600),
                    detached_work=self.detached_work,
                )
                yield {"services": services}
                self.detached_work.close()

        app = FastAPI(lifespan=lifespan)
        for router in dialect.ROUTERS:
            app.include_router(router)
        install_error_handlers(app)
        limits = RequestLimits(60_000, self._settings.max_body_bytes, 300_000, 10**7, 10.0)
        app.add_middleware(GateMiddleware, gate=gate)
        app.add_middleware(RequestLimitMiddleware, limits=limits)
        app.add_middleware(RequestLogMiddleware, metrics=Metrics())
        return app

    def renew(self) -> None:
        """New keys, which own nothing; and the core as it was at first."""
        self.release()
        self.core.forget()
        for name, quota in (("rich", None), ("poor", 20)):
            wanted = NewApiKey(f"{name} {uuid4()}", quota=quota)
            self.keys[name], _ = self.store.run_sync(partial(make_key, new=wanted))

    def client(self, key: str = "rich") -> deepl.DeepLClient:
        client = deepl.DeepLClient(self.keys.get(key, key), server_url=self.url)
        client._client._session.trust_env = False
        return client

    def hold(self) -> None:
        """Nothing is translated until `release`."""
        self.core.closed = asyncio.Event()

    def release(self) -> None:
        closed = self.core.closed
        if closed:
            self.do(closed.set)
            self.core.closed = None

    def stop(self) -> None:
        self.release()
        super().stop()
        self.store.close()
