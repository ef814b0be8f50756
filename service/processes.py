"""What all processes of the service have in common: no core dumps, and no settings in child processes."""

import ctypes
import os
import resource
import sys

DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)


def disable_core_dumps() -> None:
    """Prevent core dumps of this process, both to files and to programs that collect dumps.

    A core dump has the memory of a process, with texts and keys of clients.

    Child processes inherit the limit that prevents files, but not the flag that keeps programs from collecting dumps.
    Therefore each process calls this function.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DUMPABLE, 0)


def child_environment() -> dict[str, str]:
    """Return the environment variables of a child process, which finds the same modules as this process.

    The variables of the settings are left out, because they may be secrets, such as the admin key.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
