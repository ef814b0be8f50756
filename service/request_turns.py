"""Order in which requests start: one in each iteration of the event loop, and addresses take turns.

The work of a request up to its first wait (routing, validation, admission) takes about a millisecond. Without turns, a
thousand requests of one address that arrive together do this work in one iteration, in which no other request, no
connection and no probe is served.
"""

import asyncio
from itertools import count

from mt.engine.turns import TurnQueue


class RequestTurns:
    """Queue of the requests that wait to be started by an event loop."""

    def __init__(self) -> None:
        self._waiting: TurnQueue[int, asyncio.Future[None]] = TurnQueue()
        self._ids = count()
        self._started = False  # whether a request has started in this iteration

    async def wait(self, address: str) -> None:
        """Wait until a request of an address may start. Return at once if no other request starts in this iteration."""
        loop = asyncio.get_running_loop()
        if not self._started:
            self._started = True
            loop.call_soon(self._start_next)
            return
        start, id = loop.create_future(), next(self._ids)
        self._waiting.put(address, id, start)
        try:
            await start
        finally:
            self._waiting.remove(id)

    def _start_next(self) -> None:
        """Start the next request. While requests wait, this method runs once in each iteration of the event loop."""
        self._started = bool(self._waiting)
        if self._waiting:
            _, start = self._waiting.pop()
            if not start.done():
                start.set_result(None)
            asyncio.get_running_loop().call_soon(self._start_next)
