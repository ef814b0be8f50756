"""Supervision of one worker on one device: the worker is restarted whenever it ends."""

import asyncio
from collections.abc import Callable

import structlog

from mt.errors import ModelError
from service.workers.messages import Ready
from service.workers.stats import FleetCounts
from service.workers.worker import Worker, WorkerDied

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0  # between attempts; no pause before the first attempt


class WorkerSlot:
    """Place of one worker at a time. Until the slot is closed, a new worker replaces each worker that ends."""

    def __init__(
        self, new_worker: Callable[[], Worker], on_ready: Callable[[Ready], bool], counts: FleetCounts
    ) -> None:
        """Create a slot without a worker.

        `new_worker` creates a worker. `on_ready` is called with the Ready message of each restarted worker, and returns
        whether the slot keeps this worker.
        """
        self.worker: Worker | None = None  # the ready worker
        self.failures = 0  # failed attempts in a row to start a worker
        self._counts = counts
        self._new_worker = new_worker
        self._on_ready = on_ready
        self._starting: Worker | None = None
        self._closed = False
        self._restarting: asyncio.Task[None] | None = None
        self._pause = 0.0
        self._attempted = asyncio.Event()  # set after the first attempt of `load`

    async def open(self) -> Ready:
        """Start the first worker and return its Ready message.

        Raises:
            ModelError: the worker cannot load the model.
            WorkerDied: the worker ended before it was ready.
        """
        self._starting = self._new_worker()
        ready = await self._starting.start()
        self.worker, self._starting = self._starting, None
        return ready

    def worker_ended(self, worker: Worker, restart: bool) -> bool:
        """Remove an ended worker from this slot. Do nothing and return False if it was not the slot's ready worker.

        Then start a new worker in the background if `restart` is true and the slot is not closed.
        """
        if worker is not self.worker:
            return False
        self.worker = None
        if worker.answers:
            self._pause = 0.0
        if restart and not self._closed:
            self._restarting = asyncio.get_running_loop().create_task(self._restart())
        return True

    async def unload(self) -> None:
        """Stop the worker, even if it is still starting. `load` starts a new one."""
        if self._restarting:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        if self._starting:
            await self._starting.kill()
            self._starting = None
        if self.worker:
            await self.worker.close()

    async def load(self) -> None:
        """Start a worker after `unload`. Return after the first attempt. If it fails, try again in the background."""
        self._pause = 0.0
        self._attempted = asyncio.Event()
        self._restarting = asyncio.get_running_loop().create_task(self._restart(count=0))
        await self._attempted.wait()

    async def close(self) -> None:
        """Stop the worker, even if it is still starting, and do not restart it."""
        self._closed = True
        await self.unload()

    async def _restart(self, count: int = 1) -> None:
        log = structlog.get_logger()
        while True:
            await asyncio.sleep(self._pause)
            self._pause = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause), LONGEST_PAUSE_SECONDS)
            self._counts.restarts += count
            self._starting = worker = self._new_worker()
            try:
                ready = await worker.start()
            except (ModelError, WorkerDied) as error:
                self.failures += 1
                log.error("worker not started", attempts=self.failures, problem=str(error))
                self._attempted.set()
                continue
            if not self._on_ready(ready):
                await worker.close()
                self._attempted.set()
                continue
            self.worker, self._starting, self.failures = worker, None, 0
            self._attempted.set()
            if count:
                log.info("worker restarted", restarts=self._counts.restarts)
            return
