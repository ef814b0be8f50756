"""All models of the service: chooses the model of a direction, limits the accepted work, and reloads models."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError, MTError, RequestError, problems
from mt.languages import Direction, DirectionSet
from mt.pipeline.results import Translation
from service.draining import RequestGate
from service.errors import DeadlineExceeded, InvalidRequest, ReloadRefused, Unavailable, UnsupportedLanguage
from service.logs import Phase, current_record
from service.settings import Settings
from service.workers.admission import Admission, RequestSize
from service.workers.messages import ModelSetup, SourceText, TranslateOptions, WorkCounts
from service.workers.model_files import find_models, model_version
from service.workers.pending import OnSentence, PendingRequest
from service.workers.pool import TransportFactory, WorkerPool
from service.workers.stats import FleetStats
from service.workers.transport import ProcessTransport
from service.workers.worker import WorkerTimeouts

MAX_LISTED = 20  # directions in an error message


@dataclass(frozen=True)
class ServedModel:
    """A model that the fleet serves."""

    name: str
    version: str
    directions: DirectionSet
    about: str = ""  # what the model was trained on


@dataclass(frozen=True)
class FleetConfig:
    """Models and limits of a fleet."""

    models: tuple[Path, ...]
    device: str
    limits: RequestSize
    timeouts: WorkerTimeouts
    request_seconds: float  # longest time of a request; also the time-out of a request without a deadline
    folder: Path | None = None  # folder whose models are served, if `models` is empty

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the configuration that follows from the settings."""
        return cls(
            models=settings.model or (STARTER_MODEL,),
            folder=None if settings.model else settings.models,
            device=settings.device,
            limits=RequestSize(
                settings.max_pending_requests, settings.max_pending_texts, settings.max_pending_characters
            ),
            timeouts=WorkerTimeouts(start=settings.load_timeout_seconds, step=settings.step_timeout_seconds),
            request_seconds=settings.request_timeout_seconds,
        )

    def find_models(self) -> tuple[Path, ...]:
        """Return the model directories that exist now. Raises: ModelError if the folder holds no model."""
        return self.models if self.folder is None else find_models(self.folder)


def process_transports(settings: Settings) -> TransportFactory:
    """Return a factory that runs each worker in a process of its own."""

    def new_transport(model: Path, device: str) -> ProcessTransport:
        return ProcessTransport(
            ModelSetup(model, device, settings.dtype, settings.threads, settings.shortlist, settings.backend)
        )

    return new_transport


class Fleet:
    """The worker pools of all models. The context `async with Fleet(...) as fleet` loads and unloads the models."""

    def __init__(self, config: FleetConfig, new_transport: TransportFactory) -> None:
        self.gate = RequestGate()
        self.pools: list[WorkerPool] = []  # one for each model
        self.models: tuple[ServedModel, ...] = ()
        self._retiring: list[WorkerPool] = []  # replaced pools that finish their requests
        self._config = config
        self._new_transport = new_transport
        self._admission = Admission(config.limits)
        self._retired_work = WorkCounts()  # of the pools that have been closed
        self._counts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        """Load every model. Raises: ModelError if a model cannot be loaded; the message lists all such models."""
        self.pools = [self._new_pool(model) for model in self._config.find_models()]
        try:
            await _open(self.pools)
            self._serve(self.pools)
        except BaseException:
            await self._close()
            raise
        if reason := next((pool.loaded.no_gpu for pool in self.pools if pool.loaded.no_gpu), ""):
            structlog.get_logger().info("no GPU: the CPU translates", reason=reason)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def ready(self) -> bool:
        """True if the fleet accepts requests and each model has a ready worker."""
        return not self.draining and all(pool.ready for pool in self.pools)

    @property
    def draining(self) -> bool:
        """True if the fleet refuses new requests because it is being shut down."""
        return self._closed or self.gate.closed

    def version(self, direction: Direction) -> str:
        """Return the version of the model that translates `direction`. Raises: UnsupportedLanguage if none does."""
        return self._pool_for(direction).loaded.version

    def directory(self, direction: Direction) -> Path:
        """Return the directory of the model that translates `direction`. Raises: UnsupportedLanguage if none does."""
        return self._pool_for(direction).model

    async def drain(self, seconds: float) -> bool:
        """Refuse new requests, cancel a reload, and wait at most `seconds` until the accepted requests are answered.

        Return whether all accepted requests were answered in time. Unanswered requests fail with Unavailable.
        """
        self.gate.closed = True
        self._cancel_tasks()
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
        deadline: float | None = None,
        on_sentence: OnSentence | None = None,
    ) -> list[Translation]:
        """Return the translations of `texts`, in order, all by the same version of a model.

        If this coroutine is cancelled, the texts are not translated any further.

        Args:
            texts: source texts.
            options: direction, search options and terms.
            caller: name of the caller; the engine serves callers in turn.
            deadline: time by time.monotonic() at which the request fails.
            on_sentence: called with each finished sentence, in order; only for a request of one text.

        Raises:
            UnsupportedLanguage: no model translates this direction.
            InvalidRequest: the search options are invalid.
            Overloaded: the queue is full.
            Unavailable: the service is shutting down, or the model's workers cannot be started.
            DeadlineExceeded: the deadline or the longest request time of the settings has passed.
            CannotTranslate: the model fails on one of the texts.
            InternalError: the worker has a defect.
        """
        if not texts:
            return []
        pool = self._pool_for(options.direction)
        if self._closed or pool.unrecoverable:
            raise Unavailable
        try:
            options.search(pool.loaded.options)
        except RequestError as error:
            raise InvalidRequest(str(error)) from error
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._config.request_seconds
        deadline = latest if deadline is None else min(deadline, latest)
        if deadline <= loop.time():
            self._counts["expired"] += 1
            raise DeadlineExceeded
        request = PendingRequest(tuple(texts), options, caller, deadline, loop.create_future(), on_sentence)
        size = RequestSize(1, len(texts), sum(len(text.text) for text in texts))
        with self._admission.admitted(caller, size):
            return await self._result(pool, request, size)

    def check_room(self, caller: str, texts: Sequence[str]) -> None:
        """Raise Overloaded if the queue has no room for these texts."""
        self._admission.check(caller, RequestSize(1, len(texts), sum(map(len, texts))))

    async def reload(self) -> None:
        """Load every new or changed model and replace the old versions. If a model cannot be used, replace no model.

        A model may be removed from the folder of models if another model translates all its directions. New workers
        load and try the new version while the old workers translate. Then new requests go to the new workers, and the
        old workers end once they have finished their requests.

        Raises: ReloadRefused if a model cannot be used or the service is shutting down.
        """
        task = self._start_task(self._reload())
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise ReloadRefused("the service is shutting down") from None

    def start_reload(self) -> None:
        """Reload in the background; errors are logged."""
        self._start_task(self._reload_quietly())

    async def _reload(self) -> None:
        async with self._reloading:
            if self.draining:
                raise ReloadRefused("the service is shutting down")
            log = structlog.get_logger()
            log.info("reloading")
            try:
                new, successors = await self._load_changed()
            except ModelError as error:
                self._counts["refused_reloads"] += 1
                log.error("reload refused", problem=str(error))
                raise ReloadRefused(str(error)) from error
            self._counts["reloads"] += len(new)
            log.info("reloaded", models=[pool.name for pool in new])
            for old, successor in successors.items():
                self._retiring.append(old)
                old.retire(successor)
                self._start_task(self._close_when_idle(old))

    def stats(self) -> FleetStats:
        """Return the counters as of the workers' last heartbeats. Heartbeats arrive about once per second."""
        pools = [*self.pools, *self._retiring]
        return FleetStats(
            requests=self._admission.held.requests,
            queued=sum(pool.queued for pool in pools),
            running=sum(pool.running for pool in pools),
            finished=self._counts["finished"] + sum(pool.translated for pool in pools),
            failed=self._counts["failed"] + sum(pool.failed for pool in pools),
            cancelled=self._counts["cancelled"],
            expired=self._counts["expired"],
            refused=self._admission.refused,
            restarts=self._counts["restarts"] + sum(slot.restarts for pool in pools for slot in pool.slots),
            reloads=self._counts["reloads"],
            refused_reloads=self._counts["refused_reloads"],
            work=sum((pool.work for pool in pools), self._retired_work),
            workers=sum(len(pool.slots) for pool in self.pools),
            workers_ready=sum(len(pool.workers) for pool in self.pools),
        )

    async def fresh_stats(self) -> FleetStats:
        """Wait for a new heartbeat of every worker and return `stats`."""
        workers = [worker for pool in (*self.pools, *self._retiring) for worker in pool.workers]
        await asyncio.gather(*(worker.refresh() for worker in workers))
        return self.stats()

    async def _result(self, pool: WorkerPool, request: PendingRequest, size: RequestSize) -> list[Translation]:
        translated, accepted = 0, time.monotonic()
        self._admission.throughput.note(accepted, 0, busy=True)
        try:
            pool.submit(request)
            async with asyncio.timeout_at(request.deadline):
                translations = await request.result
            translated = size.characters
            record, started = current_record(), request.started or accepted
            record.add_phase(Phase.QUEUE, started - accepted)
            record.add_phase(Phase.TRANSLATE, time.monotonic() - started)
            return translations
        except TimeoutError:
            self._counts["expired"] += 1
            raise DeadlineExceeded from None
        except asyncio.CancelledError:
            self._counts["cancelled"] += 1
            raise
        finally:
            request.withdraw()
            busy = self._admission.held.requests > 1
            self._admission.throughput.note(time.monotonic(), translated, busy)

    async def _load_changed(self) -> tuple[list[WorkerPool], dict[WorkerPool, WorkerPool]]:
        """Load new and changed models. Return the new pools, and the successor of each pool to be retired.

        Raises: ModelError if a model cannot be used; the fleet is then unchanged.
        """
        new: list[WorkerPool] = []
        pools: list[WorkerPool] = []
        known = {pool.model: pool for pool in self.pools}
        for model in await asyncio.to_thread(self._config.find_models):
            pool = known.get(model)
            if pool is None or await asyncio.to_thread(model_version, model) != pool.loaded.version:
                new.append(pool := self._new_pool(model))
            pools.append(pool)
        try:
            await _open(new)
            successors = {old: _successor(old, pools) for old in self.pools if old not in pools}
            self._serve(pools)
        except BaseException:
            await asyncio.gather(*(pool.close() for pool in new))
            raise
        return new, successors

    def _serve(self, pools: list[WorkerPool]) -> None:
        """Send new requests to these pools. Raises: ModelError if two pools translate the same direction."""
        _refuse_overlap(pools)
        self.pools = pools
        self.models = tuple(
            ServedModel(pool.name, pool.loaded.version, pool.loaded.directions, pool.loaded.about) for pool in pools
        )

    async def _close_when_idle(self, pool: WorkerPool) -> None:
        await pool.idle.wait()
        await pool.close()
        self._retiring.remove(pool)
        self._retired_work += pool.work
        self._counts["finished"] += pool.translated
        self._counts["failed"] += pool.failed
        self._counts["restarts"] += sum(slot.restarts for slot in pool.slots)
        structlog.get_logger().info("model unloaded", model=pool.name, version=pool.loaded.version)

    async def _reload_quietly(self) -> None:
        with suppress(ReloadRefused):  # `_reload` has logged it
            await self._reload()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel_tasks(self) -> None:
        """Cancel reloads and unloads, but each once: a second cancellation would interrupt the stopping of workers.

        Retiring pools continue to translate.
        """
        for task in self._tasks:
            if not task.cancelling():
                task.cancel()

    async def _close(self) -> None:
        """Stop all workers; unanswered requests fail with Unavailable."""
        self._closed = True
        self._cancel_tasks()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_pending()
        await asyncio.gather(*(pool.close() for pool in (*self.pools, *self._retiring)))

    def _fail_pending(self) -> None:
        for request in [request for pool in (*self.pools, *self._retiring) for request in pool.requests]:
            request.fail(Unavailable("The service is shutting down"))

    def _new_pool(self, model: Path) -> WorkerPool:
        return WorkerPool(model, self._config.device, self._new_transport, self._config.timeouts, self.start_reload)

    def _pool_for(self, direction: Direction) -> WorkerPool:
        pool = next((pool for pool in self.pools if direction in pool.loaded.directions), None)
        if pool is None:
            raise UnsupportedLanguage(f"{direction} is not supported")
        return pool


def _refuse_overlap(pools: Sequence[WorkerPool]) -> None:
    """Raise ModelError if two models translate the same direction."""
    shared = (
        f"{direction}: {one.model} and {other.model}"
        for one, other in combinations(pools, 2)
        for direction in min(one.loaded.directions, other.loaded.directions, key=len)
        if direction in one.loaded.directions and direction in other.loaded.directions
    )
    if listed := list(islice(shared, MAX_LISTED)):
        raise ModelError(problems("several models translate the same direction", listed))


def _successor(old: WorkerPool, pools: Sequence[WorkerPool]) -> WorkerPool:
    """Return the pool of `pools` that replaces `old` and translates every direction of `old`.

    The successor has the same model directory if a pool has this directory; else it may be any other pool.

    Raises: ModelError if no such pool translates every direction of `old`.
    """
    same = [pool for pool in pools if pool.model == old.model]
    for pool in same or pools:
        if all(direction in pool.loaded.directions for direction in old.loaded.directions):
            return pool
    lost = [direction for direction in old.loaded.directions if not same or direction not in same[0].loaded.directions]
    listed = ", ".join(map(str, sorted(lost)[:MAX_LISTED]))
    raise ModelError(
        f"{old.model}: the new version does not translate {listed}; accepted: every direction of the old version"
        if same
        else f"{old.model} was removed, but no other model translates {listed}; accepted: another model "
        "with all directions of the removed model"
    )


async def _open(pools: Iterable[WorkerPool]) -> None:
    """Open pools concurrently. Raises: ModelError if a model cannot be loaded; the message lists all such models."""
    results = await asyncio.gather(*(pool.open() for pool in pools), return_exceptions=True)
    errors = [error for error in results if isinstance(error, BaseException)]
    for error in errors:
        if len(errors) == 1 or not isinstance(error, MTError):
            raise error
    if errors:
        raise ModelError(problems("these models cannot be served", map(str, errors)))
