"""Pool of the workers of one model: distributes texts among the workers and retries the texts of dead workers."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import structlog

from mt.checkpoint import check_files
from mt.errors import ModelError, MTError
from mt.pipeline.results import SentenceReport, Translation
from service.errors import CannotTranslate, InternalError, Unavailable, UnsupportedLanguage, shorten
from service.workers.messages import (
    ModelSetup,
    OnSentence,
    Ready,
    SourceText,
    TextAnswer,
    TextDone,
    TextFailed,
    TextProgress,
    Translate,
    TranslateOptions,
)
from service.workers.model_files import model_name, read_card, weights_size
from service.workers.quarantine import Quarantine
from service.workers.worker import FleetCounts, ProcessTransport, Worker, WorkerDied, WorkerTimeouts

PREFETCH = 4  # maximum number of batches of one caller's sentences that a worker has at a time
MAX_FAILED_STARTS = 3  # failed starts in a row after which a worker without a process counts as unrecoverable

TransportFactory = Callable[[ModelSetup], ProcessTransport]
"""Function that creates the transport of a worker."""


@dataclass(eq=False)
class PendingRequest:
    """An accepted request. One version of a model translates all its texts, or the request fails."""

    pool: "WorkerPool"  # that has the request; another pool may take it over
    texts: tuple[SourceText, ...]
    options: TranslateOptions
    caller: str
    result: "asyncio.Future[list[Translation]]"
    on_sentence: OnSentence | None = None  # called with each finished sentence, in order; for requests of one text
    started: float | None = None  # time.monotonic() when a worker was given the first text
    unfinished: dict[int, Translate] = field(default_factory=dict)  # by message id
    _translations: dict[int, Translation] = field(default_factory=dict)  # by message id; the ids grow with the texts
    _reported: int = 0  # end of the last reported sentence in the source text

    def begin(self, pool: "WorkerPool", ids: "count[int]") -> None:
        """Create a Translate message for each text, with new ids. `pool` is about to queue them."""
        self.pool = pool
        self.unfinished = {
            (id := next(ids)): Translate(id, text, self.options, self.caller, self.on_sentence is not None)
            for text in self.texts
        }
        self._translations = {}

    def report(self, sentences: Iterable[SentenceReport]) -> None:
        """Call `on_sentence` for the finished sentences that have not been reported before.

        After a worker has died, another worker translates its text from the beginning, and reports the first sentences
        again.
        """
        for sentence in sentences:
            if self.on_sentence and sentence.source_range[1] > self._reported:
                self._reported = sentence.source_range[1]
                self.on_sentence(sentence)

    def finish(self, id: int, translation: Translation) -> None:
        """Store the translation of the text with the message id `id`. Set `result` once all texts are translated."""
        del self.unfinished[id]
        self._translations[id] = translation
        if not self.unfinished and not self.result.done():
            self.result.set_result([self._translations[id] for id in sorted(self._translations)])

    def fail(self, error: Exception) -> None:
        """End the request with an error. Do nothing if the request has already ended."""
        if not self.result.done():
            self.result.set_exception(error)


class WorkerPool:
    """One worker per device, all with the same version of a model. Another version gets a pool of its own.

    A worker has at most PREFETCH batches of each caller at a time, and serves the callers in turn. The texts of a
    crashed worker go to quarantine: the text that caused the crash fails, and all other texts are translated.
    """

    def __init__(
        self,
        setup: ModelSetup,
        new_transport: TransportFactory,
        timeouts: WorkerTimeouts,
        counts: FleetCounts,
        on_new_version: Callable[[], object],
        on_needed: Callable[["WorkerPool"], None] = lambda pool: None,
    ) -> None:
        """Create a pool without workers.

        `on_new_version` is called if a restarted worker finds another version in the model directory. `on_needed` is
        called if a request arrives while the model is not loaded, or waits when the model has been unloaded.
        """
        self.model = setup.model
        self.name = model_name(setup.model)
        self.workers: list[Worker] = []  # one on each device
        self.requests: set[PendingRequest] = set()
        self.translated = 0  # texts
        self.loads = 0  # number of times that the model was loaded; each load starts all workers
        self.card = read_card(setup.model)
        self.size = weights_size(setup.model)  # bytes on disk
        self.memory = self.size  # bytes that the workers use; before the first load, an estimate
        self.loaded = False  # false: no worker runs, and texts wait until `load`
        self.loading = False  # true during `load`
        self.idle = asyncio.Event()  # set once the pool has been replaced and has no request left
        self._setup = setup
        self._new_transport = new_transport
        self._timeouts = timeouts
        self._counts = counts
        self._on_new_version = on_new_version
        self._on_needed = on_needed
        self.description: Ready  # set by `open`
        self._ids = count(1)
        self._request_of: dict[int, PendingRequest] = {}  # by text id
        self._queues: dict[str, OrderedDict[int, Translate]] = {}  # by caller and text id
        self._quarantine = Quarantine()
        self._successors: Sequence[WorkerPool] = ()  # pools that have replaced this one
        self._worker_freed = asyncio.Event()  # set if a worker has finished its texts or ended

    async def open(self) -> None:
        """Load the model: start one worker on each allowed device. Raises: ModelError if a worker cannot start."""
        try:
            self.description = first = await self._add_worker(self._setup.device).open()
            others = await asyncio.gather(*(self._add_worker(device).open() for device in first.devices[1:]))
        except (WorkerDied, OSError) as error:  # OSError: the system starts no process
            raise ModelError(f"{self.model}: {error}; perhaps the model does not fit into memory") from error
        self.memory = sum(ready.memory for ready in (first, *others)) or self.memory
        self.loaded = True
        self.loads += 1
        log = structlog.get_logger()
        log.info("model loaded", model=self.name, version=first.version, devices=list(first.devices))

    async def unload(self) -> None:
        """Let the workers finish the texts that they have been given, then stop them. Other texts wait until `load`."""
        self.loaded = False
        for worker in self.workers:
            worker.retire()
        while any(worker.in_flight for worker in self.workers):
            self._worker_freed.clear()
            await self._worker_freed.wait()
        await asyncio.gather(*(worker.unload() for worker in self.workers))
        if self._successors:
            self._hand_over()
        elif self.busy:
            self._on_needed(self)

    async def can_load(self) -> bool:
        """Return whether the files of the model can be read. Otherwise, the requests that wait for the model fail."""
        try:
            await asyncio.to_thread(check_files, self.model)
        except MTError as error:
            structlog.get_logger().error("worker not started", model=self.name, problem=str(error))
            for request in list(self.requests):
                request.fail(
                    Unavailable(f"The model {self.name} cannot be loaded: its operator finds the reason in the log")
                )
            return False
        return True

    async def load(self) -> None:
        """Start the workers again. If a worker does not start, return, and try again in the background."""
        self.loaded = self.loading = True
        self.loads += 1
        try:
            await asyncio.gather(*(worker.load() for worker in self.workers))
        finally:
            self.loading = False

    async def close(self) -> None:
        """Stop all workers; unfinished texts are dropped."""
        await asyncio.gather(*(worker.unload() for worker in self.workers))

    @property
    def ready_workers(self) -> list[Worker]:
        """The workers that can translate."""
        return [worker for worker in self.workers if worker.ready]

    @property
    def ready(self) -> bool:
        """True if a worker can translate."""
        return any(worker.ready for worker in self.workers)

    @property
    def available(self) -> bool:
        """True if a worker is ready or being loaded, or if the model will be loaded on demand."""
        return self.ready or self.loading or not self.loaded

    @property
    def busy(self) -> bool:
        """True if a request has not been answered yet."""
        return bool(self.requests)

    @property
    def unrecoverable(self) -> bool:
        """True if no worker is ready and MAX_FAILED_STARTS attempts in a row to start one have failed."""
        return self.loaded and all(not one.ready and one.failures >= MAX_FAILED_STARTS for one in self.workers)

    @property
    def queued(self) -> int:
        """Number of texts that have not been given to a worker."""
        return sum(map(len, self._queues.values())) + len(self._quarantine)

    @property
    def running(self) -> int:
        """Number of texts that workers have been given and have not answered."""
        return sum(len(worker.in_flight) for worker in self.workers)

    def submit(self, request: PendingRequest) -> None:
        """Queue the texts of a request. The request fails at once if one of its texts is known to crash workers.

        If this pool has been replaced, and its workers have ended, its successor gets the request.
        """
        if self._successors and not self.ready:
            self._pass_on(request)
            return
        request.begin(self, self._ids)
        self.requests.add(request)
        for message in request.unfinished.values():
            self._request_of[message.id] = request
            if not self._quarantine.suspects(message):
                self._queues.setdefault(message.caller, OrderedDict())[message.id] = message
            elif self._quarantine.blocks(message):
                request.fail(_crash_error(message))
            else:
                self._quarantine.add([message])
        if not self.loaded:
            self._on_needed(self)
        self._distribute()

    def retire(self, successors: Sequence["WorkerPool"]) -> None:
        """Finish the accepted requests, but restart no worker. The fleet sends new requests to the successors.

        If all workers of this pool end, each unfinished request goes to the first successor that translates its
        direction.
        """
        self._successors = successors
        for worker in self.workers:
            worker.retire()
        if not self.ready:
            self._hand_over()
        self._check_idle()

    def restarted(self, ready: Ready) -> bool:
        """Return whether a restarted worker has loaded this pool's version of the model, so that it can be used."""
        if ready.version != self.description.version:
            self._on_new_version()
            return False
        asyncio.get_running_loop().call_soon(self._distribute)  # after the worker has become ready
        return True

    def answered(self, worker: Worker, answers: Sequence[TextAnswer]) -> None:
        """Process a worker's answers. Ignore answers to texts that have been withdrawn."""
        for answer in answers:
            if isinstance(answer, TextProgress):
                if answer.id in worker.in_flight:
                    self._request_of[answer.id].report(answer.sentences)
            elif message := worker.release(answer.id):
                self._quarantine.clear(message)
                self._finish(answer)
        self._distribute()

    def ended(self, worker: Worker, texts: Sequence[Translate], problem: str) -> None:
        """Queue the texts of an ended worker again, in quarantine, because one of them may have crashed the worker."""
        self._worker_freed.set()
        structlog.get_logger().error(
            "worker died", model=self.name, problem=problem, texts=len(texts), isolated=worker.isolated
        )
        self._quarantine.record_crash(texts, worker.isolated)
        for message in filter(self._quarantine.blocks, texts):
            self._counts.failed += 1
            self._request_of[message.id].fail(_crash_error(message))
        if self._successors and not self.ready:
            self._hand_over()
        self._distribute()

    def _finish(self, answer: TextDone | TextFailed) -> None:
        request = self._request_of.pop(answer.id)
        if isinstance(answer, TextDone):
            self.translated += 1
            self._counts.finished += 1
            request.finish(answer.id, answer.translation)
        else:
            self._counts.failed += 1
            del request.unfinished[answer.id]
            known = answer.code == CannotTranslate.code
            request.fail((CannotTranslate if known else InternalError)(answer.message))

    def withdraw(self, request: PendingRequest) -> None:
        """Drop the unfinished texts of a request that has ended, or whose result nobody waits for."""
        self.requests.discard(request)
        withdrawn = [message for id, message in request.unfinished.items() if self._request_of.pop(id, None)]
        for message in withdrawn:
            for worker in self.workers:
                worker.cancel(message.id)
            self._dequeue(message)
            self._quarantine.discard(message.id)
        if withdrawn:
            self._distribute()
        self._check_idle()

    def _distribute(self) -> None:
        """Give queued texts to the workers that may get more texts, and send all pending messages."""
        if not self.loaded:
            for worker in self.workers:
                worker.flush()  # texts to cancel
            self._worker_freed.set()
            return
        workers = self.ready_workers
        isolated = self._isolated_worker(workers)
        if isolated and self._quarantine and not isolated.in_flight:
            isolated.isolated = True
            for message in self._quarantine.next_group():
                self._give(message, isolated)
        self._empty_queues([worker for worker in workers if worker is not isolated])
        for worker in workers:
            worker.flush()

    def _empty_queues(self, workers: Sequence[Worker]) -> None:
        """Give queued texts to the least loaded workers, until no worker may get another text of the same caller."""
        room = PREFETCH * self.description.capacity
        for caller, queue in list(self._queues.items()) if workers else []:
            while queue:
                message = next(iter(queue.values()))
                free = [worker for worker in workers if worker.has_room(caller, message.text.cost, room)]
                if not free:
                    break
                self._dequeue(message)
                self._give(message, min(free, key=lambda worker: worker.cost))

    def _give(self, message: Translate, worker: Worker) -> None:
        request = self._request_of[message.id]
        request.started = request.started or time.monotonic()
        worker.give(message)

    def _isolated_worker(self, workers: Iterable[Worker]) -> Worker | None:
        """Return the worker that translates suspected texts and nothing else, called the isolated worker.

        If no worker is isolated but suspected texts wait, return the worker to isolate: the least loaded one. In all
        other cases, return None.
        """
        for worker in workers:
            worker.isolated = worker.isolated and bool(worker.in_flight)
        trying = next((worker for worker in workers if worker.isolated), None)
        if trying or not self._quarantine:
            return trying
        return min(workers, key=lambda worker: worker.cost, default=None)

    def _dequeue(self, message: Translate) -> None:
        queue = self._queues.get(message.caller, OrderedDict())
        queue.pop(message.id, None)
        if not queue:
            self._queues.pop(message.caller, None)

    def _hand_over(self) -> None:
        for successor in self._successors:
            successor._quarantine.inherit(self._quarantine)
        for request in list(self.requests):
            self.withdraw(request)
            self._pass_on(request)

    def _pass_on(self, request: PendingRequest) -> None:
        """Submit a request to a successor. It fails if none translates its direction, which the starter model did."""
        direction = request.options.direction
        pool = next((pool for pool in self._successors if direction in pool.description.directions), None)
        if pool is None:
            request.fail(UnsupportedLanguage(f"{direction} is not supported"))
        else:
            pool.submit(request)

    def _check_idle(self) -> None:
        if self._successors and not self.requests:
            self.idle.set()

    def _add_worker(self, device: str) -> Worker:
        new_transport = partial(self._new_transport, replace(self._setup, device=device))
        worker = Worker(new_transport, self._timeouts, self, self._counts)
        self.workers.append(worker)
        return worker


def _crash_error(message: Translate) -> CannotTranslate:
    return CannotTranslate(
        f"the text that begins {shorten(message.text.text)!r} cannot be translated: it crashes the model's process"
    )
