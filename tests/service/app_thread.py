"""An application on a free port, whose event loop runs in a thread of this process."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from threading import Event, Thread
from typing import Any, Self, TypeVar

import uvicorn
from starlette.types import ASGIApp

T = TypeVar("T")
PATIENCE = 300  # seconds until a test that waits gives up


class AppThread:
    """`make` is called in the event loop. `options` are those of uvicorn."""

    def __init__(self, make: Callable[[], ASGIApp], **options: Any) -> None:
        self._options = {"port": 0, "log_config": None, **options}
        self._started = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve(make)), daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE)
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    async def _serve(self, make: Callable[[], ASGIApp]) -> None:
        self.loop = asyncio.get_running_loop()
        self._server = uvicorn.Server(uvicorn.Config(make(), **self._options))
        running = asyncio.ensure_future(self._server.serve())
        while not self._server.started and not running.done():
            await asyncio.sleep(0.01)
        self._started.set()
        await running

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, which is evaluated in the calling thread. Fails after PATIENCE."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "what the test waits for does not happen"
            time.sleep(0.005)

    def do(self, action: Callable[[], T]) -> T:
        async def doing() -> T:
            return action()

        return self.wait(doing())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
