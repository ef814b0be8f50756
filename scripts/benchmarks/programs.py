"""Programs that say as JSON on which port they listen, started for a benchmark and ended after it."""

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
class Program:
    """`python -m module options`."""

    module: str
    options: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", self.module, *self.options]


@contextmanager
def started(name: str, program: Program, folder: Path) -> Iterator[int]:
    """The port of a program, which runs until the block ends. Raises MTError if it does not start."""
    log = folder / f"{name.replace(' ', '-')}.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(program.command, cwd=ROOT, stdout=file, stderr=file)
    try:
        yield _listening(process, log)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _listening(process: "subprocess.Popen[bytes]", log: Path) -> int:
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if '"listening"' in line:
                return int(json.loads(line)["port"])
        time.sleep(0.1)
    raise MTError(f"{' '.join(process.args)} did not start; {log} ends with: {log.read_text(encoding='utf-8')[-300:]}")  # type: ignore[arg-type]
