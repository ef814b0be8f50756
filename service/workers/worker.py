"""The service's view of one worker: its texts, its counters, and whether it hangs."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from mt.errors import ModelError
from service.workers.messages import (
    Cancel,
    Close,
    FromWorker,
    Heartbeat,
    LoadFailed,
    Ping,
    Ready,
    TextAnswer,
    TextDone,
    TextFailed,
    TextProgress,
    ToWorker,
    Translate,
    WorkCounts,
    WorkerStopped,
)
from service.workers.stats import FleetCounts
from service.workers.transport import Transport

TICK_SECONDS = 1.0  # time between two checks whether a worker hangs
CLOSE_SECONDS = 5.0  # time for a worker to finish its decoder step and stop, before it is killed


@dataclass(frozen=True)
class WorkerTimeouts:
    """Seconds after which a worker counts as hung."""

    start: float = 300  # limit while the worker loads its model
    step: float = 60  # limit of the time without a heartbeat, or without a decoder step of a thread that has work


class WorkerDied(Exception):
    """Raised when a worker ends before it is ready, without reporting that the model cannot be loaded."""


class WorkerOwner(Protocol):
    """Object that receives the answers of workers, and is told when a worker ends."""

    def answered(self, worker: "Worker", answers: Sequence[TextAnswer]) -> None:
        """Process answers that `worker` has sent."""

    def ended(self, worker: "Worker", last: WorkerStopped) -> None:
        """Process the end of `worker`. This is called once, with the last message of the worker."""


class Worker:
    """One worker: `in_flight`, the texts that it has not answered, and a timer that kills the worker if it hangs."""

    def __init__(self, transport: Transport, timeouts: WorkerTimeouts, owner: WorkerOwner, counts: FleetCounts) -> None:
        loop = asyncio.get_running_loop()
        self.in_flight: dict[int, Translate] = {}  # texts that were given and not answered, by id
        self.load = 0  # cost of the texts in flight
        self.isolated = False  # whether the worker translates suspected texts and nothing else
        self.answers = 0  # answers received so far
        self.working = 0  # number of unfinished texts, as of the last heartbeat
        self._transport = transport
        self._timeouts = timeouts
        self._owner = owner
        self._counts = counts
        self._work = WorkCounts()  # counters of this worker, as of the last heartbeat
        self._load_of: Counter[str] = Counter()  # cost of the texts in flight, by caller
        self._outbox: list[ToWorker] = []
        self._ready: asyncio.Future[Ready] = loop.create_future()
        self._ready.add_done_callback(
            lambda ready: ready.cancelled() or ready.exception()
        )  # avoid a warning if nobody waits
        self._ended: asyncio.Future[None] = loop.create_future()
        self._next_heartbeat: asyncio.Future[None] = loop.create_future()
        self._thread_steps: tuple[int, ...] = ()  # as of the last heartbeat
        self._last_steps: tuple[int, ...] = ()  # as of the last tick
        self._ticks_without_step: list[int] = []  # by thread
        self._ticks_without_heartbeat = 0
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> Ready:
        """Start the worker, wait until it is ready, and return its Ready message.

        Raises:
            ModelError: the worker cannot load the model.
            WorkerDied: the worker ended before it was ready.
        """
        self._transport.start(self._receive)
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        return await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Stop the worker; unfinished texts are dropped."""
        self._transport.send([Close()])
        await asyncio.wait([self._ended], timeout=CLOSE_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        """Kill the worker, unless it has already ended, and wait until it has ended."""
        if not self._ended.done():
            self._transport.kill()
            await asyncio.wait([self._ended])

    async def refresh(self) -> None:
        """Request a heartbeat. Wait until it arrives or the worker ends, but at most TICK_SECONDS."""
        if not self._ended.done():
            self._transport.send([Ping()])
            answer = [self._next_heartbeat, self._ended]
            await asyncio.wait(answer, timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    def has_room(self, caller: str, cost: int, room: int) -> bool:
        """Return whether the worker may get another text of `caller`; `cost` is the text's estimated cost.

        The costs of the caller's texts may add up to at most `room`. A caller may have one text of any cost.
        """
        return not self._load_of[caller] or self._load_of[caller] + cost <= room

    def give(self, message: Translate) -> None:
        """Add a text to `in_flight`. The next `flush` sends it."""
        self.in_flight[message.id] = message
        self.load += message.text.cost
        self._load_of[message.caller] += message.text.cost
        self._outbox.append(message)

    def cancel(self, id: int) -> None:
        """Remove a text from `in_flight`, if it is there. The next `flush` tells the worker."""
        if self.release(id):
            self._outbox.append(Cancel((id,)))

    def flush(self) -> None:
        """Send the messages that `give` and `cancel` have queued."""
        if self._outbox:
            self._transport.send(self._outbox)
            self._outbox = []

    def release(self, id: int) -> Translate | None:
        """Remove a text from `in_flight` and return its message; None if `in_flight` has no such text."""
        message = self.in_flight.pop(id, None)
        if message is not None:
            self.load -= message.text.cost
            self._load_of[message.caller] -= message.text.cost
            if not self._load_of[message.caller]:
                del self._load_of[message.caller]
        return message

    def release_all(self) -> list[Translate]:
        """Remove all texts from `in_flight` and return their messages."""
        return [message for id in list(self.in_flight) if (message := self.release(id))]

    def _receive(self, messages: Sequence[FromWorker]) -> None:
        answers: list[TextAnswer] = []
        for message in messages:
            match message:
                case TextProgress() | TextDone() | TextFailed():
                    answers.append(message)
                case Heartbeat():
                    self._counts.work += message.work - self._work
                    self._work, self.working = message.work, message.texts
                    self._thread_steps, self._ticks_without_heartbeat = message.thread_steps, 0
                    self._next_heartbeat.set_result(None)
                    self._next_heartbeat = asyncio.get_running_loop().create_future()
                case Ready():
                    self._ticks_without_heartbeat = 0
                    self._ready.set_result(message)
                case LoadFailed():
                    self._ready.set_exception(ModelError(message.message))
                case WorkerStopped():
                    self._stop(message)
        self.answers += len(answers)
        if answers:
            self._owner.answered(self, answers)

    def _tick(self) -> None:
        """Kill the worker if it hangs, otherwise schedule the next call in TICK_SECONDS.

        Time is measured by the number of calls, because the clock also runs while the machine is suspended.
        """
        self._ticks_without_heartbeat += 1
        threads = zip(self._thread_steps, self._last_steps, self._ticks_without_step, strict=False)
        ticks_without_step = [ticks + 1 if steps == last and steps >= 0 else 0 for steps, last, ticks in threads]
        self._ticks_without_step = ticks_without_step or [0] * len(self._thread_steps)
        self._last_steps = self._thread_steps
        if self._ready.done():
            self._transport.send([Ping()])
            ticks = max(self._ticks_without_heartbeat, *self._ticks_without_step, 0)
            hangs = ticks * TICK_SECONDS > self._timeouts.step
        else:
            hangs = self._ticks_without_heartbeat * TICK_SECONDS > self._timeouts.start
        if hangs:
            structlog.get_logger().error(
                "worker hangs",
                seconds_without_heartbeat=self._ticks_without_heartbeat * TICK_SECONDS,
                seconds_without_step=[ticks * TICK_SECONDS for ticks in self._ticks_without_step],
            )
            self._transport.kill()
        else:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _stop(self, last: WorkerStopped) -> None:
        if self._timer:
            self._timer.cancel()
        self._ended.set_result(None)
        if not self._ready.done():
            self._ready.set_exception(WorkerDied(f"the worker process ended before it was ready: {last.problem}"))
        self._owner.ended(self, last)
