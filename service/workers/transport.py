"""Starts a worker somewhere and carries messages both ways."""

import asyncio
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from service.errors import where
from service.workers.messages import Close, FromWorker, Setup, Stopped, ToWorker

Deliver = Callable[[Sequence[FromWorker]], None]

HEAD = struct.Struct("!Q")  # the length of what follows
OURS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that the service acts on, and no worker


class Transport(Protocol):
    """Carries messages whole and in order."""

    def start(self, deliver: Deliver) -> None:
        """In the event loop, in which `deliver` is called. `Stopped` comes last and once, however the worker ends."""

    def send(self, messages: Sequence[ToWorker]) -> None:
        """Never blocks. What is sent to a worker that has ended is lost."""

    def kill(self) -> None:
        """End the worker at once, whatever it does."""


@dataclass(frozen=True)
class Begin:
    """The first message to a process: what it is to load; and how, unless as usual."""

    setup: Setup
    parent: int  # process id
    load: Callable[[Setup], Any] | None


class ProcessTransport:
    """A worker in a process of its own (service/workers/process.py), behind a pair of sockets.

    The worker's module is run by name, so that this process needs no torch.
    """

    def __init__(self, setup: Setup, load: Callable[[Setup], Any] | None = None) -> None:
        """`load` must be picklable."""
        self._begin = Begin(setup, os.getpid(), load)
        self._process: subprocess.Popen[bytes]
        self._transport: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []  # before there is a transport
        self._conversation: asyncio.Task[None]
        self._told_to_stop = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, deliver: Deliver) -> None:
        ours, theirs = socket.socketpair()
        with theirs, _signals_kept_back():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service.workers.process", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._write(pickle.dumps(self._begin))
        self._conversation = asyncio.get_running_loop().create_task(self._converse(ours, deliver))

    def send(self, messages: Sequence[ToWorker]) -> None:
        self._told_to_stop = self._told_to_stop or any(isinstance(message, Close) for message in messages)
        self._write(pickle.dumps(list(messages), pickle.HIGHEST_PROTOCOL))

    def kill(self) -> None:
        self._process.kill()

    def _write(self, data: bytes) -> None:
        framed = HEAD.pack(len(data)) + data
        if self._transport is None:
            self._early.append(framed)
        elif not self._transport.is_closing():
            self._transport.write(framed)

    async def _converse(self, ours: socket.socket, deliver: Deliver) -> None:
        """Until the process ends."""
        problem = ""
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            self._transport = writer.transport
            writer.writelines(self._early)
            self._early.clear()
            while True:
                (length,) = HEAD.unpack(await reader.readexactly(HEAD.size))
                messages = pickle.loads(await reader.readexactly(length))
                problem = next((each.problem for each in messages if isinstance(each, Stopped)), problem)
                deliver([each for each in messages if not isinstance(each, Stopped)])
        except (asyncio.IncompleteReadError, OSError):
            pass  # it has ended, or is about to; half a message counts as none
        except Exception as error:
            problem = where(error)
        finally:
            self._process.kill()
            if self._transport is None:
                ours.close()
            else:
                self._transport.abort()
        status = await asyncio.to_thread(self._process.wait)
        if self._told_to_stop:
            problem = ""
        elif not problem:
            problem = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        deliver([Stopped(problem)])


@contextmanager
def _signals_kept_back() -> Iterator[None]:
    """A process that is started now inherits that these signals do not reach it.

    Ctrl-C goes to every process of a terminal, and systemd's SIGTERM to every process of a service; but it is for the
    service to say when a worker has done its work.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OURS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
