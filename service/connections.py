"""Limits of open connections: their number, and the time to receive the head of a request.

uvicorn has no time-out for the head. Clients that send nothing, or a byte now and then, could therefore use up all file
descriptors and block all other clients, health checks included. At the limit, this module closes the connection that
has waited longest for a request; uvicorn's `limit_concurrency` would refuse every new connection.
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
class ConnectionLimiter:
    """Open connections of one server. `waiting` lists the connections without a complete request, oldest first."""

    head_seconds: float
    limit: int
    open: "set[TimedConnection]" = field(default_factory=set)
    waiting: "dict[TimedConnection, None]" = field(default_factory=dict)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the connection factory for uvicorn's setting `http`."""
        return cast(type[asyncio.Protocol], partial(TimedConnection, self))

    def make_room(self, new: "TimedConnection") -> None:
        """If too many connections are open, close the connection that has waited longest for a request, if any."""
        if len(self.open) > self.limit and (longest := next(iter(self.waiting))) is not new:
            longest.transport.close()


class TimedConnection(H11Protocol):
    """A uvicorn connection that closes itself if the head of a request does not arrive in time."""

    def __init__(
        self,
        limiter: ConnectionLimiter,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limiter = limiter
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limiter.open.add(self)
        self._update()
        self._limiter.make_room(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.open.discard(self)
        self._limiter.waiting.pop(self, None)
        self._stop_timer()
        super().connection_lost(exc)

    def _update(self) -> None:
        """Update `waiting` and the timer after an event. More bytes of the same head do not restart the timer."""
        state = self.conn.their_state if self in self._limiter.open else h11.CLOSED
        if state in (h11.IDLE, h11.SEND_BODY):
            self._limiter.waiting.setdefault(self)
        else:
            self._limiter.waiting.pop(self, None)
        if state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self._limiter.head_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
