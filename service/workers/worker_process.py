"""Main program of a worker process: `python -m service.workers.worker_process DESCRIPTOR`, started by worker.py.

DESCRIPTOR is the file descriptor of a socket to the service. When the service ends for any reason, the worker process
ends too: the socket closes, and Linux kills the process.
"""

import faulthandler
import os
import pickle
import socket
import sys
from collections.abc import Sequence
from typing import Any

from mt.processes import end_with_parent
from service.errors import error_location
from service.pauses import shorten_pauses
from service.processes import disable_core_dumps
from service.workers.messages import LENGTH, FromWorker, OptionsMemory, ToWorker, WorkerStopped
from service.workers.worker_loop import load as load_model
from service.workers.worker_loop import work

CHUNK = 1 << 18  # bytes read at a time


class ServiceGone(Exception):
    """Raised when the socket to the service is closed, because the service has ended."""


class Channel:
    """The worker's end of the socket, which carries pickles, each preceded by its length."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = bytearray()
        self._memory = OptionsMemory()

    def send(self, messages: Sequence[FromWorker]) -> None:
        """Send messages. Raises: ServiceGone if the service has ended."""
        data = pickle.dumps(messages, pickle.HIGHEST_PROTOCOL)
        try:
            self._connection.sendall(LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise ServiceGone from error

    def receive(self, wait: bool) -> list[ToWorker]:
        """Return the messages that have arrived. If `wait` is true, wait until there is at least one.

        Raises: ServiceGone if the service has ended.
        """
        messages: list[ToWorker] = []
        while True:
            while (frame := self._frame()) is not None:
                messages += self._memory.unpack(frame)
            if not self._fill(wait and not messages):
                return messages

    def receive_start(self) -> Any:
        """Wait for the first message and return it. Raises: ServiceGone if the service has ended."""
        while (frame := self._frame()) is None:
            self._fill(True)
        return pickle.loads(frame)

    def _frame(self) -> bytes | None:
        if len(self._read) < LENGTH.size:
            return None
        end = LENGTH.size + int(LENGTH.unpack_from(self._read)[0])
        if len(self._read) < end:
            return None
        frame = bytes(self._read[LENGTH.size : end])
        del self._read[:end]
        return frame

    def _fill(self, wait: bool) -> bool:
        """Read the bytes that have arrived, and return whether there were any. If `wait` is true, wait for some.

        Raises: ServiceGone if the service has ended.
        """
        try:
            data = self._connection.recv(CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ServiceGone from error
        if not data:
            raise ServiceGone
        self._read += data
        return True


def main(descriptor: int) -> int:
    """Run a worker that talks to the service through the socket `descriptor`. Return the exit status."""
    faulthandler.enable()
    disable_core_dumps()
    shorten_pauses()
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        parent, setup, load = channel.receive_start()
        end_with_parent(parent)
        work(setup, load or load_model, channel.receive, channel.send)
    except ServiceGone:
        return 1
    except BaseException as error:
        channel.send([WorkerStopped(error_location(error))])
        return 1
    return 0


if __name__ == "__main__":
    status = main(int(sys.argv[1]))
    sys.stderr.flush()
    os._exit(status)  # without waiting for the threads of torch
