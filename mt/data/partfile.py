"""A file that gets one line for each line of another, written so that a job that was killed goes on where it was.

While FILE is made, FILE.part holds its lines, of which a kill may leave the last one cut off, and FILE.part.jsonl says
of which job they are, and which of them stand for a problem. The last step gives FILE its name, compressed if that
says so.
"""

import gzip
import json
import lzma
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mt.errors import DataError, problems
from mt.locks import held

BLOCK = 1 << 20  # bytes


class PartFile:
    """`lines` have been written, by this process or by those before it, and `problems` of them stand for a problem."""

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        """`job` is JSON: all that the lines depend on. What was begun with the same one is gone on with. An empty one
        cannot be repeated, so that what it left is dropped.

        Raises DataError if it was begun with another one, if another process is at it, or if nothing can be written
        there.
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
            if not stack.enter_context(held(path)):
                raise DataError(f"{path}: another process writes it; accepted: its end, or another file")
            self.lines = _cut_to_lines(self._part)
            faulty = self._check(job) if self.lines else []
            if not job:
                self._part.unlink(missing_ok=True)
                self.lines, faulty = 0, []
            self.problems = len(faulty)
            aside = path.with_name(path.name + ".part.new")
            aside.write_text("".join(json.dumps(entry) + "\n" for entry in (job, *faulty)), encoding="utf-8")
            aside.replace(self._record)
            self._records = self._record.open("a", encoding="utf-8")
            self._file = self._part.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was written stays for the next process; if it is nothing, no trace is left."""
        with self._lock:
            self._file.close()
            self._records.close()
            if not self.lines:
                self._part.unlink(missing_ok=True)
                self._record.unlink(missing_ok=True)

    def write(self, line: str, problem: bool) -> None:
        """The next line, without its end."""
        assert "\n" not in line
        self.lines += 1
        if problem:  # on the disk before the line is, so that none is forgotten
            self.problems += 1
            self._records.write(f"{self.lines}\n")
            self._records.flush()
        self._file.write(line + "\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        """All lines are there: give the file its name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self.path.suffix in (".gz", ".xz"):
            aside = self.path.with_name(self.path.name + ".part.new")
            with self._part.open("rb") as plain, aside.open("wb") as raw:
                with lzma.open(raw, "wb") if self.path.suffix == ".xz" else gzip.open(raw, "wb") as packed:
                    shutil.copyfileobj(plain, packed, BLOCK)
                raw.flush()
                os.fsync(raw.fileno())
            aside.replace(self.path)
            self._part.unlink()
        else:
            self._part.replace(self.path)
        self._record.unlink()

    def _check(self, job: Mapping[str, Any]) -> list[int]:
        """The lines with problems so far. Raises DataError if another job wrote them."""
        repair = f"repeat the command as it was, or remove {self._part} to begin anew"
        try:
            began, *faulty = map(json.loads, self._record.read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self._part} does not say of which job it is ({self._record}: {error}); {repair}"
            ) from error
        now = json.loads(json.dumps(job))
        differing = [
            f"{name}: was {began.get(name)!r}, now {now.get(name)!r}"
            for name in {**began, **now}
            if began.get(name) != now.get(name)
        ]
        if differing:
            raise DataError(problems(f"{self._part} was begun by another job; {repair}", differing))
        return [number for number in faulty if number <= self.lines]


def _cut_to_lines(path: Path) -> int:
    """Remove what follows the last whole line of a file, which may be missing, and count the lines."""
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
