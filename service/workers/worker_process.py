"""Main program of a worker process: `python -m service.workers.worker_process DESCRIPTOR`, started by worker.py.

DESCRIPTOR is the file descriptor of a socket to the service. When the service ends for any reason, the worker process
ends too: the socket closes, and Linux kills the process.
"""

import faulthandler
import os
import pickle
import sys
from collections.abc import Sequence
from itertools import groupby
from multiprocessing.connection import Connection
from typing import Any

from mt.processes import end_with_parent
from service.errors import error_location
from service.pauses import collect_while_idle, shorten_pauses
from service.processes import disable_core_dumps
from service.workers.messages import FromWorker, OptionsMemory, TextSentences, ToWorker, WorkerStopped
from service.workers.worker_loop import load as load_model
from service.workers.worker_loop import work


class ServiceGone(Exception):
    """Raised when the connection to the service is closed, because the service has ended."""


class Channel:
    """The worker's end of the connection to the service."""

    def __init__(self, descriptor: int) -> None:
        self._connection: Connection[bytes, bytes] = Connection(descriptor)
        self._memory = OptionsMemory()

    def send(self, messages: Sequence[FromWorker]) -> None:
        """Send messages, those with parts of long translations one by one: the service reads each in one piece.

        Raises: ServiceGone if the service has ended.
        """
        try:
            for is_part, group in groupby(messages, _is_part):
                for frame in ([one] for one in group) if is_part else [list(group)]:
                    self._connection.send_bytes(pickle.dumps(frame, pickle.HIGHEST_PROTOCOL))
        except OSError as error:
            raise ServiceGone from error

    def receive(self, wait: bool) -> list[ToWorker]:
        """Return the messages that have arrived. If `wait` is true, wait until there is at least one.

        Raises: ServiceGone if the service has ended.
        """
        messages: list[ToWorker] = []
        if wait:
            collect_while_idle()
        while (wait and not messages) or self._connection.poll():
            messages += self._memory.unpack(self._receive_bytes())
        return messages

    def receive_start(self) -> Any:
        """Wait for the first message and return it. Raises: ServiceGone if the service has ended."""
        return pickle.loads(self._receive_bytes())

    def _receive_bytes(self) -> bytes:
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise ServiceGone from error


def _is_part(message: FromWorker) -> bool:
    return isinstance(message, TextSentences)


def main(descriptor: int) -> int:
    """Run a worker that talks to the service through the socket `descriptor`. Return the exit status."""
    faulthandler.enable()
    disable_core_dumps()
    shorten_pauses()
    channel = Channel(descriptor)
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
