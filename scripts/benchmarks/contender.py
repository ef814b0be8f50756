"""The outside of a contender: starts its process, asks it to run jobs, and ends it."""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mt.errors import MTError

from .harness import Answer, Job, Setup

ROOT = Path(__file__).resolve().parents[2]


class ContenderError(MTError):
    """A contender that could not start, or failed at a job; says which, and with what."""


@dataclass(frozen=True)
class Launch:
    """How a contender is started: the module whose `main` it runs, what it loads, and its environment.

    `without` names packages that it cannot import: a library that looks for torch, but needs none, is then measured
    as it runs where there is none.
    """

    module: str
    setup: Setup
    environment: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        blocked = "".join(f"sys.modules[{name!r}] = None; " for name in self.without)
        return [sys.executable, "-c", f"import sys; {blocked}from {self.module} import main; main()"]


class Contender:
    """A running contender: idle, blocked on its stdin, but while it is asked something."""

    def __init__(self, name: str, launch: Launch, log: Path) -> None:
        """Starts it and waits until it has translated a first sentence. Raises ContenderError."""
        self.name = name
        self._log = log
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict(launch.environment), "PYTHONPATH": os.pathsep.join(paths)}
        begun = time.perf_counter()
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                encoding="utf-8",
            )
        try:
            self._ask(asdict(launch.setup))
        except ContenderError:
            self.close()
            raise
        self.startup_seconds = time.perf_counter() - begun

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, job: Job) -> Answer:
        """Raises ContenderError, after which it can be asked again, unless it died."""
        values = self._ask(asdict(job))
        return Answer(**{**values, "latencies": tuple(values["latencies"]), "lines": tuple(values["lines"])})

    def close(self) -> None:
        """Its stdin ends, and so does it."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        try:
            stdin.write(json.dumps(message) + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # it died, and its log says why
        line = stdout.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise ContenderError(f"{self.name}: its process ended; {self._log} ends with: {' | '.join(said[-3:])}")
        values: dict[str, Any] = json.loads(line)
        if "error" in values:
            raise ContenderError(f"{self.name}: {values['error'].strip().splitlines()[-1]}\n{values['error']}")
        return values


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
