"""Several engines that share one decoder, each in its own thread. The kernels must release the interpreter lock."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from weakref import finalize

from mt.engine.backends.protocol import BatchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.engine.scheduler import Limits

STEP_TIMEOUT = 0.001
"""Maximum time in seconds that `ThreadedEngine.step` waits for a result. New requests wait until it returns."""

RESULT_INTERVAL = 0.002
"""Minimum time in seconds between two deliveries of results by a busy engine thread.

Each delivery wakes the thread that waits for results, which then takes a processor core from the engine threads.
"""

Command = Request | frozenset[int] | None
"""Message to an engine thread: a request to submit, ids to cancel, or None to stop."""


@dataclass
class EngineThread:
    """Engine that runs in its own thread. `load` is the estimated work of the unfinished requests."""

    engine: Engine
    commands: SimpleQueue[Command] = field(default_factory=SimpleQueue)
    load: int = 0

    def run(self, deliveries: SimpleQueue[list[Result] | BaseException]) -> None:
        """Execute commands and put their results into `deliveries`. Return at the command None.

        If an exception is raised, put it into `deliveries` and return.
        """
        results: list[Result] = []
        due = 0.0
        try:
            while True:
                while not self.engine.busy or not self.commands.empty():
                    if results and not self.engine.busy:
                        deliveries.put(results)
                        results = []
                    command = self.commands.get()
                    if command is None:
                        return
                    if isinstance(command, frozenset):
                        self.engine.cancel(command)
                    else:
                        self.engine.submit(command)
                results += self.engine.step()
                if results and (now := monotonic()) >= due:
                    deliveries.put(results)
                    results, due = [], now + RESULT_INTERVAL
        except BaseException as error:
            deliveries.put(error)


class ThreadedEngine:
    """Several engine threads with the interface of one `Engine`. Each request goes to the thread with the lowest load.

    Only one thread may use a ThreadedEngine. The engine threads end when the ThreadedEngine is garbage-collected.
    """

    def __init__(self, decoder: BatchDecoder, limits: Limits, threads: int) -> None:
        self._deliveries: SimpleQueue[list[Result] | BaseException] = SimpleQueue()
        self._threads = [EngineThread(Engine(decoder, limits)) for _ in range(threads)]
        self._waiting: dict[int, tuple[EngineThread, int]] = {}  # thread and load of each unfinished request
        self._error: BaseException | None = None  # exception that ended a thread
        for thread in self._threads:
            Thread(target=thread.run, args=(self._deliveries,), name="engine", daemon=True).start()
        finalize(self, _stop, self._threads)

    @property
    def decoder(self) -> BatchDecoder:
        return self._threads[0].engine.decoder

    @property
    def busy(self) -> bool:
        """True if a request waits or runs."""
        return bool(self._waiting)

    @property
    def steps(self) -> int:
        """Decoder steps of all threads so far."""
        return sum(thread.engine.steps for thread in self._threads)

    @property
    def rows(self) -> int:
        """Sum of the decoder rows of all steps so far."""
        return sum(thread.engine.rows for thread in self._threads)

    @property
    def max_rows(self) -> int:
        """Maximum number of decoder rows of the bulk batches of all threads together."""
        return sum(thread.engine.max_rows for thread in self._threads)

    @property
    def progress(self) -> tuple[int, ...]:
        """Number of decoder steps of each engine thread, or -1 for an idle thread.

        A number that does not change shows a hang.
        """
        return tuple(thread.engine.steps if thread.load else -1 for thread in self._threads)

    def submit(self, request: Request) -> None:
        """Queue a request. A later `step` returns its result."""
        thread = min(self._threads, key=lambda candidate: candidate.load)
        load = len(request.source) * request.options.rows
        self._waiting[request.id] = (thread, load)
        thread.load += load
        thread.commands.put(request)

    def cancel(self, request_ids: Collection[int]) -> None:
        """Drop requests, waiting or running. Dropped requests get no result."""
        cancelled: dict[int, list[int]] = {}
        for request_id in request_ids:
            if request_id in self._waiting:
                thread = self._forget(request_id)
                cancelled.setdefault(self._threads.index(thread), []).append(request_id)
        for index, ids in cancelled.items():
            self._threads[index].commands.put(frozenset(ids))

    def step(self) -> list[Result]:
        """Return the results since the last call. If there are none, wait for at most `STEP_TIMEOUT` seconds.

        If an exception has ended an engine thread, this call and every later call raises this exception.
        """
        results: list[Result] = []
        try:
            delivery = self._deliveries.get(timeout=STEP_TIMEOUT) if self._error is None else self._error
            while True:
                if isinstance(delivery, BaseException):
                    self._error = delivery
                    raise delivery
                results += delivery
                delivery = self._deliveries.get_nowait()
        except Empty:
            pass
        results = [result for result in results if result.id in self._waiting]
        for result in results:
            self._forget(result.id)
        return results

    def drain(self) -> Iterator[Result]:
        """Call `step` and yield results until no request is left."""
        while self.busy:
            yield from self.step()

    def _forget(self, request_id: int) -> EngineThread:
        thread, load = self._waiting.pop(request_id)
        thread.load -= load
        return thread


AnyEngine = Engine | ThreadedEngine


def _stop(threads: Sequence[EngineThread]) -> None:
    for thread in threads:
        thread.commands.put(None)
