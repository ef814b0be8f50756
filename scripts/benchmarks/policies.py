"""Two ways to batch requests that arrive at random, over one decoder, one thread a core in both."""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Condition, Thread

from mt.engine.batches import Batch, Decoder
from mt.engine.engine import Engine
from mt.engine.messages import Request
from mt.engine.scheduler import Limits
from mt.engine.threads import AnyEngine, EngineThreads

MOMENT = 0.001  # seconds that a step waits for an answer
LARGE = Limits()  # of a static batch: smaller ones are served no better


class Continuous:
    """As our service does it: a sentence joins those in flight, and leaves when it is finished."""

    def __init__(self, decoder: Decoder[Batch], limits: Limits, threads: int) -> None:
        self._engine: AnyEngine = Engine(decoder, limits) if threads == 1 else EngineThreads(decoder, limits, threads)

    @property
    def busy(self) -> bool:
        return self._engine.busy

    def submit(self, place: int, item: Request) -> None:
        self._engine.submit(Request(place, item.source, item.options, item.prefix, caller=place))

    def step(self) -> list[int]:
        return [checked(result.id, result.problem) for result in self._engine.step()]


class StaticBatches:
    """Collect what waits, sort it by length, cut it into batches, and run each to its end; nothing joins.

    Each thread takes the next batch when it is free; when none is left, what waits by then is collected. A batch has
    at most the rows that the engine may have, and no more than an equal share of what was collected, so that no
    thread stands idle beside a full one. With `early`, a sentence is answered when it is finished; else with its batch,
    as a call that translates a batch does.
    """

    def __init__(self, decoder: Decoder[Batch], threads: int, early: bool) -> None:
        self._threads, self._early = threads, early
        self._waiting: list[Request] = []
        self._batches: list[list[Request]] = []
        self._changed = Condition()
        self._answers: SimpleQueue[list[int] | BaseException] = SimpleQueue()
        self._open = 0
        self._closed = False
        for _ in range(threads):
            Thread(target=self._work, args=(Engine(decoder, LARGE),), name="static", daemon=True).start()

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
            answer = self._answers.get(timeout=MOMENT)
        except Empty:
            return []
        if isinstance(answer, BaseException):
            raise answer
        self._open -= len(answer)
        return answer

    def close(self) -> None:
        """The threads end when they have nothing left to do."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self, engine: Engine) -> None:
        """A thread's life."""
        try:
            while batch := self._next():
                for request in batch:
                    engine.submit(request)
                found: list[int] = []
                while engine.busy:
                    found += [checked(result.id, result.problem) for result in engine.step()]
                    if self._early and found:
                        self._answers.put(found)
                        found = []
                if found:
                    self._answers.put(found)
        except BaseException as error:  # the caller's step raises it
            self._answers.put(error)

    def _next(self) -> list[Request]:
        """The next batch, once there is one; empty at the end."""
        with self._changed:
            while not self._batches and not self._waiting:
                if self._closed:
                    return []
                self._changed.wait()
            if not self._batches:
                rows = self._waiting[0].options.rows
                share = -(-len(self._waiting) // self._threads)
                self._batches = cut(self._waiting, min(share, LARGE.rows // rows), LARGE.source_tokens)
                self._waiting = []
            return self._batches.pop(0)


def cut(waiting: Sequence[Request], sentences: int, source_tokens: int) -> list[list[Request]]:
    """Batches of like length, of at most so many sentences and padded source tokens; longest first."""
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
    """The place. A sentence that fails is no sentence served: RuntimeError."""
    if problem:
        raise RuntimeError(f"the engine failed on sentence {place}: {problem}")
    return place


Policy = Continuous | StaticBatches


def policies(decoder: Decoder[Batch], limits: Limits, threads: int) -> dict[str, Callable[[], Policy]]:
    """By name, the one to compare with first; the limits are those of a service."""
    return {
        "static batches": lambda: StaticBatches(decoder, threads, early=False),
        "static batches, early answers": lambda: StaticBatches(decoder, threads, early=True),
        "continuous": lambda: Continuous(decoder, limits, threads),
    }
