"""Order in which requests start: one in each iteration of the event loop, and addresses take turns.

The work of a request up to its first wait (routing, validation, admission) takes about a millisecond. Without turns, a
thousand requests of one address that arrive together do this work in one iteration. During this iteration, no other
request, no connection and no probe is served.

For a large body, this work takes up to 50 milliseconds. After this work, no large request starts for REST times as long
as the work took, so that small requests and probes are served in between.
"""

import asyncio
from itertools import count

from mt.engine.turns import TurnQueue

LARGE_BYTES = 8192  # a longer body belongs to a large request
REST = 2.0


class RequestTurns:
    """Two queues of requests that wait to start: one for small requests, and one for large requests."""

    def __init__(self) -> None:
        self._small: TurnQueue[int, asyncio.Future[None]] = TurnQueue()
        self._large: TurnQueue[int, asyncio.Future[None]] = TurnQueue()
        self._ids = count()
        self._started: float | None = None  # time at which a request started in this iteration
        self._started_large = False  # whether the request that started is large
        self._rest_until = 0.0  # before this time, no large request starts
        self._timer: asyncio.TimerHandle | None = None  # fires at the end of the rest

    async def wait(self, address: str, large: bool = False) -> None:
        """Wait until a request from `address` may start. `large` tells whether its body is large."""
        if self._started is None and (not large or (not self._large and self._rested)):
            self._note_start(large)
            return
        queue = self._large if large else self._small
        start, id = asyncio.get_running_loop().create_future(), next(self._ids)
        queue.put(address, id, start)
        if self._started is None:
            self._start_next()
        try:
            await start
        finally:
            queue.remove(id)

    @property
    def _rested(self) -> bool:
        return asyncio.get_running_loop().time() >= self._rest_until

    def _note_start(self, large: bool) -> None:
        loop = asyncio.get_running_loop()
        self._started, self._started_large = loop.time(), large
        loop.call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        """Start the next request. The event loop calls this method in the iteration after each start."""
        assert self._started is not None
        now = asyncio.get_running_loop().time()
        if self._started_large:
            self._rest_until = now + REST * (now - self._started)
        self._started = None
        self._start_next()

    def _start_next(self) -> None:
        """Start the next large request if the pause after the last one is over, otherwise the next small request."""
        large = bool(self._large) and self._rested
        if large or self._small:
            _, start = (self._large if large else self._small).pop()
            if not start.done():
                start.set_result(None)
            self._note_start(large)
        elif self._large and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._rest_until, self._end_rest)

    def _end_rest(self) -> None:
        self._timer = None
        if self._started is None:
            self._start_next()
