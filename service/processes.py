"""Common rules of the processes of the service: no core dumps, and neither settings nor signals in child processes.

A child process uses its end of the socket to the service as a Connection of multiprocessing, which sends and receives
whole messages. The service itself must not block, and reads and writes the LENGTH before each message.
"""

import ctypes
import logging
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from functools import partial
from threading import Thread

SERVICE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # handled by the service, blocked in its processes
MAX_LINE = 10_000  # bytes of a line of a process that are logged as one line
DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)
LENGTH = struct.Struct("!i")  # bytes of a message, as a Connection writes it before messages of less than 2 GiB


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
    Lines that it writes to stderr are logged: it goes on even if nobody reads the stderr of the service.
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
            command = [sys.executable, "-P", "-m", module, str(theirs.fileno())]
            process = subprocess.Popen(
                command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    Thread(target=_log_lines, args=(module, process), daemon=True).start()
    return process, ours


def _log_lines(name: str, process: "subprocess.Popen[bytes]") -> None:
    """Log what a process writes to stderr, and wait for its end, so that it leaves no zombie."""
    assert process.stderr
    with process.stderr as stderr:
        for line in iter(partial(stderr.readline, MAX_LINE), b""):
            logging.getLogger(name).warning(line.decode(errors="replace").rstrip())
    process.wait()
