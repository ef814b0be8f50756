"""Output file with one line for each input line. A job that was killed can continue the file later.

FILE.part contains the lines that were written so far; the last line may be incomplete. FILE.part.jsonl contains the
description of the job and the numbers of the lines for which the input could not be processed, called problem lines. At
the end, FILE.part is renamed to FILE or, if FILE ends with .gz or .xz, compressed to FILE.
"""

import gzip
import json
import lzma
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from mt.errors import DataError, problems
from mt.files import try_lock

BLOCK = 1 << 20  # number of bytes that are read or copied at a time


class ResumableFile:
    """Output file that a later process can continue.

    `lines` is the number of lines that this and earlier processes have written. `problems` is the number of problem
    lines among them.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        """Open the file. If it was begun with the same `job`, writing continues after the last complete line.

        `job` describes all inputs and options on which the lines depend, as JSON values. If `job` is empty, always
        begin a new file. Raises: DataError if the file was begun with another `job`, if another process is writing it,
        or if it cannot be written.
        """
        self.path = path
        self._part = path.with_name(path.name + ".part")
        self._record = path.with_name(path.name + ".part.jsonl")
        with ExitStack() as stack:
            self._open(job, stack)
            self._lock = stack.pop_all()

    def _open(self, job: Mapping[str, Any], stack: ExitStack) -> None:
        path = self.path
        try:
            if not stack.enter_context(try_lock(path)):
                raise DataError(f"{path}: another process is writing this file; wait for its end, or name another file")
            self.lines = _cut_to_lines(self._part)
            faulty = self._check(job) if self.lines else []
            if not job:
                self._part.unlink(missing_ok=True)
                self.lines, faulty = 0, []
            self.problems = len(faulty)
            temporary = path.with_name(path.name + ".part.new")
            temporary.write_text("".join(json.dumps(entry) + "\n" for entry in (job, *faulty)), encoding="utf-8")
            temporary.replace(self._record)
            self._records = self._record.open("a", encoding="utf-8")
            self._file = self._part.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the files. If they contain no line, delete them; otherwise a later process can continue them."""
        with self._lock:
            self._file.close()
            self._records.close()
            if not self.lines:
                self._part.unlink(missing_ok=True)
                self._record.unlink(missing_ok=True)

    def write(self, line: str, problem: bool) -> None:
        """Append `line`, which must not contain a line end. `problem` tells whether it is a problem line."""
        assert "\n" not in line
        self.lines += 1
        if problem:  # the number is written before the line, so that it is not lost if the process is killed
            self.problems += 1
            self._records.write(f"{self.lines}\n")
            self._records.flush()
        self._file.write(line + "\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        """Rename the complete file to `path`. If `path` ends with .gz or .xz, compress the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self.path.suffix in (".gz", ".xz"):
            temporary = self.path.with_name(self.path.name + ".part.new")
            with self._part.open("rb") as plain, temporary.open("wb") as raw:
                with lzma.open(raw, "wb") if self.path.suffix == ".xz" else gzip.open(raw, "wb") as packed:
                    shutil.copyfileobj(plain, packed, BLOCK)
                raw.flush()
                os.fsync(raw.fileno())
            temporary.replace(self.path)
            self._part.unlink()
        else:
            self._part.replace(self.path)
        self._record.unlink()

    def _check(self, job: Mapping[str, Any]) -> list[int]:
        """Return the numbers of the problem lines. Raises: DataError if the file was begun with another `job`."""
        repair = f"repeat the command of that job, or remove {self._part} to start again"
        try:
            begun, *faulty = map(json.loads, self._record.read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError) as error:
            raise DataError(f"{self._part}: was begun by an unknown job ({self._record}: {error}); {repair}") from error
        now = json.loads(json.dumps(job))
        changed = [name for name in {**begun, **now} if begun.get(name) != now.get(name)]
        if changed:
            differing = [f"{name}: was {begun.get(name)!r}, now {now.get(name)!r}" for name in changed]
            raise DataError(problems(f"{self._part} was begun by another job; {repair}", differing))
        return [number for number in faulty if number <= self.lines]


def _cut_to_lines(path: Path) -> int:
    """Truncate a file after its last complete line. Return the number of lines, which is 0 if the file is missing."""
    if not path.exists():
        return 0
    lines = end = read = 0
    with path.open("rb+") as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n")
            if b"\n" in block:
                end = read + block.rindex(b"\n") + 1
            read += len(block)
        file.truncate(end)
    return lines
