"""One worker owns the model. The event loop tells it what to do, and hears of it, by messages alone.

`work` is the worker's whole life, wherever it runs; a transport starts it and carries the messages; `Worker` is the
event loop's side. A transport over a pipe would put the model into a process of its own, and nothing else would change.
"""

import asyncio
import math
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Protocol, Self

from mt.decoding.options import SearchOptions
from mt.engine.plan import Plan, Translation
from mt.engine.translator import Translator
from mt.errors import ModelError, MTError
from service.errors import CannotTranslate, InternalError, Overloaded, Unavailable
from service.languages import Direction
from service.messages import (
    Cancel,
    Close,
    Count,
    Counts,
    Done,
    Failed,
    FromWorker,
    Ready,
    Refused,
    Stopped,
    ToWorker,
    Translate,
)

Load = Callable[[], Translator]
Receive = Callable[[bool], Sequence[ToWorker]]
"""The messages that have come; waits for one if the argument is true."""
Deliver = Callable[[Sequence[FromWorker]], None]

LONGEST_RETRY = 60  # seconds
LONGEST_CLOSE = 5  # seconds for a decoder step to end; the process may exit without it


def work(load: Load, receive: Receive, deliver: Deliver) -> None:
    """Load the model and translate until told to stop. New texts join between two decoder steps."""
    try:
        translator = load()
    except MTError as error:
        deliver([Refused(str(error))])
        return
    deliver([Ready(tuple(map(Direction.of, translator.directions)), translator.options)])
    bench = Bench(translator)
    while not bench.closed:
        if answers := bench.take(receive(not translator.engine.busy)):
            deliver(answers)
        if answers := bench.step():
            deliver(answers)


class Bench:
    """The worker's state: a translator, and the texts that it works on."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.ids: dict[Plan, int] = {}  # of the messages that brought the texts
        self.finished = 0
        self.closed = False

    def take(self, messages: Sequence[ToWorker]) -> list[FromWorker]:
        """Act on messages; what can be answered at once."""
        answers: list[FromWorker] = []
        for message in messages:
            match message:
                case Translate():
                    answer = self._begin(message)
                    answers += [answer] if answer else []
                case Cancel(ids):
                    self._forget(frozenset(ids))
                case Count(id):
                    answers.append(Counts(id, self.translator.engine.steps, self.finished, len(self.ids)))
                case Close():
                    self.closed = True
        return answers

    def step(self) -> list[FromWorker]:
        """One decoder step; what it finished."""
        return [self._finish(plan, self.ids.pop(plan)) for plan in self.translator.desk.step()]

    def _begin(self, message: Translate) -> FromWorker | None:
        try:
            planner = self.translator.planner(
                source=message.direction.source, target=message.direction.target, options=message.options
            )
            plan = planner.plan(message.text)
        except MTError as error:
            return Failed(message.id, CannotTranslate.code, str(error))
        except Exception as error:  # whatever a tokenizer can raise concerns this text alone
            return Failed(message.id, InternalError.code, where(error))
        if plan.done:  # there is nothing in it to translate
            return Done(message.id, plan.translation())
        self.ids[plan] = message.id
        self.translator.desk.submit([plan])
        return None

    def _finish(self, plan: Plan, id: int) -> FromWorker:
        self.finished += 1
        try:
            return Done(id, plan.translation())
        except MTError as error:
            return Failed(id, CannotTranslate.code, str(error))
        except Exception as error:
            return Failed(id, InternalError.code, where(error))

    def _forget(self, ids: Collection[int]) -> None:
        gone = [plan for plan, id in self.ids.items() if id in ids]
        self.translator.desk.cancel(gone)
        for plan in gone:
            del self.ids[plan]


class Transport(Protocol):
    """Starts a worker somewhere and carries messages both ways, whole and in order."""

    def start(self, deliver: Deliver) -> None:
        """`deliver` is called from any thread; `Stopped` comes last, however the worker ends."""

    def send(self, messages: Sequence[ToWorker]) -> None:
        """Never blocks."""


class ThreadTransport:
    """A worker in a thread of this process."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._inbox: SimpleQueue[Sequence[ToWorker]] = SimpleQueue()

    def start(self, deliver: Deliver) -> None:
        Thread(target=self._run, args=(deliver,), name="worker", daemon=True).start()

    def send(self, messages: Sequence[ToWorker]) -> None:
        self._inbox.put(messages)

    def _run(self, deliver: Deliver) -> None:
        problem = ""
        try:
            work(self._load, self._receive, deliver)
        except BaseException as error:  # the thread ends, and those who wait must hear of it
            problem = where(error)
        deliver([Stopped(problem)])

    def _receive(self, wait: bool) -> list[ToWorker]:
        messages: list[ToWorker] = []
        while wait or not self._inbox.empty():
            messages += self._inbox.get()
            wait = False
        return messages


@dataclass(frozen=True)
class QueueLimits:
    """How much may be accepted and not yet answered."""

    requests: int
    characters: int


class Worker:
    """The event loop's side: `translate` waits without blocking it, and can be cancelled as any coroutine can."""

    def __init__(self, transport: Transport, limits: QueueLimits, report_death: Callable[[str], None]) -> None:
        """`report_death` is told the problem when the worker ends without being asked to."""
        self._transport = transport
        self._limits = limits
        self._report_death = report_death
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._requests = 0
        self._characters = 0
        self._seconds = 1.0  # from acceptance to answer, of the last request
        self._stopped: asyncio.Future[str]
        self._ready: asyncio.Future[Ready]

    async def __aenter__(self) -> Self:
        """Starts the worker and waits until the model is loaded. Raises ModelError if it cannot be."""
        loop = asyncio.get_running_loop()
        self._stopped, self._ready = loop.create_future(), loop.create_future()

        def deliver(messages: Sequence[FromWorker]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._take, messages)

        self._transport.start(deliver)
        try:
            await self._ready
        except (ModelError, RuntimeError):
            await self._stopped
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.send([Close()])
        await asyncio.wait([self._stopped], timeout=LONGEST_CLOSE)

    @property
    def alive(self) -> bool:
        return not self._stopped.done()

    @property
    def pending(self) -> int:
        """Requests accepted and not yet answered."""
        return self._requests

    @property
    def directions(self) -> tuple[Direction, ...]:
        return self._ready.result().directions

    @property
    def options(self) -> SearchOptions:
        """How the model searches unless it is told otherwise."""
        return self._ready.result().options

    async def translate(self, texts: Sequence[str], direction: Direction, options: SearchOptions) -> list[Translation]:
        """Raises Overloaded, Unavailable, CannotTranslate or InternalError. If cancelled, the texts are dropped."""
        if not texts:
            return []
        size = sum(map(len, texts))
        self._admit(size)
        begun = time.monotonic()
        ids = [next(self._ids) for _ in texts]
        self._requests += 1
        self._characters += size
        try:
            answers = [self._expect(id) for id in ids]
            self._transport.send([Translate(id, text, direction, options) for id, text in zip(ids, texts, strict=True)])
            translations = await asyncio.gather(*answers)
            self._seconds = time.monotonic() - begun
            return translations
        finally:
            self._requests -= 1
            self._characters -= size
            if left := tuple(id for id in ids if self._waiting.pop(id, None)):
                self._transport.send([Cancel(left)])

    async def counts(self) -> Counts:
        """What the worker has done so far. Raises Unavailable."""
        id = next(self._ids)
        answer = self._expect(id)
        self._transport.send([Count(id)])
        counts = await answer
        assert isinstance(counts, Counts)
        return counts

    def _admit(self, size: int) -> None:
        full = self._requests >= self._limits.requests or self._characters + size > self._limits.characters
        if self.alive and full:
            raise Overloaded(retry_after=min(max(1, math.ceil(self._seconds)), LONGEST_RETRY))

    def _expect(self, id: int) -> asyncio.Future[Any]:
        if not self.alive:
            raise Unavailable
        answer = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        return answer

    def _take(self, messages: Sequence[FromWorker]) -> None:
        """Runs in the event loop. Answers that nobody waits for any more are dropped."""
        for message in messages:
            match message:
                case Done(id, translation):
                    self._settle(id, translation)
                case Counts(id):
                    self._settle(id, message)
                case Failed(id, code, said):
                    known = code == CannotTranslate.code
                    self._settle(id, CannotTranslate(said) if known else InternalError(said))
                case Ready():
                    self._ready.set_result(message)
                case Refused(said):
                    self._ready.set_exception(ModelError(said))
                case Stopped(problem):
                    self._stop(problem)

    def _settle(self, id: int, answer: Any) -> None:
        future = self._waiting.pop(id, None)
        if future is None or future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _stop(self, problem: str) -> None:
        self._stopped.set_result(problem)
        if not self._ready.done():
            self._ready.set_exception(RuntimeError(f"the worker stopped before the model was loaded: {problem}"))
        elif problem:
            self._report_death(problem)
        for id in list(self._waiting):
            self._settle(id, Unavailable())


def where(error: BaseException) -> str:
    """What went wrong and in which lines of code; without the message, which may hold a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
