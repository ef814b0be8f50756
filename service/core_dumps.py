"""Core dumps would write the memory of a process, with texts and keys of clients, to a file."""

import ctypes
import resource
import sys

DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)


def disable_core_dumps() -> None:
    """Keep the system from dumping the memory of this process, to a file or to a program that collects dumps.

    Child processes inherit the limit, but not the flag against programs: each process calls this function.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DUMPABLE, 0)
