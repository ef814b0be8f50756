"""`python -m service.workers.process DESCRIPTOR`: a worker in a process of its own, started by transport.py.

The descriptor is that of a socket, over which messages go both ways. The process ends when the service does, however
that comes about: the socket ends then, and Linux kills it.
"""

import ctypes
import faulthandler
import os
import pickle
import signal
import socket
import sys
from collections.abc import Sequence

from service.errors import where
from service.workers.bench import load as load_model
from service.workers.bench import work
from service.workers.messages import FromWorker, Stopped, ToWorker
from service.workers.transport import HEAD, Begin

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
CHUNK = 1 << 18  # bytes read at a time


class Gone(Exception):
    """The service has ended."""


class Channel:
    """The worker's end of the socket: pickled lists of messages, each after its length."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = bytearray()

    def send(self, messages: Sequence[FromWorker]) -> None:
        """Raises Gone."""
        data = pickle.dumps(list(messages), pickle.HIGHEST_PROTOCOL)
        try:
            self._connection.sendall(HEAD.pack(len(data)) + data)
        except OSError as error:
            raise Gone from error

    def receive(self, wait: bool) -> list[ToWorker]:
        """The messages that have come; waits for one if asked to. Raises Gone."""
        messages: list[ToWorker] = []
        while True:
            while (frame := self._frame()) is not None:
                messages += pickle.loads(frame)
            if not self._fill(wait and not messages):
                return messages

    def begin(self) -> Begin:
        """The very first message."""
        while (frame := self._frame()) is None:
            self._fill(True)
        begin = pickle.loads(frame)
        assert isinstance(begin, Begin)
        return begin

    def _frame(self) -> bytes | None:
        if len(self._read) < HEAD.size:
            return None
        end = HEAD.size + int(HEAD.unpack_from(self._read)[0])
        if len(self._read) < end:
            return None
        frame = bytes(self._read[HEAD.size : end])
        del self._read[:end]
        return frame

    def _fill(self, wait: bool) -> bool:
        """Read what is there; whether anything was."""
        try:
            data = self._connection.recv(CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._read += data
        return True


def end_with(parent: int) -> None:
    """Be killed when the process that started this one ends. Elsewhere than on Linux, the socket's end does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def main(descriptor: int) -> int:
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        begin = channel.begin()
        end_with(begin.parent)
        work(begin.setup, begin.load or load_model, channel.receive, channel.send)
    except Gone:
        return 1
    except BaseException as error:
        channel.send([Stopped(where(error))])
        return 1
    return 0


if __name__ == "__main__":
    status = main(int(sys.argv[1]))
    sys.stderr.flush()
    os._exit(status)  # threads of kernels and devices are not waited for
