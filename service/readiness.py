"""Readiness: whether a translation would succeed."""

import asyncio
import time
from collections.abc import Callable

from service.errors import NotServing, Overloaded, ServiceError
from service.workers.fleet import Fleet

CANARY_TEXT = "Hello, world!"
CANARY_CALLER = "canary"  # a separate caller, whose text does not wait behind the texts of other callers
CANARY_INTERVAL = 15.0  # seconds
CANARY_TIMEOUT = 30.0  # seconds


class Readiness:
    """Readiness for probes, which are answered at once from the result of the last canary.

    A canary lets each loaded model translate a short text, and asks whether the database is `lost`. A probe starts a
    new canary if the last one is older than `interval` seconds.
    """

    def __init__(
        self,
        fleet: Fleet,
        lost: Callable[[], bool] = lambda: False,
        interval: float = CANARY_INTERVAL,
        timeout: float = CANARY_TIMEOUT,
    ) -> None:
        self._fleet = fleet
        self._lost = lost
        self._interval = interval
        self._timeout = timeout
        self._failure = ""
        self._started = time.monotonic()  # loading counts as the first canary, because each model translates a text
        self._canary: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise NotServing, with the reason, if a translation would fail."""
        if self._fleet.draining:
            raise NotServing("the service is shutting down")
        if not self._fleet.ready:
            raise NotServing("the models are not loaded")
        if time.monotonic() - self._started >= self._interval and (self._canary is None or self._canary.done()):
            self._started = time.monotonic()
            self._canary = asyncio.create_task(self._translate_canary())
        if self._failure:
            raise NotServing(self._failure)

    async def close(self) -> None:
        if self._canary is not None:
            self._canary.cancel()
            await asyncio.wait([self._canary])

    async def _translate_canary(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._fleet.translate_by_each(CANARY_TEXT, CANARY_CALLER)
        except Overloaded:
            pass  # a full queue is neither a failure nor a success
        except TimeoutError:
            self._failure = f"a short text was not translated within {self._timeout:g} s"
        except ServiceError as error:
            self._failure = f"a short text could not be translated ({error.code})"
        else:
            lost = await asyncio.to_thread(self._lost)
            self._failure = "the file of the database was deleted or replaced" if lost else ""
