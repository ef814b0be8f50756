"""Signal handlers: SIGTERM and SIGINT stop the service, SIGHUP reloads the models."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import structlog

from service.workers.fleet import Fleet

STOP = (signal.SIGINT, signal.SIGTERM)
LAST_ANSWERS_SECONDS = 12  # time after the grace period to send the last answers and to stop the workers


class SignalHandlers:
    """Context in which signals are handled. Open the context before the models are loaded.

    Without handlers, the first process of a container would ignore these signals.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._fleet: Fleet | None = None
        self._stop_server: Callable[[], Awaitable[None]]
        self._draining: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in STOP:
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Remove the handlers. Suppress the CancelledError if a signal has interrupted the start."""
        loop = asyncio.get_running_loop()
        for number in (*STOP, signal.SIGHUP):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return self._stopping and self._fleet is None and isinstance(error, asyncio.CancelledError)

    def serve(self, fleet: Fleet, stop_server: Callable[[], Awaitable[None]]) -> None:
        """Let later stop signals drain `fleet` and call `stop_server`. Call this once the models are loaded."""
        self._fleet, self._stop_server = fleet, stop_server

    def _stop(self, number: int) -> None:
        if self._stopping:  # a second signal ends the process and its workers at once
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._stopping = True
        # If the shutdown hangs, a thread that does not need the interpreter lock ends the process with status 1.
        faulthandler.dump_traceback_later(self._grace + LAST_ANSWERS_SECONDS, exit=True)
        if self._fleet is None:
            if self._task:
                self._task.cancel()
        else:
            self._fleet.gate.closed = True
            self._draining = asyncio.get_running_loop().create_task(self._drain(self._fleet))

    def _reload(self) -> None:
        if self._fleet is not None:
            self._fleet.start_reload()

    async def _drain(self, fleet: Fleet) -> None:
        log = structlog.get_logger()
        log.info("stopping", requests=fleet.gate.active)
        if not await fleet.drain(self._grace):
            log.error("not answered in time", requests=fleet.gate.active)
        await self._stop_server()
