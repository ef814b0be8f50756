"""`python -m service.parsers.process DESCRIPTOR`: one parser process, started by pool.py.

The process reads an operation with its arguments from a socket, runs it, and sends the outcome. It ends when the socket
does. The system kills it when it exceeds its processor time; memory is limited by its address space.
"""

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mt.errors import DocumentError
from service.parsers.operations import OPERATIONS

HEAD = struct.Struct("<Q")  # length of a frame
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
NESTING = 3000  # Python frames; deeper structures are refused


class Status(StrEnum):
    """Kind of an outcome."""

    DONE = "done"
    REFUSED = "refused"  # the input is wrong: a DocumentError
    MEMORY = "memory"
    NESTING = "nesting"
    FAILED = "failed"  # a library or our code failed on the input


@dataclass(frozen=True)
class ProcessLimits:
    """Memory in bytes beyond what the process takes at its start, and processor time in seconds per operation."""

    memory_bytes: int
    cpu_seconds: int


def send(connection: socket.socket, content: Any) -> None:
    """Send a pickled object after its length."""
    data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    connection.sendall(HEAD.pack(len(data)))
    connection.sendall(data)


def receive(connection: socket.socket) -> Any:
    """Receive a pickled object. Raises EOFError when the service has ended."""
    return pickle.loads(_read(connection, HEAD.unpack(_read(connection, HEAD.size))[0]))


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def run(operation: str, arguments: tuple[Any, ...]) -> tuple[Status, Any]:
    """Run an operation and return its outcome: a result, a message for the client, or a line of code."""
    try:
        return Status.DONE, OPERATIONS[operation](*arguments)
    except DocumentError as error:
        return Status.REFUSED, str(error)
    except MemoryError:
        return Status.MEMORY, None
    except RecursionError:
        return Status.NESTING, None
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Status.FAILED, f"{type(error).__name__} at {frame.filename}:{frame.lineno}"


def limit_memory(size: int) -> None:
    """Let this process take `size` more bytes of address space."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(descriptor: int) -> None:
    """Serve operations until the socket ends."""
    connection = socket.socket(fileno=descriptor)
    limits, parent = receive(connection)
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        return
    sys.setrecursionlimit(NESTING)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_memory(limits.memory_bytes)
    send(connection, Status.DONE)
    while True:
        operation, arguments = receive(connection)
        allowed = int(time.process_time()) + 1 + limits.cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
        status, content = run(operation, arguments)
        send(connection, (status, content))
        if status is Status.MEMORY:
            return  # the pool starts a fresh process, whose memory is not fragmented


if __name__ == "__main__":
    with contextlib.suppress(EOFError, OSError):
        main(int(sys.argv[1]))
    os._exit(0)
