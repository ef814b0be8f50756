"""Common rules of the processes of the service: no core dumps, and neither settings nor signals in child processes."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVICE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # handled by the service, blocked in workers
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


@contextmanager
def block_service_signals() -> Iterator[None]:
    """Block SERVICE_SIGNALS in this thread while the context is open. Processes started meanwhile inherit the block.

    Ctrl-C is sent to every process of a terminal, and systemd's SIGTERM to every process of a service. A worker must
    ignore both signals and finish its texts.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SERVICE_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
