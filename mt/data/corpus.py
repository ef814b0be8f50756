"""Parallel text in: plain, .gz or .xz files, line-aligned or tab-separated, read as a stream.

A line ends at `\\n` and nowhere else: a U+2028 or a lone `\\r` inside a sentence must not shift the alignment of
everything after it. A faulty line is never skipped, since that too would shift the alignment: the good lines
before the first fault are handed on, the rest of the file is searched for further faults, and the DataError at the
end names the first ten. So a caller sees each fault of a file in one run, and must not keep what it made of a
stream that raised.
"""

import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, TypeVar, cast

from mt.errors import DataError, did_you_mean, problems

MAX_LINE_BYTES = 1 << 20
"""A longer line is no line of text; the limit keeps memory constant whatever the file is."""

MAX_PROBLEMS = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, and where they stand: `line` counts from 1, `file` is the name to print.

    Text of one language, for a language model, is a target; its source is empty.
    """

    source: str
    target: str
    line: int
    file: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Takes the place of a line that cannot be used; after a `fatal` one the file cannot be read further."""

    text: str
    fatal: bool = False


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file without their line ends (`\\n` or `\\r\\n`), and without a byte order mark.

    Raises DataError if the file is missing, empty, cut short, corrupt or not UTF-8.
    """
    _must_exist(path)
    return _without_faults(_lines(path), str(path))


def read_lines_and_faults(path: Path) -> Iterator[str | Fault]:
    """The lines of a file, with a Fault in the place of each that cannot be used. Raises DataError if it is missing."""
    _must_exist(path)
    return _lines(path)


def lines_and_faults(stream: IO[bytes], name: str) -> Iterator[str | Fault]:
    """The same of an open stream, which messages call by this name."""
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            yield Fault(f"{name}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes; is this text?", fatal=True)
            return
        if number == 1:
            raw = raw.removeprefix(BYTE_ORDER_MARK)
        yield _decode(raw, f"{name}:{number}")


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """Line n of one file with line n of the other.

    Raises DataError as `read_lines` does, and if the files have different numbers of lines.
    """
    _must_exist(source, target)
    return _without_faults(_aligned(source, target), f"{source} and {target}")


def read_alone(path: Path) -> Iterator[Pair]:
    """The lines of a file as pairs without a source. Raises DataError as `read_lines` does."""
    return (Pair("", line, number, str(path)) for number, line in enumerate(read_lines(path), start=1))


def read_tsv(path: Path, source_column: int | None, target_column: int) -> Iterator[Pair]:
    """Two columns, counted from 0, of a tab-separated file, or the target's alone; further columns are ignored.

    Raises DataError as `read_lines` does, and if a line has too few columns.
    """
    assert target_column >= 0 and (source_column is None or 0 <= source_column != target_column)
    _must_exist(path)
    return _without_faults(_columns(path, source_column, target_column), str(path))


def _must_exist(*paths: Path) -> None:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise DataError(problems("There is no such corpus file", (_where_we_looked(path) for path in missing)))


def _where_we_looked(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: the folder {folder.absolute()} does not exist"
    neighbours = (file.name for file in folder.iterdir() if file.is_file())
    return f"{path}: not in {folder.absolute()}{did_you_mean(path.name, neighbours)}"


def _without_faults(items: Iterable[Item | Fault], name: str) -> Iterator[Item]:
    """The items up to the first fault; at the end a DataError with up to MAX_PROBLEMS of the faults."""
    found: list[str] = []
    empty = True
    for item in items:
        empty = False
        if isinstance(item, Fault):
            found.append(item.text)
            if len(found) == MAX_PROBLEMS:
                found.append("perhaps more: nothing was read after this")
                break
        elif not found:
            yield item
    if found:
        raise DataError(problems(f"{name} cannot be used", found))
    if empty:
        raise DataError(f"{name}: empty; a corpus has at least one line")


def _lines(path: Path) -> Iterator[str | Fault]:
    number = 0
    try:
        with _open(path) as stream:
            for line in lines_and_faults(stream, str(path)):
                number += 1
                yield line
    except EOFError:
        yield Fault(f"{path}: the compressed file is cut short after line {number}", fatal=True)
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        yield Fault(f"{path}: not a good {path.suffix} file after line {number}: {error}", fatal=True)
    except OSError as error:
        yield Fault(f"{path}: cannot be read after line {number}: {error.strerror or error}", fatal=True)


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


def _decode(raw: bytes, where: str) -> str | Fault:
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        around = raw[max(0, error.start - 20) : error.start + 20]
        return Fault(f"{where}: not UTF-8 at byte {error.start + 1} of the line, in {around!r}")


def _aligned(source: Path, target: Path) -> Iterator[Pair | Fault]:
    counts = [0, 0]
    file = str(source)
    for number, sides in enumerate(zip_longest(_lines(source), _lines(target)), start=1):
        faults = [side for side in sides if isinstance(side, Fault)]
        yield from faults
        if any(fault.fatal for fault in faults):
            return
        for side, text in enumerate(sides):
            counts[side] += text is not None
        match sides:
            case str(source_text), str(target_text):
                yield Pair(source_text, target_text, number, file)
    if counts[0] != counts[1]:
        yield Fault(
            f"not line-aligned: {source} has {counts[0]:,} lines and {target} has {counts[1]:,} lines; "
            "line n of one must be the translation of line n of the other"
        )


def _columns(path: Path, source_column: int | None, target_column: int) -> Iterator[Pair | Fault]:
    needed = 1 + max(source_column or 0, target_column)
    file = str(path)
    for number, line in enumerate(_lines(path), start=1):
        if isinstance(line, Fault):
            yield line
            continue
        columns = line.split("\t")
        if len(columns) < needed:
            has = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            text = repr(line if len(line) <= 60 else line[:57] + "...")
            yield Fault(f"{file}:{number}: has {has} where at least {needed} are needed: {text}")
        else:
            source = "" if source_column is None else columns[source_column]
            yield Pair(source, columns[target_column], number, file)
