"""Execution of the commands of stages."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mt.processes import end_with_parent


@dataclass(frozen=True)
class StageCommand:
    """A program with its arguments and its working folder.

    Standard error is appended to the file `log`, and standard output is written to the file `output`.
    """

    argv: tuple[str, ...]
    folder: Path
    log: Path
    output: Path


class Execution:
    """A child process. It ends when this process ends."""

    def __init__(self, command: StageCommand, environment: Mapping[str, str]) -> None:
        parent = os.getpid()
        with command.log.open("ab") as log, command.output.open("wb") as output:
            self._process = subprocess.Popen(
                command.argv,
                cwd=command.folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                preexec_fn=lambda: end_with_parent(parent),
            )

    def wait(self, seconds: float) -> int | None:
        """Wait at most `seconds` for the program to end. Return its exit status, or None if it is still running."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Interrupt the program, and wait until it has ended."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()


class StageExecutor:
    """Executor of up to `slots` programs at the same time."""

    def __init__(self, gpus: Sequence[str] = (), slots: int = 1) -> None:
        """Create an executor with a slot for each entry of `gpus` or, without GPUs, with `slots` slots.

        An entry of `gpus` is the value of CUDA_VISIBLE_DEVICES for the programs of one slot, such as "0,1".
        """
        self._environments = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus] or [{} for _ in range(slots)]
        self._running: list[Execution | None] = [None] * len(self._environments)

    @property
    def slots(self) -> int:
        """Return the maximum number of programs that run at the same time."""
        return len(self._environments)

    def start(self, command: StageCommand) -> Execution:
        """Start a program. One of the slots must be free."""
        free = next(i for i, running in enumerate(self._running) if running is None or running.wait(0) is not None)
        self._running[free] = execution = Execution(command, self._environments[free])
        return execution
