"""Order in which connections parse received bytes, for a few milliseconds in each iteration of the event loop.

In one iteration, the event loop serves all connections that have received bytes. Without turns, hundreds of connections
with a request each, or one connection with thousands of chunks of one byte, would delay a probe by seconds.
"""

import asyncio
import time
from collections.abc import Hashable
from typing import Protocol

from mt.engine.turns import TurnQueue

SECONDS = 0.002  # time of parsing in one iteration of the event loop; a single step may take longer


class Reader(Hashable, Protocol):
    """A connection with received bytes to parse."""

    @property
    def address(self) -> str: ...

    def parse_some(self) -> bool:
        """Parse some of the received bytes. Return whether bytes are left to parse."""


class ReadTurns:
    """Queue of the connections that have bytes to parse. Addresses take turns, with one `parse_some` each."""

    def __init__(self) -> None:
        self._waiting: TurnQueue[Reader, None] = TurnQueue()
        self._left = SECONDS  # time that is left for parsing in this iteration
        self._scheduled = False  # whether the event loop will call `_next_iteration`

    def add(self, reader: Reader) -> bool:
        """Let a connection parse some of its bytes at once if no other connection waits, and the rest in turns.

        Return whether the connection waits for a turn.
        """
        if reader in self._waiting:
            return True
        self._schedule()
        if not self._waiting and self._left > 0 and not self._parse(reader):
            return False
        self._waiting.put(reader.address, reader, None)
        return True

    def remove(self, reader: Reader) -> None:
        self._waiting.remove(reader)

    def _parse(self, reader: Reader) -> bool:
        started = time.perf_counter()
        try:
            return reader.parse_some()
        finally:
            self._left -= time.perf_counter() - started

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        self._scheduled, self._left = False, SECONDS
        if self._waiting:
            self._schedule()
        while self._waiting and self._left > 0:
            reader, _ = self._waiting.pop()
            if self._parse(reader):
                self._waiting.put(reader.address, reader, None)
