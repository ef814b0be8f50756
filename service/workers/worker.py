"""The event loop's side of a worker's life; and of a post, which is given a new worker when one dies."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import structlog

from mt.errors import ModelError
from service.workers.calls import Ticket
from service.workers.messages import (
    Ask,
    Cancel,
    Close,
    Done,
    Failed,
    FromWorker,
    Pulse,
    Ready,
    Refused,
    Stopped,
    ToWorker,
    Work,
)
from service.workers.transport import Transport

TICK = 1.0  # seconds between two looks at a worker
LONGEST_CLOSE = 5.0  # seconds for a decoder step to end
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before the next attempt to start a worker; the first one comes at once


@dataclass(frozen=True)
class Patience:
    """Seconds after which a worker hangs: one that loads its model, and one that has work to do and takes no step."""

    start: float = 300
    step: float = 60


class WorkerDied(Exception):
    """A worker that ended before it was ready, and could not say that its model is to blame."""


class Owner(Protocol):
    """Whom a worker works for."""

    def answered(self, worker: "Worker", answers: Sequence[Done | Failed]) -> None: ...

    def ended(self, worker: "Worker", last: Stopped) -> None:
        """Called once, at once."""


class Worker:
    """One worker, from its start to its end."""

    def __init__(self, transport: Transport, patience: Patience, owner: Owner) -> None:
        loop = asyncio.get_running_loop()
        self.flight: dict[int, Ticket] = {}  # what it has been given and not answered
        self.held: Counter[str] = Counter()  # the cost of that, by caller
        self.load = 0  # and in all
        self.on_trial = False  # whether what it holds is suspected to have killed another one
        self.answers = 0
        self.work = Work()  # as it said last
        self.working = 0
        self._transport = transport
        self._patience = patience
        self._owner = owner
        self._ids = count(1)
        self._outbox: list[ToWorker] = []
        self._ready: asyncio.Future[Ready] = loop.create_future()
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())  # perhaps nobody waits
        self._gone: asyncio.Future[None] = loop.create_future()
        self._pulse: asyncio.Future[None] = loop.create_future()  # the next one
        self._marks: tuple[int, ...] = ()
        self._before: tuple[int, ...] = ()  # the marks of the last tick
        self._still: tuple[int, ...] = ()  # ticks for which each has been the same
        self._silent = 0  # ticks
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> Ready:
        """Waits until it can translate. Raises ModelError or WorkerDied."""
        self._transport.start(self._take)
        self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)
        return await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Tell it to stop; what it works on is dropped."""
        self._transport.send([Close()])
        await asyncio.wait([self._gone], timeout=LONGEST_CLOSE)
        await self.kill()

    async def kill(self) -> None:
        """Does nothing if it has ended."""
        if not self._gone.done():
            self._transport.kill()
            await asyncio.wait([self._gone])

    async def ask(self) -> None:
        """Wait for its figures, or its end."""
        if not self._gone.done():
            self._transport.send([Ask()])
            await asyncio.wait([self._pulse, self._gone], return_when=asyncio.FIRST_COMPLETED)

    def give(self, ticket: Ticket) -> None:
        """Work to do, from the next `flush` on."""
        ticket.holder, ticket.id = self, next(self._ids)
        ticket.call.begun = ticket.call.begun or time.monotonic()
        self.flight[ticket.id] = ticket
        self.held[ticket.caller] += ticket.cost
        self.load += ticket.cost
        self._outbox.append(ticket.message())

    def take_back(self, ticket: Ticket) -> None:
        """Nobody waits for it any more."""
        self.release(ticket.id)
        self._outbox.append(Cancel((ticket.id,)))

    def flush(self) -> None:
        if self._outbox:
            self._transport.send(self._outbox)
            self._outbox = []

    def release(self, id: int) -> Ticket | None:
        """The ticket of this id, which is no longer in work; none if it was taken back."""
        ticket = self.flight.pop(id, None)
        if ticket is not None:
            ticket.holder = None
            self.load -= ticket.cost
            self.held[ticket.caller] -= ticket.cost
            if not self.held[ticket.caller]:
                del self.held[ticket.caller]
        return ticket

    def _take(self, messages: Sequence[FromWorker]) -> None:
        answers: list[Done | Failed] = []
        for message in messages:
            match message:
                case Done() | Failed():
                    answers.append(message)
                case Pulse():
                    self.work, self.working = message.work, message.working
                    self._marks, self._silent = message.marks, 0
                    self._pulse.set_result(None)
                    self._pulse = asyncio.get_running_loop().create_future()
                case Ready():
                    self._silent = 0
                    self._ready.set_result(message)
                case Refused(said):
                    self._ready.set_exception(ModelError(said))
                case Stopped():
                    self._stop(message)
        self.answers += len(answers)
        if answers:
            self._owner.answered(self, answers)

    def _tick(self) -> None:
        """Ticks are counted, and not seconds: a machine that slept has not hung."""
        self._silent += 1
        pairs = zip(self._marks, self._before, self._still, strict=False)
        same = [ticks + 1 if mark == before and mark >= 0 else 0 for mark, before, ticks in pairs]
        self._still = tuple(same) if same else (0,) * len(self._marks)
        self._before = self._marks
        if self._ready.done():
            self._transport.send([Ask()])
            hangs = max(self._silent, *self._still, 0) * TICK > self._patience.step
        else:
            hangs = self._silent * TICK > self._patience.start
        if hangs:
            structlog.get_logger().error("worker hangs", silent=self._silent, still=self._still)
            self._transport.kill()
        else:
            self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)

    def _stop(self, last: Stopped) -> None:
        if self._timer:
            self._timer.cancel()
        self._gone.set_result(None)
        if not self._ready.done():
            self._ready.set_exception(WorkerDied(f"the worker ended before it was ready: {last.problem}"))
        self._owner.ended(self, last)


class Post:
    """A place for one worker, which is filled again whenever it falls empty, until it is closed."""

    def __init__(self, hire: Callable[[], Worker], manned: Callable[[Ready], bool]) -> None:
        """`manned` is told of each worker after the first that is ready; whether it may stay."""
        self.worker: Worker | None = None  # one that is ready
        self.restarts = 0
        self.failures = 0  # of attempts to start one, in a row
        self.past = Work()  # of workers that have ended
        self._hire = hire
        self._manned = manned
        self._newcomer: Worker | None = None
        self._closed = False
        self._filling: asyncio.Task[None] | None = None
        self._pause = 0.0

    @property
    def work(self) -> Work:
        """Of all workers that it has seen."""
        return self.past + (self.worker.work if self.worker else Work())

    async def open(self) -> Ready:
        """With its first worker. Raises ModelError or WorkerDied."""
        self._newcomer = self._hire()
        ready = await self._newcomer.start()
        self.worker, self._newcomer = self._newcomer, None
        return ready

    def vacate(self, worker: Worker, again: bool) -> bool:
        """A worker has ended; whether it was the one at work. Hires another if asked to."""
        if worker is not self.worker:
            return False
        self.past += worker.work
        self.worker = None
        if worker.answers:
            self._pause = 0.0
        if again and not self._closed:
            self._filling = asyncio.get_running_loop().create_task(self._fill())
        return True

    async def close(self) -> None:
        """Ends its worker, whatever that does."""
        self._closed = True
        if self._filling:
            self._filling.cancel()
            await asyncio.wait([self._filling])
        if self._newcomer:
            await self._newcomer.kill()
        if self.worker:
            await self.worker.close()

    async def _fill(self) -> None:
        log = structlog.get_logger()
        while True:
            await asyncio.sleep(self._pause)
            self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
            self.restarts += 1
            self._newcomer = worker = self._hire()
            try:
                ready = await worker.start()
            except (ModelError, WorkerDied) as error:
                self.failures += 1
                log.error("worker not started", attempts=self.failures, problem=str(error))
                continue
            if not self._manned(ready):
                await worker.close()
                continue
            self.worker, self._newcomer, self.failures = worker, None, 0
            log.info("worker started again", restarts=self.restarts)
            return
