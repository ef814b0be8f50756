"""Start of server programs for benchmarks. The programs must log their port as JSON."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mt.errors import MTError

from .contender import ROOT

START = 300.0  # seconds for a program to load its model


@dataclass(frozen=True)
class ServerProgram:
    """A server program, which is started as `python -m MODULE OPTIONS`."""

    module: str
    options: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", self.module, *self.options]


@contextmanager
def started(name: str, program: ServerProgram, folder: Path) -> Iterator[int]:
    """Run a program during the context, and yield its port. Its log is written to `folder`.

    Raises: MTError if the program does not start.
    """
    log = folder / f"{name.replace(' ', '-')}.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(program.command, cwd=ROOT, stdout=file, stderr=file)
    try:
        yield _listening(process, program, log)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _listening(process: "subprocess.Popen[bytes]", program: ServerProgram, log: Path) -> int:
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if '"listening"' in line:
                return int(json.loads(line)["port"])
        time.sleep(0.1)
    command, end = " ".join(program.command), log.read_text(encoding="utf-8")[-300:]
    raise MTError(f"{command} did not start; {log} ends with: {end}")
