"""A worker: the process that translates with one model on one device, and the texts that it has not answered.

The life of a worker: `open` starts a process, which loads the model, tries it, and sends Ready. The pool then gives
texts to the worker. If the process ends by itself, or is killed because it hangs, the pool queues its texts again, and
the worker starts another process. `unload` ends the process, and `load` starts one again.
"""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import structlog

from mt.errors import ModelError
from mt.pipeline.results import Alternative, SentenceTranslation
from service.errors import error_location
from service.freed_memory import LongList
from service.processes import LENGTH, start_child
from service.workers.messages import (
    Cancel,
    Close,
    Deliver,
    FromWorker,
    Heartbeat,
    LoadFailed,
    ModelSetup,
    OptionsMemory,
    Ping,
    Ready,
    TextAnswer,
    TextDone,
    TextFailed,
    TextProgress,
    TextSentences,
    ToWorker,
    Translate,
    WorkCounts,
    WorkerStopped,
)

TICK_SECONDS = 1.0  # time between two checks whether a worker hangs
CLOSE_SECONDS = 5.0  # time for a worker to finish its decoder step and stop, before it is killed
READ_BYTES = 65_536  # read from a process at a time; 50 sentences have about 40 KB, and take about 1 ms to read
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0  # between attempts to start; none before the first attempt


@dataclass(frozen=True)
class WorkerTimeouts:
    """Seconds after which a worker counts as hung."""

    start: float = 300  # limit while the worker loads its model
    step: float = 60  # limit of the time without a heartbeat, or without a decoder step of a thread that has work


@dataclass(kw_only=True)
class FleetCounts:
    """Counters since the start of the service. All parts of a fleet share them, and count where something happens."""

    finished: int = 0  # texts with a translation
    failed: int = 0  # texts that could not be translated
    restarts: int = 0  # restarts of workers
    reloads: int = 0  # models that were loaded by a reload
    refused_reloads: int = 0  # reloads that were refused because a model could not be used
    work: WorkCounts = field(default_factory=WorkCounts)  # of all workers, as of their last heartbeats


class WorkerDied(Exception):
    """Raised when a worker ends before it is ready, without reporting that the model cannot be loaded."""


class WorkerOwner(Protocol):
    """Object that is told what a worker does."""

    def restarted(self, ready: Ready) -> bool:
        """Return whether the worker that is ready again may be used."""

    def answered(self, worker: "Worker", answers: Sequence[TextAnswer]) -> None:
        """Process answers that `worker` has sent."""

    def ended(self, worker: "Worker", texts: Sequence[Translate], problem: str) -> None:
        """Process the unexpected end of a ready worker, which had not answered these texts."""


class Worker:
    """A worker, `in_flight`, the texts that it has not answered, and a timer that kills its process if it hangs."""

    def __init__(
        self,
        new_transport: Callable[[], "ProcessTransport"],
        timeouts: WorkerTimeouts,
        owner: WorkerOwner,
        counts: FleetCounts,
    ) -> None:
        """Create a worker without a process. `new_transport` is called for each process."""
        self.ready = False  # whether the worker can translate
        self.failures = 0  # failed attempts in a row to start again
        self.in_flight: dict[int, Translate] = {}  # texts that were given and not answered, by id
        self._parts: dict[int, tuple[list[Alternative], LongList[SentenceTranslation]]] = {}  # of TextSentences, by id
        self.cost = 0  # cost of the texts in flight
        self.isolated = False  # whether the worker translates suspected texts and nothing else
        self._new_transport = new_transport
        self._timeouts = timeouts
        self._owner = owner
        self._counts = counts
        self._wanted = True  # whether a process that ends is replaced
        self._pause = 0.0  # seconds before the next attempt to start
        self._restarting: asyncio.Task[None] | None = None
        self._load_of: Counter[str] = Counter()  # cost of the texts in flight, by caller
        self._outbox: list[ToWorker] = []
        self._transport: ProcessTransport | None = None  # of the process that runs
        self._starting: asyncio.Future[Ready]
        self._running: asyncio.Future[None]  # done once the process has ended
        self._timer: asyncio.TimerHandle

    async def open(self) -> Ready:
        """Start the first process, wait until it is ready, and return its Ready message.

        Raises:
            ModelError: the process cannot load the model.
            WorkerDied: the process ended before it was ready.
        """
        ready = await self._start()
        self.ready = True
        return ready

    async def load(self) -> None:
        """Start a process after `unload`. Return after the first attempt. If it fails, try again in the background."""
        self._wanted, self._pause = True, 0.0
        if not await self._start_again():
            self._restart()

    async def unload(self) -> None:
        """End the process, even if it is still starting, and drop its texts. `load` starts another."""
        self.retire()
        if self._restarting:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        if self._transport and self.ready:
            self._transport.send([Close()])
            await asyncio.wait([self._running], timeout=CLOSE_SECONDS)
        await self._kill()

    def retire(self) -> None:
        """Start no process any more when the present one ends."""
        self._wanted = False

    def has_room(self, caller: str, cost: int, room: int) -> bool:
        """Return whether the worker may get another text of `caller`; `cost` is the text's estimated cost.

        The costs of the caller's texts may add up to at most `room`. A caller may have one text of any cost.
        """
        return not self._load_of[caller] or self._load_of[caller] + cost <= room

    def give(self, message: Translate) -> None:
        """Add a text to `in_flight`. The next `flush` sends it."""
        self.in_flight[message.id] = message
        self.cost += message.text.cost
        self._load_of[message.caller] += message.text.cost
        self._outbox.append(message)

    def cancel(self, id: int) -> None:
        """Remove a text from `in_flight`, if it is there. The next `flush` tells the process."""
        if self.release(id):
            self._outbox.append(Cancel(id))

    def flush(self) -> None:
        """Send the messages that `give` and `cancel` have queued."""
        if self._outbox and self._transport:
            self._transport.send(self._outbox)
            self._outbox = []

    def release(self, id: int) -> Translate | None:
        """Remove a text from `in_flight` and return its message; None if `in_flight` has no such text."""
        message = self.in_flight.pop(id, None)
        self._parts.pop(id, None)
        if message is not None:
            self.cost -= message.text.cost
            self._load_of[message.caller] -= message.text.cost
            if not self._load_of[message.caller]:
                self._load_of.pop(message.caller)
        return message

    async def _start(self) -> Ready:
        """Start a process, wait until it is ready, and return its Ready message. Raises: ModelError, WorkerDied."""
        loop = asyncio.get_running_loop()
        self._starting, self._running = loop.create_future(), loop.create_future()
        self._starting.add_done_callback(lambda ready: ready.cancelled() or ready.exception())  # perhaps nobody waits
        self._work = WorkCounts()  # counters of this process, as of the last heartbeat
        self._thread_steps: tuple[int, ...] = ()  # as of the last heartbeat
        self._last_steps: tuple[int, ...] = ()  # as of the last tick
        self._ticks_without_step: list[int] = []  # by thread
        self._ticks_without_heartbeat = 0
        transport = self._new_transport()
        transport.start(self._receive)
        self._transport = transport
        self._timer = loop.call_later(TICK_SECONDS, self._tick)
        ready = await asyncio.shield(self._starting)
        if self._transport is None:
            raise WorkerDied("the worker process ended as soon as it was ready")
        return ready

    async def _start_again(self) -> bool:
        """Start a process, and return whether it can be used."""
        self._pause = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause), LONGEST_PAUSE_SECONDS)
        try:
            ready = await self._start()
        except (ModelError, WorkerDied, OSError) as error:  # OSError: the system starts no process
            self.failures += 1
            structlog.get_logger().error("worker not started", attempts=self.failures, problem=str(error))
            await self._kill()  # its end must not be taken for that of the next process
            return False
        if not self._owner.restarted(ready):
            await self._kill()
            return False
        self.ready, self.failures = True, 0
        return True

    def _restart(self) -> None:
        """Start a process in the background. Try again, after a pause, until it can be used."""

        async def restart() -> None:
            started = False
            while self._wanted and not started:
                await asyncio.sleep(self._pause)
                self._counts.restarts += 1
                started = await self._start_again()
            if started:
                structlog.get_logger().info("worker restarted", restarts=self._counts.restarts)

        if self._wanted:
            self._restarting = asyncio.get_running_loop().create_task(restart())

    async def _kill(self) -> None:
        """Kill the process, unless it has already ended, and wait until it has ended."""
        if self._transport:
            self._transport.kill()
            await asyncio.wait([self._running])

    def _receive(self, messages: Sequence[FromWorker]) -> None:
        answers: list[TextAnswer] = []
        for message in messages:
            match message:
                case TextSentences():
                    if message.id in self.in_flight:
                        alternatives, sentences = self._parts.setdefault(message.id, ([], LongList()))
                        alternatives.extend(message.alternatives)
                        sentences.extend(message.sentences)
                case TextDone():
                    alternatives, sentences = self._parts.pop(message.id, ([], LongList()))
                    alternatives.extend(message.translation.alternatives)
                    sentences.extend(message.translation.sentences)
                    whole = replace(message.translation, alternatives=tuple(alternatives), sentences=sentences)
                    answers.append(TextDone(message.id, whole))
                case TextProgress() | TextFailed():
                    answers.append(message)
                case Heartbeat():
                    self._counts.work += message.work - self._work
                    self._work, self._thread_steps = message.work, message.thread_steps
                    self._ticks_without_heartbeat = 0
                case Ready():
                    self._ticks_without_heartbeat = 0
                    self._starting.set_result(message)
                case LoadFailed():
                    self._starting.set_exception(ModelError(message.message))
                case WorkerStopped():
                    self._stop(message.problem)
        if answers:
            self._pause = 0.0
            self._owner.answered(self, answers)

    def _tick(self) -> None:
        """Kill the process if it hangs, otherwise schedule the next call in TICK_SECONDS.

        Time is measured by the number of calls, because the clock also runs while the machine is suspended.
        """
        assert self._transport is not None
        self._ticks_without_heartbeat += 1
        threads = zip(self._thread_steps, self._last_steps, self._ticks_without_step, strict=False)
        ticks_without_step = [ticks + 1 if steps == last and steps >= 0 else 0 for steps, last, ticks in threads]
        self._ticks_without_step = ticks_without_step or [0] * len(self._thread_steps)
        self._last_steps = self._thread_steps
        if self._starting.done():
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

    def _stop(self, problem: str) -> None:
        """Process the end of the process. `problem` is "" if it was told to stop."""
        self._timer.cancel()
        self._transport = None
        self._outbox = []
        self._running.set_result(None)
        if not self._starting.done():
            self._starting.set_exception(WorkerDied(f"the worker process ended before it was ready: {problem}"))
        texts = [message for id in list(self.in_flight) if (message := self.release(id))]
        was_ready, self.ready = self.ready, False
        if was_ready and problem:
            self._restart()
            self._owner.ended(self, texts, problem)
        self.isolated = False


class ProcessTransport(asyncio.BufferedProtocol):
    """A worker's process (worker_process.py), and the pair of sockets that connects it. Messages arrive in order.

    The service starts worker_process.py by name instead of importing it, because the service must not import torch.
    """

    def __init__(self, setup: ModelSetup, load: Callable[[ModelSetup], Any] | None = None) -> None:
        """Prepare the transport without starting the process. `load` loads the model, and must be picklable."""
        self._unsent = [_framed(pickle.dumps((os.getpid(), setup, load)))]  # to be sent once the connection is open
        self._process: subprocess.Popen[bytes]
        self._transport: asyncio.Transport | None = None
        self._buffer, self._received = bytearray(READ_BYTES), bytearray()  # of one read; of an incomplete message
        self._problem = ""
        self._told_to_stop = False
        self._memory = OptionsMemory()
        self._deliver: Deliver
        self._closed: asyncio.Event
        self._connection: asyncio.Task[None]

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    def start(self, deliver: Deliver) -> None:
        """Start the process. Then call `deliver` with its messages in the running event loop.

        The last message is WorkerStopped. Raises: OSError if the system starts no process.
        """
        self._process, ours = start_child("service.workers.worker_process")
        self._deliver, self._closed = deliver, asyncio.Event()
        self._connection = asyncio.get_running_loop().create_task(self._run_connection(ours))

    def send(self, messages: Sequence[ToWorker]) -> None:
        """Send messages without blocking. Messages to a process that has ended are dropped."""
        self._told_to_stop = self._told_to_stop or any(isinstance(message, Close) for message in messages)
        data = _framed(self._memory.pack(messages))
        if self._transport is None:
            self._unsent.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.writelines(self._unsent)
        self._unsent.clear()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return the buffer of the next read. Other work runs between two reads."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Call `deliver` with the messages that have arrived completely."""
        self._received += memoryview(self._buffer)[:nbytes]
        try:
            while len(self._received) >= (begin := LENGTH.size):
                end = begin + LENGTH.unpack_from(self._received)[0]
                if len(self._received) < end:
                    return
                messages = pickle.loads(self._received[begin:end])
                del self._received[:end]
                stops = [message.problem for message in messages if isinstance(message, WorkerStopped)]
                if stops:
                    self._problem = stops[0]
                else:
                    self._deliver(messages)
        except Exception as error:
            self._problem = error_location(error)
            self._process.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    async def _run_connection(self, ours: socket.socket) -> None:
        """Open the connection, and call `deliver` with WorkerStopped once the process has ended."""
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=ours)
            await self._closed.wait()
        except OSError:
            ours.close()
        self._process.kill()
        status = await asyncio.to_thread(self._process.wait)
        if self._told_to_stop:
            self._problem = ""
        elif not self._problem:
            self._problem = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        self._deliver([WorkerStopped(self._problem)])


def _framed(data: bytes) -> bytes:
    return LENGTH.pack(len(data)) + data
