"""Connections: time limits for requests and unread answers, and a limit for the number of open connections.

uvicorn waits for ever for the head of a request, and for a client to read. Its `limit_concurrency` would refuse probes.
A request that is not valid HTTP is passed to the application as a refusal: its answer is an error like any other, with
a request id and a line in the log.
"""

import asyncio
import resource
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.errors import HEAD_BYTES, HeadTooLarge, InvalidRequest, ServiceError
from service.http.admission import Disconnection

BACKLOG = 1024  # connections that wait in the kernel to be accepted
ACCEPTS = 16  # connections accepted in an iteration of the event loop; libuv accepts one for each listening socket
SEND_BYTES = 131_072  # limit for an answer in the kernel's buffers; the default of the kernel is 4 MB
NO_LINGER = struct.pack("ii", 1, 0)  # value of SO_LINGER that makes the kernel discard unsent bytes
PIECE_BYTES = 64  # a header, or a piece of a body, costs the event loop as much as so many bytes
MAX_LACK = 256 * PIECE_BYTES  # bytes by which the headers, trailers and pieces of a client may be shorter than that
MAX_PIPELINED = 32  # requests of a connection that wait for the answer to an earlier one
WAITING_BYTES = 65_536  # of their bodies, which the limit of bodies that are being received does not count
OTHER_FILES = 64  # files that are open beside the connections: of workers, parsers, the database and ACCEPTS
FIRST_CHECK_SECONDS, LAST_CHECK_SECONDS = 0.02, 1.0  # pauses between checks whether a client has left
CLOSE_WAIT = b"\x08"  # state of a connection whose other end is closed, the first byte of TCP_INFO of tcp(7)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def connection_limit(limit: int) -> int:
    """Raise the soft limit of open files for `limit` connections, and return how many of them it permits."""
    with socket.socket() as lowest:  # the system gives the lowest free number: all below it are in use
        used = lowest.fileno()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = used + limit + OTHER_FILES
    if soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    free = soft - used
    return max(1, min(limit, free - min(OTHER_FILES, free * 2 // 3)))


def has_closed_its_end(client: socket.socket) -> bool:
    """Return whether a client has closed its end of a connection, as far as the system tells."""
    return sys.platform == "linux" and client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == CLOSE_WAIT


@dataclass
class Connections:
    """The open connections of one server, and their limits.

    `waiting` lists the connections without the complete head of a request, `receiving` those with a head but without
    the complete body, both in the order in which they began to wait.
    """

    seconds: float  # time limit for the head of a request, and for a client that reads nothing of an answer
    limit: int
    unread_bytes: int = 200_000_000  # limit for the parts of answers that wait in memory for slow clients
    open: "dict[Connection, None]" = field(default_factory=dict)
    waiting: "dict[Connection, None]" = field(default_factory=dict)
    receiving: "dict[Connection, None]" = field(default_factory=dict)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the value for uvicorn's setting `http`: a function that creates a Connection."""
        return cast(type[asyncio.Protocol], partial(Connection, self))

    def add(self, new: "Connection") -> None:
        """Add a new connection. If too many are open, close the one that has waited longest for the head of a request.

        If more connections wait for a body than for a head, close the one that has waited longest for its body:
        otherwise, unfinished bodies would shut out probes. If all have sent a whole request, close the new connection.
        """
        self.open[new] = None
        if len(self.open) > self.limit:
            longest = max(self.waiting, self.receiving, key=len)
            next(iter(longest), new).abort()
        if new in self.open:
            self.waiting[new] = None

    def limit_unread(self) -> None:
        """Close connections until at most `unread_bytes` of answers are left to read, the largest first."""
        unread = {one: size for one in self.open if (size := one.unread)}
        while sum(unread.values()) > self.unread_bytes:
            largest = max(unread, key=unread.__getitem__)
            del unread[largest]
            largest.reset()

    def remove(self, closed: "Connection") -> None:
        """Remove a closed connection. A second call has no effect."""
        self.waiting.pop(closed, None)
        self.receiving.pop(closed, None)
        self.open.pop(closed, None)


class Connection(HttpToolsProtocol):
    """A uvicorn connection that closes itself if the client does not send a request, or does not read the answer."""

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = connections
        self._write_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0  # bytes that have arrived since the last head, piece of a body, or message ended
        self._in_head = True  # whether the head of the next request is not complete
        self._lack = 0  # bytes by which headers and pieces were shorter than PIECE_BYTES since the last answer
        self._pieces: list[bytes] = []  # of a body, from the bytes that are being parsed
        self._running: RequestResponseCycle | None = None  # request that is being answered, or was the last one
        self._refusal: ServiceError | None = None  # error of the request that is being parsed
        self._disconnection = Disconnection()
        self._client_timer: asyncio.TimerHandle | None = None  # for the next check whether the client has left
        self._client_closed = False  # its own end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # the next part of an answer waits until the kernel has this one
        self._all.add(self)
        self._read_timer = self.loop.call_later(self._all.seconds, transport.close)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._refusal:
            return
        self._head_bytes += len(data)
        self._lack = max(0, self._lack - PIECE_BYTES)  # a piece that arrives alone may be short
        rest: bytes | None = None
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            refusal = self._refusal or InvalidRequest.listing("the request is not valid HTTP")
            self._refuse(refusal.with_traceback(None))  # a cycle: the traceback leads to this connection
            return
        if rest is not None:  # not within `except`: a refusal would refer to the error there, and to this connection
            self._ignore_upgrade(rest)
            return
        self._join_pieces()
        if self._head_bytes > HEAD_BYTES:  # of a head or of trailers
            self._refuse(HeadTooLarge())
        elif sum(len(waiting.body) for waiting, _ in self.pipeline) > WAITING_BYTES:
            assert self._running  # they wait for it
            self.pipeline.clear()
            self.cycle = self._running
            problem = f"the bodies of requests that wait for the answer to another have more than {WAITING_BYTES} bytes"
            self._refuse(InvalidRequest.listing(problem))

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection open whose client has closed only its own end, and waits for the answer."""
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        self._client_closed = True
        self._watch_client()
        return True

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refusal = InvalidRequest.listing(f"more than {MAX_PIPELINED} requests wait for the answer to another")
            raise self._refusal
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_piece(len(name) + len(value) if self._in_head else 0)
        if self._in_head:  # not a trailer
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():  # the parser would skip the body: see `_ignore_upgrade`
            return
        if len(self.url) >= HEAD_BYTES:  # httptools cannot divide it into its parts
            self._refusal = HeadTooLarge()
            raise self._refusal
        self._in_head, self._head_bytes = False, 0
        self._all.waiting.pop(self, None)
        self._read_timer.cancel()
        self.scope["state"]["disconnection"] = self._disconnection
        super().on_headers_complete()
        if self.pipeline:
            self._watch_client()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self._count_piece(len(body))
        self._pieces.append(body)

    def _join_pieces(self) -> None:
        """Pass on what has arrived of the body, as one piece: uvicorn copies the whole body for each piece."""
        if self._pieces:
            super().on_body(b"".join(self._pieces))
            self._pieces.clear()

    def _count_piece(self, size: int) -> None:
        """Count a header, a trailer or a piece of the body. Refuse a request that has too many short ones."""
        self._lack += PIECE_BYTES - size
        if self._lack < 0:
            self._lack = 0
        elif self._lack > MAX_LACK:
            problem = f"more than {MAX_LACK // PIECE_BYTES} headers or chunks of less than {PIECE_BYTES} bytes"
            self._refusal = (HeadTooLarge if self._in_head else InvalidRequest)(f"Invalid request: {problem}")
            raise self._refusal

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._read_timer.cancel()
        self._head_bytes = 0
        self._all.receiving.pop(self, None)
        self._join_pieces()
        super().on_message_complete()
        if self.cycle is self._running:  # after a long body, uvicorn does not read, nor notice that a client leaves
            self.flow.resume_reading()
        if self.cycle.response_complete:
            self._wait_for_head()

    def on_response_complete(self) -> None:
        self._lack, more_body = 0, self.cycle.more_body
        super().on_response_complete()
        self._watch_writing()
        if not more_body and not self.pipeline and self.cycle.response_complete:
            self._wait_for_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._all.limit_unread()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()
        self._watch_writing()  # a part of the answer is still to be sent

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        self._read_timer.cancel()
        self._stop_write_timer()
        if self._client_timer is not None:
            self._client_timer.cancel()
        self._disconnection.leave()
        for cycle in (self._running, *(waiting for waiting, _ in self.pipeline)):  # uvicorn knows only the newest one
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        for cycle, _ in self.pipeline:  # it will not run, and leads to this connection, which knows the newest one
            cycle.on_response = lambda: None
        self.pipeline.clear()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if cycle.more_body:
            self._all.receiving[self] = None
            self._time_reading(2 * self._all.seconds, self.transport.abort)
        super()._start_asgi_task(cycle, app)

    @property
    def unread(self) -> int:
        """Bytes of answers that are in memory until the client reads them."""
        unsent: int = self._running.scope["state"].get("unsent", 0) if self._running else 0
        return self.transport.get_write_buffer_size() + unsent

    def abort(self) -> None:
        """Close the connection at once, without sending the rest of the answer."""
        self._all.remove(self)  # not in `connection_lost`, which the event loop calls later
        self.transport.abort()

    def reset(self) -> None:
        """Close the connection at once, and also drop the part of the answer that the kernel has not sent yet."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.abort()

    def _refuse(self, error: ServiceError) -> None:
        """Let the application answer a request that is not valid with an error, after those before it; then close.

        If the body of the request before it is not complete, this answer replaces its answer, or none is sent.
        """
        self._refusal = error
        self._read_timer.cancel()
        self._all.waiting.pop(self, None)
        self.flow.pause_reading()
        before = self.cycle if self.cycle is not None and not self.cycle.response_complete else None
        if before is not None and before.more_body:
            before.disconnected = True
            before.message_event.set()
            if before.response_started or self.pipeline:
                self.transport.close()
                return
        super().on_message_begin()
        self.scope |= {"method": "", "path": "/", "raw_path": b"/", "query_string": b"", "state": {"refusal": error}}
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        self.cycle.more_body = False
        if before is None or before.more_body:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))
            self._watch_client()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Parse the head of a request again, without its header Upgrade, and then the body, which begins in `rest`."""
        kept = [(name, value) for name, value in self.headers if name != b"upgrade"]
        if len(kept) == len(self.headers):
            self._refuse(InvalidRequest.listing("the method CONNECT is not supported"))
            return
        line = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        self.parser = httptools.HttpRequestParser(self)
        lines = [line, *(name + b": " + value for name, value in kept), b"", rest]
        self.data_received(b"\r\n".join(lines))

    def _watch_client(self) -> None:
        """Notice soon that the client leaves, until all is answered: nothing else does while reading is paused."""
        if self._client_timer is None:
            self._check_client(FIRST_CHECK_SECONDS)

    def _check_client(self, seconds: float) -> None:
        """Close the connection if the client has left, otherwise check again after a pause.

        A client that has closed only its own end looks like one that has left. The latter resets the connection when
        it receives bytes: the status 100, or a comment between events, which clients ignore. HTTP/1.0 has neither; its
        clients count as left.
        """
        self._client_timer = None
        if self.transport.is_closing() or self.cycle.response_complete:
            return
        client = self.transport.get_extra_info("socket")
        if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.abort()
            return
        running = self._running
        if running is not None and (self._client_closed or has_closed_its_end(client)):
            if running.scope["http_version"] == "1.0":
                self.abort()
                return
            if not running.response_started:
                self.transport.write(CONTINUE)
            elif not running.response_complete:
                self.transport.write(running.scope["state"].get("comment", b""))
        self._client_timer = self.loop.call_later(seconds, self._check_client, min(2 * seconds, LAST_CHECK_SECONDS))

    def _wait_for_head(self) -> None:
        if not self.transport.is_closing():
            self._in_head = True
            self._all.waiting.setdefault(self)
            self._time_reading(self._all.seconds, self.transport.close)

    def _time_reading(self, seconds: float, action: Callable[[], None]) -> None:
        """Call `action`, which closes the connection, after `seconds`. New bytes do not change this time.

        The time of a body begins when the earlier requests have been answered: until then, the server reads nothing.
        It only matters if the request itself has been answered, too: otherwise, the middleware answers 408 earlier.
        """
        self._read_timer.cancel()
        self._read_timer = self.loop.call_later(seconds, action)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _watch_writing(self) -> None:
        """Start a timer that closes the connection if the client reads nothing of the answer for `seconds`."""
        size = self.transport.get_write_buffer_size()
        if size and self._write_timer is None:
            self._write_timer = self.loop.call_later(self._all.seconds, self._check_writing, size)

    def _check_writing(self, before: int) -> None:
        self._write_timer = None
        if 0 < before <= self.transport.get_write_buffer_size():
            self.reset()
        else:
            self._watch_writing()
