"""Child processes that end when their parent ends."""

import ctypes
import os
import signal
import sys

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def end_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent ends.

    `parent` is the process id of the parent. If the parent has already ended, exit now.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
