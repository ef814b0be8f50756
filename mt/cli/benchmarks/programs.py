"""Start of server programs for benchmarks. The programs must log their port as JSON."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mt.errors import MTError

from .contender import ROOT

START = 300.0  # seconds for a program to load its model


@contextmanager
def started(module: str, options: Sequence[str], log: Path) -> Iterator[int]:
    """Run `python -m MODULE OPTIONS` during the context, and yield its port. Its log is written to `log`.

    Raises: MTError if the program does not start.
    """
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen([sys.executable, "-m", module, *options], cwd=ROOT, stdout=file, stderr=file)
    try:
        yield _listening(process, module, log)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _listening(process: "subprocess.Popen[bytes]", module: str, log: Path) -> int:
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if '"listening"' in line:
                return int(json.loads(line)["port"])
        time.sleep(0.1)
    raise MTError(f"{module} did not start; {log} ends with: {log.read_text(encoding='utf-8')[-300:]}")
