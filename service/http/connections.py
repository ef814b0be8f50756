"""Limits of open connections: their number, the time to send a request or to read an answer, and the parsing per turn.

uvicorn waits for ever for the head of a request, and for a client to read. Clients that send or read nothing could
therefore use up all file descriptors and block all other clients, health checks included. uvicorn's `limit_concurrency`
would refuse every new connection at the limit. This module instead closes a connection of the address that has the most
connections.
"""

import asyncio
import re
import resource
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from service.access.control import caller_network
from service.http.read_turns import ReadTurns

BACKLOG = 1024  # connections that wait in the kernel to be accepted
SEND_BYTES = 131_072  # limit for an answer in the kernel's buffers; the default of the kernel is 4 MB
NO_LINGER = struct.pack("ii", 1, 0)  # value of SO_LINGER that makes the kernel discard unsent bytes
PARTS = 64  # events of HTTP, such as chunks of a body, that a connection parses in one turn
MAX_HEADERS = 256  # headers of a request; the time to parse a head grows with their number
SPARE_CONNECTIONS = 16  # connections beyond the limit, only for addresses with at most FEW connections
FEW = 4
PER_CONNECTION = 2  # file descriptors of a connection: its socket, and the file that its request downloads or stores
HEAD_BYTES = 65_536
_HEAD_END = re.compile(rb"\n\r?\n")


def connection_limit(limit: int) -> int:
    """Return the number of connections to allow: `limit`, or fewer if this process may not open enough files."""
    with socket.socket() as lowest:  # the system gives the lowest free number: all below it are in use
        used = lowest.fileno()
    free = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - used - SPARE_CONNECTIONS
    free -= min(64, free // 4)  # for workers, parsers and the database
    return max(1, min(limit, free // PER_CONNECTION))


def raise_descriptor_limit(connections: int) -> None:
    """Raise this process's limit of open files so that it suffices for `connections`, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = PER_CONNECTION * connections + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def accept_batch(limit: int) -> int:
    """Return how many connections asyncio may accept in one go. Only then can this module close excess connections.

    `limit` is the number of connections to allow.
    """
    return max(2, limit // 32)


@dataclass
class ConnectionLimiter:
    """Counts and limits the open connections of one server.

    `waiting` lists the connections whose request is not complete, in the order in which they began to wait.
    """

    seconds: float  # time limit for the head of a request, and for a client that reads nothing of an answer
    limit: int
    unread_bytes: int = 200_000_000  # limit for the parts of answers that wait in memory for slow clients
    open: "dict[TimedConnection, None]" = field(default_factory=dict)
    waiting: "dict[TimedConnection, None]" = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)  # open connections by address
    turns: ReadTurns = field(default_factory=ReadTurns)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the value for uvicorn's setting `http`: a function that creates a TimedConnection."""
        return cast(type[asyncio.Protocol], partial(TimedConnection, self))

    def add(self, new: "TimedConnection") -> None:
        """Count a new connection. If too many are open, close one connection of the address that has the most.

        Of the connections of this address, close the one that has waited longest for a request. If none of them waits,
        close the newest. Exception: if none of them waits, and the address of `new` has at most FEW connections, up to
        SPARE_CONNECTIONS connections more than the limit may stay open.
        """
        self.open[new] = None
        self.counts[new.address] += 1
        excess = len(self.open) - self.limit
        if excess <= 0:
            return
        most = max(self.counts.values())
        idle = next((one for one in self.waiting if self.counts[one.address] == most and one is not new), None)
        if idle is not None:
            idle.abort()
        elif excess > SPARE_CONNECTIONS or self.counts[new.address] > FEW:
            next(one for one in reversed(self.open) if self.counts[one.address] == most).abort()

    def limit_unread(self) -> None:
        """Close connections until clients have at most `unread_bytes` bytes of answers left to read.

        Repeatedly choose the address with the most unread bytes, and close its connection with the most unread bytes.
        """
        unread = {one: size for one in self.open if (size := one.transport.get_write_buffer_size())}
        by_address = Counter[str]()
        for one, size in unread.items():
            by_address[one.address] += size
        while sum(unread.values()) > self.unread_bytes:
            address = by_address.most_common(1)[0][0]
            largest = max((one for one in unread if one.address == address), key=unread.__getitem__)
            by_address[address] -= unread.pop(largest)
            largest.reset()

    def remove(self, closed: "TimedConnection") -> None:
        """Remove a closed connection from the counts. A second call has no effect."""
        self.waiting.pop(closed, None)
        if closed in self.open:
            del self.open[closed]
            self.counts[closed.address] -= 1
            if not self.counts[closed.address]:
                del self.counts[closed.address]


class _Parser(h11.Connection):
    """HTTP parser of one connection. It returns `left` events per turn, and refuses requests with too many headers."""

    left = 0  # events of this turn
    interrupted = False  # whether the turn ended before an event

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event; NEED_DATA if no event is complete, or if no events are left in this turn."""
        if not self.left:
            self.interrupted = True
            return h11.NEED_DATA
        self.left -= 1
        if self.their_state is h11.IDLE:
            received, _ = self.trailing_data
            end = _HEAD_END.search(received)
            if received.count(b"\n", 0, end.start() if end else len(received)) > MAX_HEADERS:
                raise h11.RemoteProtocolError("too many headers", 431)
        return super().next_event()


class TimedConnection(H11Protocol):
    """A uvicorn connection that closes itself if the client does not send a request, or does not read the answer."""

    def __init__(
        self,
        limiter: ConnectionLimiter,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = self._parser = _Parser(h11.SERVER, config.h11_max_incomplete_event_size or HEAD_BYTES)
        self._waiting = False  # whether the connection waits for a turn to parse received bytes
        self.address = ""
        self._limiter = limiter
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._read_state: object = None  # state of h11 when the read timer was started

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = caller_network(self.client[0] if self.client else "")
        self._limiter.add(self)
        self._update()

    def handle_events(self) -> None:
        """Parse the received bytes when it is the turn of this connection. Until then, do not receive more bytes."""
        if self._limiter.turns.add(self):
            self._waiting = True
            self.transport.pause_reading()

    def parse_some(self) -> bool:
        """Parse at most PARTS events. Return whether received bytes are left to parse."""
        self._parser.left, self._parser.interrupted = PARTS, False
        super().handle_events()
        self._update()
        if self._parser.interrupted and not self.transport.is_closing():
            return True
        if self._waiting and not self.flow.read_paused:
            self.transport.resume_reading()
        self._waiting = False
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not valid HTTP, and end the request that they belong to.

        If the answer to this request has started, close the connection without another answer. The inherited
        method would raise an error in this case, first in `data_received` and later in the application's `send`.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limiter.limit_unread()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()
        self._watch_writing()  # a part of the answer is still to be sent

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_writing()
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.remove(self)
        self._limiter.turns.remove(self)
        self._stop_read_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close the connection at once, without sending the rest of the answer."""
        self._limiter.remove(self)  # not in `connection_lost`, which the event loop calls later
        self.transport.abort()

    def reset(self) -> None:
        """Close the connection at once, and also drop the part of the answer that the kernel has not sent yet."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.abort()

    def _update(self) -> None:
        """Update `waiting` and the timer for reading after an event.

        The timer closes the connection if the head of a request does not arrive within `seconds`, or a body within
        twice this time. New bytes do not restart the timer. For a body, it only matters if the request has been
        answered already: otherwise, the middleware answers 408 earlier.
        """
        state = self.conn.their_state if self in self._limiter.open else h11.CLOSED
        if state in (h11.IDLE, h11.SEND_BODY):
            self._limiter.waiting.setdefault(self)
        else:
            self._limiter.waiting.pop(self, None)
        if state is self._read_state:
            return
        self._read_state = state
        self._stop_read_timer()
        if state is h11.IDLE:
            self._read_timer = self.loop.call_later(self._limiter.seconds, self.transport.close)
        elif state is h11.SEND_BODY:
            self._read_timer = self.loop.call_later(2 * self._limiter.seconds, self.transport.abort)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _watch_writing(self) -> None:
        """Start a timer that closes the connection if the client reads nothing of the answer for `seconds`."""
        size = self.transport.get_write_buffer_size()
        if size and self._write_timer is None:
            self._write_timer = self.loop.call_later(self._limiter.seconds, self._check_writing, size)

    def _check_writing(self, before: int) -> None:
        self._write_timer = None
        if 0 < before <= self.transport.get_write_buffer_size():
            self.reset()
        else:
            self._watch_writing()
