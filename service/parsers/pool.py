"""Parser processes: each runs one operation at a time, and is killed when it exceeds a limit."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple, Unpack, cast

import structlog

from service.errors import SHUTTING_DOWN, InvalidDocument, ParsingLimitExceeded, Unavailable
from service.fair_semaphore import FairSemaphore
from service.parsers.frames import Outcome, ParserLimits, Status, dump, load_outcome
from service.parsers.operations import DECODERS, decode_string, read_markup, write_markup
from service.processes import LENGTH, start_child

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

START_SECONDS = 60.0
END_SECONDS = 5.0  # longest wait for the exit of a process that has closed its end of the socket
CHUNK = 1 << 18  # bytes read at a time
SMALL_FILE = 100_000  # bytes of the largest small file, which waits for no larger one; its segments take at most 20 MB
MARKUP_OPERATIONS = {read_markup.__name__, write_markup.__name__}
FAILED = "the parser failed on this input"


@dataclass
class ParserCounts:
    """Counts of the operations and processes of a pool."""

    operations: int = 0
    exceeded: int = 0  # operations that exceeded a limit
    failed: int = 0  # operations that failed because of a defect
    started: int = 0  # processes


@dataclass(eq=False)
class _Parser:
    """Parser process, and the service's end of the socket to the process."""

    process: subprocess.Popen[bytes]
    connection: socket.socket


@dataclass(eq=False)
class _Operation:
    """Operation of a caller, who may cancel it."""

    name: str
    arguments: tuple[Any, ...]
    cancelled: bool = False
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))  # of the call in progress

    def cancel(self, seconds: float) -> None:
        """Let the call in progress go on for `seconds` at most, and begin no other call."""
        self.cancelled = True
        end = asyncio.get_running_loop().time() + seconds
        with suppress(RuntimeError):  # no call is in progress, or its time is over
            self.limit.reschedule(min(end, self.limit.when() or end))


class ParserPool:
    """Pool of processes that run the operations of operations.py.

    Documents do not delay marked-up texts, and large files do not delay small ones: those of three callers, which take
    seconds to read and again to write, delayed 20 sentences of a fourth caller by minutes.

    Processes are started on demand, also to replace a killed process. An operation that fails or exceeds a limit does
    not affect the next operation. Whatever a caller cancels, a starting process becomes ready, and a process that is
    killed for a cancelled operation is replaced before its place is free, so that clients that disconnect do not make
    others wait for a process to start.
    """

    def __init__(self, limits: ParserLimits | None = None, module: str = "service.parsers.process") -> None:
        self.counts = ParserCounts()
        self._limits = limits or ParserLimits()
        self._module = module
        self._parsers: set[_Parser] = set()
        self._idle: list[_Parser] = []
        self._turns, self._small_turns, self._markup_turns = (FairSemaphore(self._limits.processes) for _ in range(3))
        self._closed = False

    async def run(self, caller: str, operation: Callable[[Unpack[Arguments]], T], /, *args: *Arguments) -> T:
        """Run an operation in a process and return its result.

        If this coroutine is cancelled, the operation goes on for `grace_seconds` at most and keeps the caller's place;
        then its process is killed. An operation whose process was killed by somebody else is run once more.

        Raises:
            InvalidDocument: if the operation raised DocumentError, or failed.
            ParsingLimitExceeded: if the operation exceeded a limit.
            Unavailable: if no process can be started.
        """
        called = _Operation(operation.__name__, args)
        size = sum(len(argument) for argument in args if isinstance(argument, bytes | bytearray))
        turns = self._turns if size > SMALL_FILE else self._small_turns
        turns = self._markup_turns if called.name in MARKUP_OPERATIONS else turns
        try:
            outcome = await turns.run(caller, lambda: self._run_in_place(called))
        except asyncio.CancelledError:
            called.cancel(self._limits.grace_seconds)
            raise
        return cast(T, self.result(outcome, operation.__name__))

    async def start(self) -> None:
        """Start one process in advance, so that the first operation need not wait for it."""
        async with self._turns.held(""):
            self._idle.append(await self._take())

    def close(self) -> None:
        """Kill all processes. Operations in progress fail."""
        self._closed = True
        while self._idle:
            self._end(self._idle.pop())
        for parser in self._parsers:  # closes the sockets, so that operations in progress fail
            parser.process.kill()

    def result(self, outcome: Outcome, operation: str) -> object:
        """Return the result of an operation, or raise its error. Also count the outcome and log failures."""
        self.counts.operations += 1
        match outcome.status:
            case Status.DONE:
                return outcome.content
            case Status.REFUSED:
                raise InvalidDocument(str(outcome.content))
            case Status.LIMIT:
                raise self._exceeded(operation, str(outcome.content))
            case Status.MEMORY:
                raise self._exceeded(operation, f"parsing takes more than {self._limits.memory_bytes >> 20} MiB")
            case Status.KILLED:
                raise self._exceeded(operation, "the system killed two processes that parsed it")
            case Status.NESTING:
                raise self._exceeded(operation, "the structure is nested too deeply")
            case Status.FAILED:
                self.counts.failed += 1
                structlog.get_logger().error("parser failed", operation=operation, location=outcome.content)
                raise InvalidDocument(FAILED)

    def _exceeded(self, operation: str, reason: str) -> ParsingLimitExceeded:
        self.counts.exceeded += 1
        structlog.get_logger().warning("parsing limit exceeded", operation=operation)
        return ParsingLimitExceeded(reason)

    async def _run_in_place(self, operation: _Operation) -> Outcome:
        """Run an operation in a place that its caller holds."""
        outcome = await self._attempt(operation)
        if outcome.status is Status.KILLED and not operation.cancelled:
            structlog.get_logger().warning("parser killed", operation=operation.name)
            outcome = await self._attempt(operation)
        if outcome.last and operation.cancelled:
            self._idle.append(await self._start())
        return outcome

    async def _attempt(self, operation: _Operation) -> Outcome:
        parser = await self._take()
        try:
            outcome = Outcome(Status.DONE) if operation.cancelled else await self._call(parser, operation)
        except BaseException:
            self._end(parser)
            raise
        if outcome.last or self._closed:
            self._end(parser)
        else:
            self._idle.append(parser)
        return outcome

    async def _call(self, parser: _Parser, operation: _Operation) -> Outcome:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.wall_seconds) as operation.limit:
                await self._send(parser, operation.name, *operation.arguments)
                return await self._receive(parser, operation.name)
        except TimeoutError:
            return Outcome(Status.LIMIT, f"parsing takes longer than {limits.wall_seconds:g} s", last=True)
        except OverflowError:
            return Outcome(Status.LIMIT, f"the result has more than {limits.result_bytes:,} bytes", last=True)
        except (EOFError, OSError):
            return await self._end_of(parser)
        except (ValueError, TypeError, RecursionError):
            return Outcome(Status.FAILED, "the process sent an answer that is not valid", last=True)

    async def _end_of(self, parser: _Parser) -> Outcome:
        """Return the outcome of an operation whose process has ended. Raises: Unavailable if this pool is closed."""
        if self._closed:
            raise Unavailable(SHUTTING_DOWN)
        returncode = await asyncio.to_thread(parser.process.wait, END_SECONDS)
        match -returncode:
            case signal.SIGXCPU:
                reason = f"parsing takes more than {self._limits.cpu_seconds} s of processor time"
                return Outcome(Status.LIMIT, reason, last=True)
            case signal.SIGABRT:  # a C++ library that gets no memory
                return Outcome(Status.MEMORY, last=True)
            case signal.SIGKILL:  # a person, or Linux because the memory of the machine or container ran out
                return Outcome(Status.KILLED, last=True)
        return Outcome(Status.FAILED, f"the process ended with status {returncode}", last=True)

    async def _take(self) -> _Parser:
        """Return an idle process, or start one. Raises: Unavailable if no process can be started."""
        while self._idle:
            parser = self._idle.pop()
            if parser.process.poll() is None:
                return parser
            self._end(parser)
        return await self._start()

    async def _start(self) -> _Parser:
        """Start a process and return it when it is ready. Raises: Unavailable if it does not become ready."""
        if self._closed:
            raise Unavailable(SHUTTING_DOWN)
        try:
            parser = _Parser(*start_child(self._module))
        except OSError as error:
            raise self._not_started(error) from error
        parser.connection.setblocking(False)
        self._parsers.add(parser)
        self.counts.started += 1
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(parser, self._limits, os.getpid())
                await self._receive(parser)
        except (TimeoutError, EOFError, OSError, ValueError, TypeError) as error:
            self._end(parser)
            raise self._not_started(error) from error
        except BaseException:
            self._end(parser)
            raise
        return parser

    def _not_started(self, error: Exception) -> Unavailable:
        if self._closed:
            return Unavailable(SHUTTING_DOWN)
        structlog.get_logger().error("parser did not start", problem=type(error).__name__)
        return Unavailable("A parser could not be started")

    def _end(self, parser: _Parser) -> None:
        """Kill a process. A thread waits for its end: the system needs time to free its memory."""
        parser.connection.close()
        parser.process.kill()
        self._parsers.discard(parser)

    async def _send(self, parser: _Parser, *arguments: object) -> None:
        loop = asyncio.get_running_loop()
        parts = []
        for part in dump(arguments):
            parts.append(part)
            await asyncio.sleep(0)
        await loop.sock_sendall(parser.connection, LENGTH.pack(sum(map(len, parts))))
        for part in parts:
            await loop.sock_sendall(parser.connection, part)

    async def _receive(self, parser: _Parser, operation: str = "") -> Outcome:
        """Return the next answer of a process, to an operation of this name.

        Raises: EOFError if the process has ended, OverflowError if the answer has more than `result_bytes` bytes, and
            the errors of `load_outcome`.
        """
        left = self._limits.result_bytes

        async def read() -> bytearray:
            nonlocal left
            (size,) = LENGTH.unpack(await self._read(parser, LENGTH.size))
            if not 0 <= size <= left:  # -1: 2 GiB or more
                raise OverflowError
            left -= size
            return await self._read(parser, size)

        return await load_outcome(read, DECODERS.get(operation, decode_string))

    async def _read(self, parser: _Parser, size: int) -> bytearray:
        data = bytearray()  # of `size` bytes at once, it would be filled with zeros: 15 ms for 40 MB
        while len(data) < size:
            piece = await asyncio.get_running_loop().sock_recv(parser.connection, min(CHUNK, size - len(data)))
            if not piece:
                raise EOFError
            data += piece
            await asyncio.sleep(0)
        return data
