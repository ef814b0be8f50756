"""Common rules of the processes of the service: no core dumps, and neither settings nor signals in child processes."""

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys

SERVICE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # handled by the service, blocked in its processes
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


def start_child(module: str) -> "tuple[subprocess.Popen[bytes], socket.socket]":
    """Start `python -m MODULE DESCRIPTOR`, where DESCRIPTOR is its end of a pair of sockets. Return the other end, too.

    Variables of the settings are not in its environment, because they may be secrets, such as the admin key.
    SERVICE_SIGNALS are blocked in it: Ctrl-C is sent to every process of a terminal, and systemd's SIGTERM to every
    process of a service, but the service itself ends its processes when they have finished their work.

    Raises: OSError if the system starts no process.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # it finds the same modules as this process
    ours, theirs = socket.socketpair()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SERVICE_SIGNALS)
    try:
        with theirs:
            command = [sys.executable, "-m", module, str(theirs.fileno())]
            process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process, ours
