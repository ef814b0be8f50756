"""Transport to model replicas that another system runs, such as Ray Serve; the fleet sees all replicas as one worker.

Each text goes to one replica. If this replica dies, the text goes to another replica, until the client disconnects or
the deadline of the text passes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service.errors import InternalError, error_location
from service.workers.messages import (
    Cancel,
    Close,
    Deliver,
    FromWorker,
    Heartbeat,
    LoadFailed,
    Ping,
    Ready,
    TextDone,
    TextFailed,
    TextProgress,
    ToWorker,
    Translate,
    WorkCounts,
    WorkerStopped,
)

RETRY_SECONDS = 0.1  # pause before a text goes to another replica


class ReplicaDied(Exception):
    """Raised when a replica ends before it has answered."""


@dataclass(frozen=True)
class ReplicaAnswer:
    """A replica's answer to a text."""

    outcome: TextDone | TextFailed | None  # None if the replica is shutting down or has another model version
    version: str  # version of the replica's model
    replica: str  # name of the replica
    work: WorkCounts  # counters of the replica since its start


class Replicas(Protocol):
    """Client of the replicas. Its methods raise ReplicaDied if the replica ends.

    Cancelling a call also cancels the work of the replica for this call.
    """

    async def describe(self, model: Path) -> Ready | LoadFailed:
        """Let a replica load the model directory `model` in its present version. Return the model's description."""

    async def translate(
        self, model: Path, version: str, message: Translate, on_progress: Callable[[TextProgress], None]
    ) -> ReplicaAnswer:
        """Translate a text with the given version of a model. Call `on_progress` if `message.report` is true."""


class ReplicasTransport:
    """Transport to all replicas of one version of a model. It ends when a replica reports another version."""

    def __init__(self, model: Path, replicas: Replicas) -> None:
        self._model = model
        self._replicas = replicas
        self._deliver: Deliver
        self._version = ""
        self._beginning: asyncio.Task[None]
        self._texts: dict[int, asyncio.Task[None]] = {}
        self._work: dict[str, WorkCounts] = {}  # by replica, including replicas that have ended
        self._ended = False

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._beginning = _detached_task(self._begin())

    def send(self, messages: Sequence[ToWorker]) -> None:
        for message in messages:
            match message:
                case Translate() if not self._ended:
                    self._texts[message.id] = _detached_task(self._translate(message))
                case Cancel():
                    for task in [self._texts.pop(id) for id in message.ids if id in self._texts]:
                        task.cancel()
                case Ping():
                    # Each replica detects hanging engine threads itself, so this heartbeat reports no threads.
                    heartbeat = Heartbeat(sum(self._work.values(), WorkCounts()), len(self._texts))
                    asyncio.get_running_loop().call_soon(self._send_back, heartbeat)
                case Close():
                    self._end(WorkerStopped(""))

    def kill(self) -> None:
        self._end(WorkerStopped("killed by the service"))

    async def _begin(self) -> None:
        while True:
            try:
                answer = await self._replicas.describe(self._model)
            except ReplicaDied:
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as error:
                self._end(WorkerStopped(error_location(error)))
                return
            else:
                self._version = answer.version if isinstance(answer, Ready) else ""
                self._send_back(answer)
                return

    async def _translate(self, message: Translate) -> None:
        outcome: TextDone | TextFailed | None = None
        while outcome is None:
            try:
                answer = await self._replicas.translate(self._model, self._version, message, self._send_back)
            except ReplicaDied:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except Exception as error:
                outcome = TextFailed(message.id, InternalError.code, error_location(error))
                break
            self._work[answer.replica] = answer.work
            if answer.version != self._version:
                self._end(WorkerStopped("a replica has another version of the model", text_suspected=False))
                return
            outcome = answer.outcome
            if outcome is None:
                await asyncio.sleep(RETRY_SECONDS)
        del self._texts[message.id]
        self._send_back(outcome)

    def _send_back(self, message: FromWorker) -> None:
        if not self._ended:
            self._deliver([message])

    def _end(self, last: WorkerStopped) -> None:
        if not self._ended:
            self._ended = True
            for task in (self._beginning, *self._texts.values()):
                if task is not asyncio.current_task():
                    task.cancel()
            asyncio.get_running_loop().call_soon(self._deliver, [last])


def _detached_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task in an empty contextvars context: Ray Serve would cancel a task of a request that has finished."""
    return asyncio.get_running_loop().create_task(work, context=Context())
