"""Signal handlers: SIGTERM and SIGINT stop the service, SIGHUP reloads the models."""

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


class SignalHandlers:
    """Handles signals while the context is open. Open the context before the models are loaded.

    Without handlers, the first process of a container would ignore these signals.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._stopping = False
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
        """Drain `fleet` and stop `server` at the next stop signal; call this when the models are loaded."""
        self._fleet, self._server = fleet, server

    def _stop(self, number: int) -> None:
        if self._stopping:  # a second signal ends the process and its workers at once
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._stopping = True
        if self._fleet is None:
            if self._task:
                self._task.cancel()
        else:
            self._fleet.gate.closed = True
            self._spawn(self._drain(self._fleet))

    def _reload(self) -> None:
        if self._fleet is not None:
            self._spawn(self._try_to_reload(self._fleet))

    async def _drain(self, fleet: Fleet) -> None:
        log = structlog.get_logger()
        log.info("stopping", requests=fleet.gate.active)
        if not await fleet.drain(self._grace):
            log.error("not answered in time", requests=fleet.gate.active)
        self._server.should_exit = True

    async def _try_to_reload(self, fleet: Fleet) -> None:
        with suppress(ReloadRefused):  # the fleet has logged the reason
            await fleet.reload()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
