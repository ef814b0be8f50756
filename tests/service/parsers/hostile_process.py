"""A parser process with operations that exceed each limit."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Any

from service.parsers import process
from service.parsers.operations import OPERATIONS
from service.processes import LENGTH


def spin(seconds: float) -> float:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def sleep(seconds: float, _: bytes = b"") -> float:
    time.sleep(seconds)
    return seconds


def wait(path: str) -> None:
    open(path, "x").close()
    while os.path.exists(path):
        time.sleep(0.01)


def allocate(size: int) -> int:
    return len(b"a" * size)


def nest(depth: int) -> int:
    return 0 if depth == 0 else 1 + nest(depth - 1)


def die(code: int) -> None:
    os._exit(code)


def abort(_: object) -> None:
    os.abort()


def kill(notes: str) -> int:
    """Be killed, unless the file `notes`, to which each call adds a line, has two lines. Return their number."""
    with open(notes, "a+", encoding="ascii") as file:
        file.write("called\n")
        file.seek(0)
        calls = len(file.readlines())
    if calls < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return calls


def be_killed(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(message: str) -> None:
    raise ValueError(message)


def identity(value: Any) -> Any:
    return value


def lie(answer: bytes) -> None:
    """Send the lines of an answer that `dump_outcome` has not written, as code in a document could."""
    os.write(int(sys.argv[1]), b"".join(LENGTH.pack(len(line)) + line for line in answer.split(b"\n")))


def announce(size: int) -> None:
    """Send the beginning of an answer, and die after the length of its content."""
    first = b'["done",false,"bytes",null]'
    os.write(int(sys.argv[1]), LENGTH.pack(len(first)) + first + LENGTH.pack(size))
    os._exit(0)


def environment(name: str) -> str | None:
    return os.environ.get(name)


def blocks(number: int) -> bool:
    return number in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def dumpable(option: int) -> int:
    """Return whether programs may collect core dumps of this process. `option` is PR_GET_DUMPABLE of prctl(2)."""
    return int(ctypes.CDLL(None).prctl(option))


LIMITS = (spin, sleep, wait, allocate, nest, abort, die, kill, be_killed, fail)
QUESTIONS = (identity, lie, announce, environment, blocks, dumpable)
OPERATIONS.update({f.__name__: f for f in (*LIMITS, *QUESTIONS)})

if __name__ == "__main__":
    with contextlib.suppress(EOFError, OSError):
        process.main(int(sys.argv[1]))
    os._exit(0)
