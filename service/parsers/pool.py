"""A pool of parser processes: each runs one operation at a time, and is killed when it exceeds a limit."""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple, Unpack, cast

import structlog

from mt.errors import MTError
from service.parsers.process import HEAD, ProcessLimits, Status

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

LARGE = 1 << 20  # bytes: larger pickles are read in a thread, so that the event loop is not blocked
START_SECONDS = 60.0


class ParsingError(MTError):
    """Raised if an input cannot be parsed. The message tells the sender the reason."""


class ParsingLimitExceeded(ParsingError):
    """Raised if parsing an input takes more time or memory than the limits allow."""


@dataclass(frozen=True)
class ParserLimits:
    """Number of processes, and limits of one operation: wall and processor time in seconds, memory in bytes."""

    processes: int = 2
    wall_seconds: float = 30.0
    cpu_seconds: int = 20
    memory_bytes: int = 1 << 30
    result_bytes: int = 200_000_000


@dataclass
class _Parser:
    """Parser process, and the service's end of the socket to the process."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    def kill(self) -> None:
        self.process.kill()
        self.connection.close()
        self.process.wait()


@dataclass
class _Turns:
    """Free places in the pool. Callers take turns, and the requests of one caller keep their order."""

    free: int
    waiting: OrderedDict[str, deque[asyncio.Future[None]]] = field(default_factory=OrderedDict)

    async def acquire(self, caller: str) -> None:
        """Wait for a place."""
        if self.free and not self.waiting:
            self.free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the place to the next caller's oldest request."""
        while self.waiting:
            caller, turns = self.waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self.waiting[caller] = turns  # behind the other callers
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class ParserPool:
    """Runs operations of operations.py outside of this process.

    A process is started when it is first needed, and after one was killed. An operation that raises DocumentError, or
    exceeds a limit, raises ParsingError here; the next operation is not affected.
    """

    def __init__(self, limits: ParserLimits | None = None, module: str = "service.parsers.process") -> None:
        self._limits = limits or ParserLimits()
        self._module = module
        self._idle: list[_Parser] = []
        self._turns = _Turns(self._limits.processes)
        self._closed = False

    async def run(self, caller: str, operation: Callable[[Unpack[Arguments]], T], /, *args: *Arguments) -> T:
        """Return the result of an operation. Raises ParsingError, ParsingLimitExceeded."""
        await self._turns.acquire(caller)
        try:
            parser = self._idle.pop() if self._idle else await self._start()
            try:
                status, content = await self._call(parser, operation.__name__, args)
            except BaseException:
                parser.kill()
                raise
            if status is Status.MEMORY or self._closed:
                parser.kill()
            else:
                self._idle.append(parser)
        finally:
            self._turns.release()
        self._check(status, content)
        return cast(T, content)

    def close(self) -> None:
        """Kill all processes; operations in progress fail."""
        self._closed = True
        while self._idle:
            self._idle.pop().kill()

    async def _call(self, parser: _Parser, operation: str, arguments: tuple[object, ...]) -> tuple[Status, object]:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.wall_seconds):
                await self._send(parser, (operation, arguments))
                outcome: tuple[Status, object] = await self._receive(parser)
                return outcome
        except TimeoutError:
            raise ParsingLimitExceeded(f"parsing takes longer than {limits.wall_seconds:g} s") from None
        except (EOFError, OSError) as error:
            parser.process.kill()
            returncode = parser.process.wait()
            if returncode == -signal.SIGXCPU:
                reason = f"parsing takes more than {limits.cpu_seconds} s of processor time"
                raise ParsingLimitExceeded(reason) from None
            structlog.get_logger().error("parser died", operation=operation, returncode=returncode)
            raise ParsingError("the parser failed on this input") from error

    def _check(self, status: Status, content: object) -> None:
        match status:
            case Status.REFUSED:
                raise ParsingError(str(content))
            case Status.MEMORY:
                raise ParsingLimitExceeded(f"parsing takes more than {self._limits.memory_bytes >> 20} MiB of memory")
            case Status.NESTING:
                raise ParsingLimitExceeded("the structure is nested too deeply")
            case Status.FAILED:
                structlog.get_logger().error("parser failed", location=content)
                raise ParsingError("the parser failed on this input")

    async def _start(self) -> _Parser:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
        command = [sys.executable, "-m", self._module, str(theirs.fileno())]
        process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        parser = _Parser(process, ours)
        limits = ProcessLimits(self._limits.memory_bytes, self._limits.cpu_seconds)
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(parser, (limits, os.getpid()))
                await self._receive(parser)
        except BaseException:
            parser.kill()
            raise
        return parser

    async def _send(self, parser: _Parser, content: object) -> None:
        data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(parser.connection, HEAD.pack(len(data)))
        await loop.sock_sendall(parser.connection, data)

    async def _receive(self, parser: _Parser) -> tuple[Status, object]:
        size = int(HEAD.unpack(await self._read(parser, HEAD.size))[0])
        if size > self._limits.result_bytes:
            raise ParsingLimitExceeded(f"parsing gives more than {self._limits.result_bytes:,} bytes")
        data = await self._read(parser, size)
        outcome: tuple[Status, object] = (
            await asyncio.to_thread(pickle.loads, data) if size > LARGE else pickle.loads(data)
        )
        return outcome

    async def _read(self, parser: _Parser, size: int) -> bytes:
        loop, data = asyncio.get_running_loop(), bytearray()
        while len(data) < size:
            part = await loop.sock_recv(parser.connection, min(size - len(data), 1 << 18))
            if not part:
                raise EOFError
            data += part
        return bytes(data)
