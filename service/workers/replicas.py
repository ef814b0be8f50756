"""Replicas that somebody else keeps alive (service/ray_app.py), as if all of them were one worker.

The fleet stays what it is: it accepts, refuses, is fair, and drains. A text goes to any of the replicas, and if that
one dies, to another: only its client's patience, and the deadline, end that.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service.errors import InternalError, where
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
    Translate,
    Work,
)
from service.workers.transport import Deliver

PAUSE = 0.1  # seconds before a text is given to another replica


class ReplicaDied(Exception):
    """It ended before it answered."""


@dataclass(frozen=True)
class Answer:
    """What a replica says of a text; there is no `outcome` if it is about to end, or has another version."""

    outcome: Done | Failed | None
    version: str  # of the model that it has
    replica: str
    work: Work  # of this replica so far


class Replicas(Protocol):
    """Both raise ReplicaDied, and can be cancelled."""

    async def describe(self, model: Path) -> Ready | Refused:
        """A model, as it lies in its directory now."""

    async def translate(self, model: Path, version: str, message: Translate) -> Answer: ...


class ReplicasTransport:
    """To all replicas that have one version of a model. It ends when one of them has a later one."""

    def __init__(self, model: Path, replicas: Replicas) -> None:
        self._model = model
        self._replicas = replicas
        self._deliver: Deliver
        self._version = ""
        self._beginning: asyncio.Task[None]
        self._texts: dict[int, asyncio.Task[None]] = {}
        self._work: dict[str, Work] = {}  # by replica; of those that are gone too
        self._ended = False

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._beginning = _alone(self._begin())

    def send(self, messages: Sequence[ToWorker]) -> None:
        for message in messages:
            match message:
                case Translate() if not self._ended:
                    self._texts[message.id] = _alone(self._translate(message))
                case Cancel(ids):
                    for task in [self._texts.pop(id) for id in ids if id in self._texts]:
                        task.cancel()
                case Ask():
                    asyncio.get_running_loop().call_soon(self._say, self._pulse())
                case Close():
                    self._end(Stopped(""))

    def kill(self) -> None:
        self._end(Stopped("given up"))

    async def _begin(self) -> None:
        try:
            while True:
                try:
                    found = await self._replicas.describe(self._model)
                    break
                except ReplicaDied:
                    await asyncio.sleep(PAUSE)
        except Exception as error:
            self._end(Stopped(where(error)))
            return
        self._version = found.version if isinstance(found, Ready) else ""
        self._say(found)

    async def _translate(self, message: Translate) -> None:
        outcome: Done | Failed | None = None
        while outcome is None:
            try:
                answer = await self._replicas.translate(self._model, self._version, message)
            except ReplicaDied:
                await asyncio.sleep(PAUSE)
                continue
            except Exception as error:
                outcome = Failed(message.id, InternalError.code, where(error))
                break
            self._work[answer.replica] = answer.work
            if answer.version != self._version:
                self._end(Stopped("the replicas have another version of the model", blames=False))
                return
            outcome = answer.outcome
            if outcome is None:
                await asyncio.sleep(PAUSE)
        del self._texts[message.id]
        self._say(outcome)

    def _pulse(self) -> Pulse:
        """The replicas look after their own engines: here nothing can hang."""
        return Pulse(sum(self._work.values(), Work()), len(self._texts))

    def _say(self, message: FromWorker) -> None:
        if not self._ended:
            self._deliver([message])

    def _end(self, last: Stopped) -> None:
        if not self._ended:
            self._ended = True
            for task in (self._beginning, *self._texts.values()):
                if task is not asyncio.current_task():
                    task.cancel()
            asyncio.get_running_loop().call_soon(self._deliver, [last])


def _alone(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """As a task that inherits nothing from the request in which it happens to begin: it may be another one's work, and
    Ray Serve ends what a request has begun together with the request."""
    return asyncio.get_running_loop().create_task(work, context=Context())
