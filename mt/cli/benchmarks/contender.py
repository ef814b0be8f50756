"""Contenders: processes that each run one of the compared libraries. The benchmark sends jobs to them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from mt.errors import MTError

from .harness import PeerJob, PeerResult, PeerSetup

ROOT = Path(__file__).resolve().parents[3]


class ContenderError(MTError):
    """Raised if a contender cannot start or a job fails."""


@dataclass(frozen=True)
class Launch:
    """Instructions to start a contender: the module whose `main` it runs, its setup, additional environment variables.

    `without` names packages that the process cannot import. For example, a library that uses torch only if torch is
    installed is measured without torch.
    """

    module: str
    setup: PeerSetup
    environment: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        blocked = "".join(f"sys.modules[{name!r}] = None; " for name in self.without)
        return [sys.executable, "-c", f"import sys; {blocked}from {self.module} import main; main()"]


class ContenderProcess:
    """A process that answers each line of JSON with a line of JSON. Between jobs, it waits on its standard input."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, setup: object
    ) -> None:
        """Start the process, and wait until it has answered `setup`. Raises: ContenderError if this fails.

        `log` is the file for the stderr of the process.
        """
        self.name = name
        self._log = log
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        begun = time.perf_counter()
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)},
                encoding="utf-8",
            )
        try:
            self.ask(setup)
        except ContenderError:
            self.close()
            raise
        self.startup_seconds = time.perf_counter() - begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stdin of the process, which ends it. Kill it if it still runs after 20 seconds."""
        stdin, stdout = self._pipes()
        stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdout.close()

    def ask(self, message: object) -> dict[str, Any]:
        """Return the answer to a message. Raises: ContenderError if the process reports an error or ends."""
        stdin, stdout = self._pipes()
        try:
            stdin.write(json.dumps(message) + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # the process ended; its log holds the error
        line = stdout.readline()
        if not line:
            log_lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise ContenderError(f"{self.name}: its process ended; {self._log} ends with: {' | '.join(log_lines[-3:])}")
        values: dict[str, Any] = json.loads(line)
        if "error" in values:
            raise ContenderError(f"{self.name}: {values['error'].strip().splitlines()[-1]}\n{values['error']}")
        return values

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout


class Contender(ContenderProcess):
    """A running process with the library of a contender. It has translated one sentence when it is created."""

    def __init__(self, name: str, launch: Launch, log: Path) -> None:
        super().__init__(name, launch.command, dict(launch.environment), log, asdict(launch.setup))

    def run(self, job: PeerJob) -> PeerResult:
        """Run a job and return the result. Raises: ContenderError if the job fails.

        After a failed job, the process can run further jobs, unless it has ended.
        """
        values = self.ask(asdict(job))
        return PeerResult(**{**values, "latencies": tuple(values["latencies"]), "lines": tuple(values["lines"])})
