"""Processes: children that end when their parent ends, and errors that nobody reads."""

import ctypes
import io
import os
import select
import signal
import stat
import sys
from typing import Any

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
UNREAD_SECONDS = 2.0  # longest wait for the reader of stderr


def end_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent ends.

    `parent` is the process id of the parent. If the parent has already ended, exit now.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def drop_unread_errors() -> None:
    """Let the program go on, and end, if stderr is a pipe that nobody reads: drop what does not fit into the pipe."""
    if sys.stderr and sys.stderr is sys.__stderr__ and stat.S_ISFIFO(os.fstat(2).st_mode):
        sys.stderr = io.TextIOWrapper(_Pipe(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)


class _Pipe(io.FileIO):
    """A pipe that drops bytes after it was full for UNREAD_SECONDS, and then for as long as it is full."""

    _seconds = UNREAD_SECONDS

    def write(self, data: Any) -> int:
        for begin in range(0, len(data), select.PIPE_BUF):  # so much fits into a pipe that select calls ready
            self._seconds = UNREAD_SECONDS if select.select([], [self], [], self._seconds)[1] else 0
            if not self._seconds:
                break
            super().write(data[begin : begin + select.PIPE_BUF])
        return len(data)
