"""Execution of the commands of stages."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mt.processes import end_with_parent


class StageExecutor:
    """Executor of up to `slots` programs at the same time."""

    def __init__(self, gpus: Sequence[str] = (), slots: int = 1) -> None:
        """Create an executor with a slot for each entry of `gpus` or, without GPUs, with `slots` slots.

        An entry of `gpus` is the value of CUDA_VISIBLE_DEVICES for the programs of one slot, such as "0,1".
        """
        self._environments = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus] or [{} for _ in range(slots)]
        self._running: list[subprocess.Popen[bytes] | None] = [None] * len(self._environments)

    @property
    def slots(self) -> int:
        """Return the maximum number of programs that run at the same time."""
        return len(self._environments)

    def start(self, argv: Sequence[str], folder: Path, log: Path, output: Path) -> "subprocess.Popen[bytes]":
        """Start a program in the working folder `folder`. It ends when this process ends. One slot must be free.

        Its standard error is appended to the file `log`, and its standard output is written to the file `output`.
        """
        free = next(i for i, running in enumerate(self._running) if running is None or running.poll() is not None)
        parent = os.getpid()

        def prepare() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for programs in the background
            end_with_parent(parent)

        with log.open("ab") as errors, output.open("wb") as out:
            self._running[free] = process = subprocess.Popen(
                argv,
                cwd=folder,
                env={**os.environ, **self._environments[free]},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                preexec_fn=prepare,
            )
        return process


def interrupt(process: "subprocess.Popen[bytes]") -> None:
    """Interrupt a program, and wait until it has ended."""
    process.send_signal(signal.SIGINT)
    process.wait()
