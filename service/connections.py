"""Open connections: how long one may take to send the head of a request, and how many there may be.

uvicorn times neither: who opens connections and sends nothing, or a byte now and then, would hold them for ever, until
no file descriptor is left and nobody else gets in, health checks included. uvicorn's own limit (`limit_concurrency`)
refuses everybody alike beyond a number; here, the one that has kept us waiting longest makes room.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState


@dataclass
class Connections:
    """Of one server. `waiting` are those whose request has not come whole, the longest first."""

    head_seconds: float
    limit: int
    open: "set[Connection]" = field(default_factory=set)
    waiting: "dict[Connection, None]" = field(default_factory=dict)

    def protocol(self) -> type[asyncio.Protocol]:
        """For uvicorn's `http`; all that it does with it is to call it."""
        return cast(type[asyncio.Protocol], partial(Connection, self))

    def make_room(self, newcomer: "Connection") -> None:
        """Where nobody waits, requests are being answered, and their number has a limit of its own."""
        if len(self.open) > self.limit and (longest := next(iter(self.waiting))) is not newcomer:
            longest.transport.close()


class Connection(H11Protocol):
    """uvicorn's, which is closed if the head of a request takes too long, be it the first or a later one."""

    def __init__(
        self,
        all: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = all
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.open.add(self)
        self._look()
        self._all.make_room(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open.discard(self)
        self._all.waiting.pop(self, None)
        self._stop_clock()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Which part of a request we wait for. Bytes of it alone do not start the clock anew."""
        theirs = self.conn.their_state if self in self._all.open else h11.CLOSED
        if theirs in (h11.IDLE, h11.SEND_BODY):
            self._all.waiting.setdefault(self)
        else:
            self._all.waiting.pop(self, None)
        if theirs is not h11.IDLE:
            self._stop_clock()
        elif self._closing is None:
            self._closing = self.loop.call_later(self._all.head_seconds, self.transport.close)

    def _stop_clock(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
