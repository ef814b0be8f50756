"""`python -m service.parsers.process DESCRIPTOR`: one parser process, started by pool.py.

The process receives an operation with its arguments, runs it, and sends the outcome, until the service closes its end
of the connection. Linux kills the process if it exceeds its processor time. The limit of memory is RLIMIT_AS.
"""

import contextlib
import gc
import os
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.processes import end_with_parent
from service.freed_memory import memory_bytes, return_freed_memory
from service.parsers.frames import Outcome, ParserLimits, Status, dump_outcome, load
from service.parsers.operations import OPERATIONS
from service.processes import disable_core_dumps

NESTING = 3000  # Python frames; deeper structures are refused
NICENESS = 5  # lower priority than the models and the service
KILLED_FIRST = "500"  # of 1,000; if the machine runs out of memory, Linux kills a parser before the service
FREED_BYTES = 4 << 20  # a process that uses more than this after an operation returns freed memory to the system
KEPT_BYTES = 100 << 20  # a process that grew by more ends after the operation, because its memory is fragmented


def run(operation: str, arguments: Sequence[Any]) -> Outcome:
    """Run the operation with this name, and return its outcome. Errors of the operation become outcomes, too."""
    try:
        return Outcome(Status.DONE, OPERATIONS[operation](*arguments))
    except DocumentLimitExceeded as error:
        return Outcome(Status.LIMIT, str(error))
    except DocumentError as error:
        return Outcome(Status.REFUSED, str(error))
    except MemoryError:
        return Outcome(Status.MEMORY)
    except RecursionError:
        return Outcome(Status.NESTING)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(Status.FAILED, f"{type(error).__name__} at {frame.filename}:{frame.lineno}")


def send(connection: "Connection[bytes, bytes]", outcome: Outcome) -> None:
    for message in dump_outcome(outcome):
        connection.send_bytes(message)


def confine(limits: ParserLimits) -> None:
    """Limit memory and recursion of this process, disable core dumps, and lower the priority."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    sys.setrecursionlimit(NESTING)
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST)
    disable_core_dumps()  # last: afterwards, only root may write to /proc/self


def main(descriptor: int) -> None:
    """Run operations until the service closes its end of the connection, which raises EOFError or OSError."""
    connection: Connection[bytes, bytes] = Connection(descriptor)
    limits, parent = load(connection.recv_bytes())
    end_with_parent(parent)
    confine(limits)
    send(connection, Outcome(Status.DONE))
    kept = memory_bytes("VmHWM") + KEPT_BYTES
    large = memory_bytes("RssAnon") + FREED_BYTES
    while True:
        operation, *arguments = load(connection.recv_bytes())
        allowed = int(time.process_time()) + 1 + limits.cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
        outcome = run(operation, arguments)
        last = outcome.status is Status.MEMORY or memory_bytes("VmHWM") > kept
        send(connection, Outcome(outcome.status, outcome.content, last))
        if last:
            return
        del arguments, outcome  # not kept until the next request
        if memory_bytes("RssAnon") > large:
            gc.collect()
            return_freed_memory()


if __name__ == "__main__":
    with contextlib.suppress(EOFError, OSError):
        main(int(sys.argv[1]))
    os._exit(0)
