"""Contenders: processes that each run one of the compared libraries. They read jobs and write results as lines of JSON.

This module imports only the standard library, so that the memory and the time of a contender are those of its library.
Between two jobs, a contender waits on its stdin. What its library prints goes to stderr, which is its log.
"""

import json
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


class ContenderError(Exception):
    """Raised if a contender cannot start or a job fails."""


@dataclass(frozen=True)
class Launch:
    """Instructions to start a contender: the module whose `main` it runs, and its setup, a dataclass.

    `checkout` is the checkout whose package `mt` it imports. It cannot import the packages `without`: a library that
    uses torch only if torch is installed is measured without torch.
    """

    module: str
    setup: Any
    checkout: Path = ROOT
    environment: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        lines = [
            "import sys",
            *(f"sys.modules[{name!r}] = None" for name in self.without),
            f"sys.path.insert(0, {str(self.checkout)!r})",
            "import mt",  # fixes the folder of all modules of mt
            f"sys.path[0] = {str(ROOT)!r}",
            f"from {self.module} import main",
            "main()",
        ]
        return [sys.executable, "-c", "\n".join(lines)]


class Contender:
    """A running contender, which answers each line of JSON with a line of JSON."""

    def __init__(self, name: str, launch: Launch, log: Path) -> None:
        """Start the process, and wait until it has answered the setup. Raises: ContenderError if this fails.

        `log` is the file for the stderr of the process.
        """
        self.name = name
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **dict(launch.environment)},
                encoding="utf-8",
            )
        try:
            self.ask(asdict(launch.setup))
        except ContenderError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stdin of the process, which ends it. Kill it if it still runs after 20 seconds."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def ask(self, message: object) -> dict[str, Any]:
        """Return the answer to a message. Raises: ContenderError if the process reports an error or ends.

        After an error that it reports, the process accepts further messages.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process ended; its log holds the error
        line = self._process.stdout.readline()
        if not line:
            log_lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise ContenderError(f"{self.name}: its process ended; {self._log} ends with: {' | '.join(log_lines[-3:])}")
        values: dict[str, Any] = json.loads(line)
        if "error" in values:
            raise ContenderError(f"{self.name}: {values['error']}")
        return values


def answer_jobs(prepare: Callable[[dict[str, Any]], Callable[[Any], dict[str, Any]]]) -> None:
    """Be a contender: read the setup and then jobs from stdin until its end. Print results and errors as JSON.

    `prepare` loads the library for a setup, and returns the function that runs a job.
    """
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    run: Callable[[Any], dict[str, Any]] | None = None
    for line in sys.stdin:
        answer: dict[str, Any] = {"ready": True}
        try:
            if run is None:
                run = prepare(json.loads(line))
            else:
                answer = run(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes.

    On Linux, VmHWM is used, because ru_maxrss begins with the peak of the parent process.
    """
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
