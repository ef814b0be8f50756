"""All models of the service: chooses the model of a request, limits the accepted work, and reloads models."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import structlog

from mt.checkpoint import check_files, model_digest
from mt.errors import ModelError, MTError, RequestError, problems
from mt.languages import Direction
from mt.pipeline.results import Translation
from service.errors import (
    SHUTTING_DOWN,
    InvalidRequest,
    ReloadRefused,
    Unavailable,
    UnsupportedLanguage,
)
from service.http.admission import RequestGate
from service.logs import Phase, current_record
from service.settings import Settings
from service.workers.admission import Admission, RequestSize
from service.workers.messages import ModelSetup, OnSentence, SourceText, TranslateOptions
from service.workers.model_files import find_models, find_models_at_start
from service.workers.model_memory import MEGABYTE, MemoryTimes, ModelMemory
from service.workers.pool import PendingRequest, TransportFactory, WorkerPool
from service.workers.served_models import pools_named, preferred_first, served_names, successors_of
from service.workers.worker import FleetCounts, ProcessTransport, WorkerTimeouts


@dataclass(kw_only=True)
class FleetStats(FleetCounts):
    """Statistics of the fleet: its counters, and present numbers."""

    requests: int  # requests that are accepted and not yet answered
    refused: int  # requests that were refused because the queue was full (a counter)
    queued: int  # texts that have not been given to a worker
    running: int  # texts that have been given to a worker and are not answered
    workers: int  # workers that should run
    workers_ready: int  # workers that are ready
    pools: Sequence[WorkerPool] = ()  # of the versions of the models that are served now


class Fleet:
    """The models of the service, each with a pool of workers. `async with Fleet(...)` loads and unloads the models."""

    def __init__(
        self, settings: Settings, new_transport: TransportFactory = ProcessTransport, times: MemoryTimes | None = None
    ) -> None:
        self.gate = RequestGate(settings.max_pending_requests)
        self.pools: list[WorkerPool] = []  # one for each model, the preferred models first
        self.reloads_too: tuple[Callable[[], None], Callable[[], None]] | None = None  # reads; uses what was read
        self._retiring: list[WorkerPool] = []  # replaced pools that finish their requests
        self._settings = settings
        self._new_transport = new_transport
        self._admission = Admission(
            RequestSize(settings.max_pending_requests, settings.max_pending_texts, settings.max_pending_characters)
        )
        budget = None if settings.model_memory_mb is None else settings.model_memory_mb * MEGABYTE
        self._memory = ModelMemory(budget, self._start_task, times or MemoryTimes())
        self._counts = FleetCounts()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloads: set[asyncio.Task[None]] = set()  # the tasks that load new versions, at most two
        self._waiting: asyncio.Task[None] | None = None  # the one of them that has not begun
        self._reloading = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        """Load every model. Raises: ModelError that lists all models that cannot be loaded, or a TokenizerError."""
        self.pools = [self._new_pool(model) for model in find_models_at_start(self._settings)]
        try:
            await self._open(self.pools)
            self._serve(self.pools)
        except BaseException:
            await self._close()
            raise
        if reason := next((pool.description.no_gpu for pool in self.pools if pool.description.no_gpu), ""):
            structlog.get_logger().info("no GPU: the CPU translates", reason=reason)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._close()

    @property
    def ready(self) -> bool:
        """True if the fleet accepts requests, and each model has a ready worker or will get one on demand."""
        return not self.draining and all(pool.available for pool in self.pools)

    @property
    def draining(self) -> bool:
        """True if the fleet refuses new requests because it is being shut down."""
        return self._closed or self.gate.closed

    def pool_for(self, direction: Direction, name: str = "") -> WorkerPool:
        """Return the pool of the model with this name, or of the default model of `direction` if `name` is "".

        Raises:
            UnknownModel: no model has this name.
            UnsupportedLanguage: the model of this name does not translate `direction`, or no model does.
        """
        named = pools_named(name, self.pools)
        pool = next((pool for pool in named if direction in pool.description.directions), None)
        if pool is None:
            raise UnsupportedLanguage(f"{direction} is not supported" + (f" by the model {name}" if name else ""))
        return pool

    async def drain(self, seconds: float) -> bool:
        """Refuse new requests, cancel reloads, and wait at most `seconds` until the accepted requests are answered.

        Return whether all accepted requests were answered in time. The unanswered requests fail with Unavailable.
        """
        self.gate.closed = True
        _cancel(self._reloads)  # loads on demand go on: accepted requests may wait for them
        if await self.gate.wait_until_idle(seconds):
            return True
        self._fail_pending()
        return False

    async def translate(
        self,
        texts: Sequence[SourceText],
        options: TranslateOptions,
        *,
        caller: str = "",
        on_sentence: OnSentence | None = None,
        pool: WorkerPool | None = None,
    ) -> list[Translation]:
        """Return the translations of `texts`, in order, all by the same version of a model.

        If this coroutine is cancelled, the texts are not translated any further. The engine serves callers in turn.
        `on_sentence` is called with each finished sentence, in order, of a request of one text. A request that names
        its pool does not count as a use of the model.

        Raises:
            UnknownModel: no model has the name of the options.
            UnsupportedLanguage: no model translates this direction.
            InvalidRequest: the search options are invalid.
            Overloaded: the queue is full.
            Unavailable: the service is shutting down, or the model's workers cannot be started.
            CannotTranslate: the model fails on one of the texts.
            InternalError: the worker has a defect.
        """
        if not texts:
            return []
        if pool is None:
            pool = self.pool_for(options.direction, options.model)
            self._memory.use(pool, caller)
        if self._closed or pool.unrecoverable:
            raise Unavailable
        try:
            options.search(pool.description.options)
        except RequestError as error:
            raise InvalidRequest(str(error)) from error
        accepted, result = time.monotonic(), asyncio.get_running_loop().create_future()
        request = PendingRequest(pool, tuple(texts), options, caller, result, on_sentence)
        size = RequestSize(1, len(texts), sum(len(text.text) for text in texts))
        with self._admission.admitted(caller, size):
            translated = 0  # characters
            self._admission.throughput.note(accepted, 0, busy=True)
            try:
                pool.submit(request)
                translations = await request.result
                translated = size.characters
            finally:
                request.pool.withdraw(request)
                busy = self._admission.held.texts > size.texts  # requests of `joining` have none
                self._admission.throughput.note(time.monotonic(), translated, busy)
        record, started = current_record(), request.started or accepted
        record.models.add(pool.name)
        record.add_phase(Phase.QUEUE, started - accepted)
        record.add_phase(Phase.TRANSLATE, time.monotonic() - started)
        return translations

    async def translate_by_each(self, text: str, caller: str) -> None:
        """Translate a text with each loaded model in the model's first direction. Raises: the errors of `translate`."""
        for pool in [pool for pool in self.pools if pool.loaded and not pool.loading]:
            options = TranslateOptions(next(iter(pool.description.directions)))
            await self.translate([SourceText(text)], options, caller=caller, pool=pool)

    def joining(self, caller: str) -> AbstractContextManager[None]:
        """Count a request that waits for the translation of an equal one. Raises: Overloaded if the queue is full."""
        return self._admission.admitted(caller, RequestSize(requests=1))

    def check_room(self, caller: str, texts: Sequence[str]) -> None:
        """Raise Overloaded if the queue is too full for these texts."""
        self._admission.check(caller, RequestSize(1, len(texts), sum(map(len, texts))))

    async def reload(self) -> None:
        """Load every new or changed model, replace the old versions, and read the glossary of the page again.

        If one cannot be used, nothing is replaced. A model may disappear from the folder of models if other models
        translate all its directions; the starter model, served while the folder was empty, leaves in any case. New
        workers load and try the new version while the old workers translate. Then the new workers get the new requests,
        and the old workers end once they have finished their requests.

        Raises: ReloadRefused if a model or the glossary cannot be used or the service is shutting down.
        """
        task = self.start_reload()
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise ReloadRefused("the service is shutting down") from None

    def start_reload(self) -> asyncio.Task[None]:
        """Start `reload` in the background, unless one has not begun yet, and return its task. Errors are logged."""
        if self._waiting is None:
            self._waiting = self._start_task(self._reload())
            self._reloads.add(self._waiting)
            self._waiting.add_done_callback(self._reloads.discard)
            self._waiting.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait for it
        return self._waiting

    async def _reload(self) -> None:
        async with self._reloading:
            self._waiting = None
            if self.draining:
                raise ReloadRefused("the service is shutting down")
            log = structlog.get_logger()
            log.info("reloading")
            try:
                if self.reloads_too:
                    await asyncio.to_thread(self.reloads_too[0])
                new, successors = await self._load_changed()
            except MTError as error:  # for example TokenizerError
                self._counts.refused_reloads += 1
                log.error("reload refused", problem=str(error))
                raise ReloadRefused(str(error)) from error
            self._counts.reloads += len(new)
            if self.reloads_too:
                self.reloads_too[1]()
            log.info("reloaded", models=[pool.name for pool in new])
            for old, pools in successors.items():
                self._retiring.append(old)
                old.retire(pools)
                self._start_task(self._close_when_idle(old))

    def stats(self) -> FleetStats:
        """Return statistics of the fleet. The workers' counters may be about a second old."""
        pools = [*self.pools, *self._retiring]
        return FleetStats(
            **vars(self._counts),
            requests=self._admission.held.requests,
            refused=self._admission.refused,
            queued=sum(pool.queued for pool in pools),
            running=sum(pool.running for pool in pools),
            workers=sum(len(pool.workers) for pool in self.pools if pool.loaded),
            workers_ready=sum(len(pool.ready_workers) for pool in self.pools),
            pools=tuple(self.pools),
        )

    async def _load_changed(self) -> tuple[list[WorkerPool], dict[WorkerPool, Sequence[WorkerPool]]]:
        """Load new and changed models, and serve them. Return the new pools, and the successors of each replaced pool.

        Raises: ModelError or TokenizerError if a model cannot be used. The fleet is unchanged in this case.
        """
        new: list[WorkerPool] = []
        pools: list[WorkerPool] = []
        known = {pool.model: pool for pool in self.pools}
        for model in await asyncio.to_thread(find_models, self._settings):
            pool = known.get(model)
            if pool is None or await asyncio.to_thread(model_digest, model) != pool.description.version:
                new.append(pool := self._new_pool(model))
            pools.append(pool)
        try:
            await self._open(new)
            successors = {old: successors_of(old, pools) for old in self.pools if old not in pools}
            self._serve(pools)
        except BaseException:
            await asyncio.gather(*(pool.close() for pool in new))
            for pool in new:
                self._memory.forget(pool)
            raise
        return new, successors

    def _serve(self, pools: list[WorkerPool]) -> None:
        """Use these pools for new requests. Raises: the ModelErrors of `served_names` and `preferred_first`."""
        names = served_names(pools)
        self.pools = preferred_first(names, self._settings.preferred_models)
        for pool, name in names.items():
            pool.name = name

    async def _close_when_idle(self, pool: WorkerPool) -> None:
        await pool.idle.wait()
        await pool.close()
        self._memory.forget(pool)
        self._retiring.remove(pool)
        structlog.get_logger().info("model unloaded", model=pool.name, version=pool.description.version)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _close(self) -> None:
        """Stop all workers; unanswered requests fail with Unavailable."""
        self._closed = True
        _cancel(self._tasks)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_pending()
        await asyncio.gather(*(pool.close() for pool in (*self.pools, *self._retiring)))

    def _fail_pending(self) -> None:
        for request in [request for pool in (*self.pools, *self._retiring) for request in pool.requests]:
            request.fail(Unavailable(SHUTTING_DOWN))

    def _new_pool(self, model: Path) -> WorkerPool:
        settings = self._settings
        return WorkerPool(
            ModelSetup(
                *(model, settings.device, settings.dtype, settings.threads, settings.backend, settings.workers_per_gpu)
            ),
            self._new_transport,
            WorkerTimeouts(start=settings.load_timeout_seconds, step=settings.step_timeout_seconds),
            self._counts,
            on_new_version=self.start_reload,
            on_needed=self._memory.need,
        )

    async def _open(self, pools: Sequence[WorkerPool]) -> None:
        """Open pools concurrently, which loads their models.

        Raises: ModelError that lists all models that fail, or the error of the only one, such as TokenizerError.

        Files that cannot be read are reported before any worker starts. If memory is limited, the pools are opened one
        at a time. The first pool is opened last, so that its model stays loaded.
        """
        checks = (asyncio.to_thread(check_files, pool.model) for pool in pools)
        _raise_all(await asyncio.gather(*checks, return_exceptions=True))
        opened = (self._memory.open(pool, pool.open) for pool in reversed(pools))
        _raise_all(reversed(await asyncio.gather(*opened, return_exceptions=True)))


def _raise_all(results: Iterable[BaseException | None]) -> None:
    """Raise the error if there is one, or a ModelError that lists several MTErrors."""
    errors = [error for error in results if error]
    for error in errors:
        if len(errors) == 1 or not isinstance(error, MTError):
            raise error
    if errors:
        raise ModelError(problems("these models cannot be served", map(str, errors)))


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks. A second cancellation would interrupt a task while it stops workers, and is left out."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
