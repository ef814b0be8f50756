"""Two policies that form batches from requests that arrive at random times: continuous and static batching.

Both use the same decoder and one thread per core. `place` is the index of a request.
"""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Condition, Thread

from mt.engine.backends.protocol import BatchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.engine.threads import AnyEngine, ThreadedEngine

STEP_TIMEOUT = 0.001  # seconds that a step waits for an answer
STATIC_LIMITS = Limits()  # limits of a static batch; smaller batches are not faster


class Continuous:
    """Continuous batching, as in our service: a request joins the running batch, and leaves it when it is finished."""

    def __init__(self, decoder: BatchDecoder, limits: Limits, threads: int) -> None:
        self._engine: AnyEngine = Engine(decoder, limits) if threads == 1 else ThreadedEngine(decoder, limits, threads)

    @property
    def busy(self) -> bool:
        return self._engine.busy

    def submit(self, place: int, item: Request) -> None:
        self._engine.submit(Request(place, item.source, item.options, item.prefix, caller=place))

    def step(self) -> list[int]:
        return [checked(result.id, result.problem) for result in self._engine.step()]


class StaticBatches:
    """Static batching: all waiting requests are sorted by length and divided into batches, which do not change later.

    Each idle thread takes the next batch. When no batch is left, the waiting requests are divided again. A batch has no
    more rows than the engine allows, and no more requests than an equal division among the threads gives, so that no
    thread is idle while another one has a large batch. If `early` is true, a request is answered when it is finished,
    otherwise when its whole batch is finished.
    """

    def __init__(self, decoder: BatchDecoder, threads: int, early: bool) -> None:
        self._threads, self._early = threads, early
        self._waiting: list[Request] = []
        self._batches: list[list[Request]] = []
        self._changed = Condition()
        self._answers: SimpleQueue[list[int] | BaseException] = SimpleQueue()
        self._open = 0
        self._closed = False
        for _ in range(threads):
            Thread(target=self._work, args=(Engine(decoder, STATIC_LIMITS),), name="static", daemon=True).start()

    @property
    def busy(self) -> bool:
        return self._open > 0

    def submit(self, place: int, item: Request) -> None:
        self._open += 1
        with self._changed:
            self._waiting.append(Request(place, item.source, item.options, item.prefix))
            self._changed.notify()

    def step(self) -> list[int]:
        try:
            answer = self._answers.get(timeout=STEP_TIMEOUT)
        except Empty:
            return []
        if isinstance(answer, BaseException):
            raise answer
        self._open -= len(answer)
        return answer

    def close(self) -> None:
        """Let the threads end when no batch is left."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self, engine: Engine) -> None:
        try:
            while batch := self._next():
                for request in batch:
                    engine.submit(request)
                finished: list[int] = []
                while engine.busy:
                    finished += [checked(result.id, result.problem) for result in engine.step()]
                    if self._early and finished:
                        self._answers.put(finished)
                        finished = []
                if finished:
                    self._answers.put(finished)
        except BaseException as error:  # the caller's step raises it
            self._answers.put(error)

    def _next(self) -> list[Request]:
        """Wait for the next batch, and return it. Return [] if no request is left after `close`."""
        with self._changed:
            while not self._batches and not self._waiting:
                if self._closed:
                    return []
                self._changed.wait()
            if not self._batches:
                rows = self._waiting[0].options.rows
                share = -(-len(self._waiting) // self._threads)
                self._batches = cut(self._waiting, min(share, STATIC_LIMITS.rows // rows), STATIC_LIMITS.source_tokens)
                self._waiting = []
            return self._batches.pop(0)


def cut(waiting: Sequence[Request], sentences: int, source_tokens: int) -> list[list[Request]]:
    """Divide requests into batches, the longest requests first.

    A batch has at most `sentences` requests, and at most `source_tokens` source tokens, including padding.
    """
    batches: list[list[Request]] = []
    for request in sorted(waiting, key=lambda request: -len(request.source)):
        batch = batches[-1] if batches else []
        grown = len(batch) + 1
        if batch and grown <= sentences and grown * len(batch[0].source) <= source_tokens:
            batch.append(request)
        else:
            batches.append([request])
    return batches


def checked(place: int, problem: str) -> int:
    """Return `place`, the index of a sentence. Raises: RuntimeError if `problem` is not empty."""
    if problem:
        raise RuntimeError(f"the engine failed on sentence {place}: {problem}")
    return place


Policy = Continuous | StaticBatches


def policies(decoder: BatchDecoder, limits: Limits, threads: int) -> dict[str, Callable[[], Policy]]:
    """Return all policies by name, as functions that create them. The first one is the baseline.

    `limits` are those of the service.
    """
    return {
        "static batches": lambda: StaticBatches(decoder, threads, early=False),
        "static batches, early answers": lambda: StaticBatches(decoder, threads, early=True),
        "continuous": lambda: Continuous(decoder, limits, threads),
    }
