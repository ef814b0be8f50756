"""What the service does when it is told to stop, or to look at its models."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import structlog
import uvicorn

from service.errors import ReloadRefused
from service.workers.fleet import Fleet

STOP = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Acts on them as long as it is entered, from before the models are loaded: the first process of a container is
    deaf to what it has no handler for.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._asked = False
        self._task: asyncio.Task[None] | None = None
        self._fleet: Fleet | None = None
        self._server: uvicorn.Server
        self._work: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in STOP:
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (*STOP, signal.SIGHUP):
            loop.remove_signal_handler(number)

    def serve(self, fleet: Fleet, server: uvicorn.Server) -> None:
        """The models are loaded: these are to be stopped in good order from now on."""
        self._fleet, self._server = fleet, server

    def _stop(self, number: int) -> None:
        if self._asked:  # at once: workers end with this process
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._asked = True
        if self._fleet is None:
            if self._task:
                self._task.cancel()
        else:
            self._fleet.door.closed = True
            self._spawn(self._drain(self._fleet))

    def _reload(self) -> None:
        if self._fleet is not None:
            self._spawn(self._try_to_reload(self._fleet))

    async def _drain(self, fleet: Fleet) -> None:
        log = structlog.get_logger()
        log.info("stopping", requests=fleet.door.inside)
        if not await fleet.drain(self._grace):
            log.error("not answered in time", requests=fleet.door.inside)
        self._server.should_exit = True

    async def _try_to_reload(self, fleet: Fleet) -> None:
        with suppress(ReloadRefused):  # which says so in the log
            await fleet.reload()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
