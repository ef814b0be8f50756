"""Disabling of core dumps: a core dump writes the memory of a process to a file, with texts and keys of clients."""

import ctypes
import resource
import sys

DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)


def disable_core_dumps() -> None:
    """Prevent core dumps of this process, both to files and to programs that collect dumps.

    Child processes inherit the limit that prevents files, but not the flag that keeps programs from collecting dumps.
    Therefore each process calls this function.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DUMPABLE, 0)
