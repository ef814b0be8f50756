"""Whether a translation would work, which is more than whether a process is there."""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

from mt.engine.results import Translation
from service.errors import DeadlineExceeded, NotServing, Overloaded, ServiceError
from service.languages import Direction
from service.workers.messages import Text, Wish


class Models(Protocol):
    """service.fleet.Fleet, as far as readiness depends on it."""

    @property
    def draining(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    @property
    def directions(self) -> tuple[Direction, ...]: ...

    async def translate(
        self,
        texts: Sequence[Text],
        direction: Direction,
        wish: Wish,
        *,
        caller: str = "",
        deadline: float | None = None,
    ) -> list[Translation]: ...


CANARY_TEXT = "Hello, world!"
CANARY_CALLER = "canary"  # its turn comes before that of others' long queues
CANARY_INTERVAL = 15.0  # seconds
CANARY_PATIENCE = 30.0  # seconds, after which a model is taken to hang


class Readiness:
    """Asked by probes, and never keeps one waiting.

    A probe whose last canary is older than `interval` sends another on its way, and is answered by what the last one
    met. So nothing is translated where nobody watches.
    """

    def __init__(self, models: Models, interval: float = CANARY_INTERVAL, patience: float = CANARY_PATIENCE) -> None:
        self._models = models
        self._interval = interval
        self._patience = patience
        self._failure = ""
        self._sent = time.monotonic()  # the models have just been warmed up
        self._flight: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raises NotServing."""
        if self._models.draining:
            raise NotServing("the service is being stopped")
        if not self._models.ready:
            raise NotServing("the models are not at work")
        if time.monotonic() - self._sent >= self._interval and (self._flight is None or self._flight.done()):
            self._sent = time.monotonic()
            self._flight = asyncio.create_task(self._fly())
        if self._failure:
            raise NotServing(self._failure)

    async def close(self) -> None:
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait([self._flight])

    async def _fly(self) -> None:
        deadline = time.monotonic() + self._patience
        try:
            for direction in self._models.directions:
                await self._models.translate(
                    [Text(CANARY_TEXT)], direction, Wish(), caller=CANARY_CALLER, deadline=deadline
                )
        except Overloaded:
            pass  # others are being answered: that says nothing against it, nor for it
        except DeadlineExceeded:
            self._failure = f"a short text was not translated within {self._patience:g} s"
        except ServiceError as error:
            self._failure = f"a short text could not be translated ({error.code})"
        else:
            self._failure = ""
