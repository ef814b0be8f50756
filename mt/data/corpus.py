"""Streaming readers of parallel text: line-aligned or tab-separated files, plain or compressed as .gz or .xz.

A line ends only at `\\n`: a U+2028 or a lone `\\r` in a sentence does not shift the alignment of later lines. For the
same reason, an invalid line is never skipped. A reader yields the lines before the first fault, then searches the
remaining lines for further faults, and raises a DataError with the first ten. The caller must then discard all lines
of the file.
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
"""Maximum number of bytes of a line. The limit bounds the memory that a binary file can take."""

LONG_LINE = f"a line of more than {MAX_LINE_BYTES:,} bytes; accepted: text"
MAX_PROBLEMS = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation.

    `file` and `line` are the name of the file and the number of the line, from 1, for messages.
    """

    source: str
    target: str
    line: int
    file: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem in a file, described by `text`. If it is `fatal`, the rest of the file cannot be read."""

    text: str
    fatal: bool = False


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, without line ends (`\\n` or `\\r\\n`) and without a byte order mark.

    Raises: DataError if the file is missing, empty, cut short, corrupt or not UTF-8.
    """
    _must_exist(path)
    return _without_faults(_lines(path), str(path))


def read_lines_and_faults(path: Path) -> Iterator[str | Fault]:
    """Yield each line of a file, or a Fault in its place if it cannot be used.

    Raises: DataError if the file is missing.
    """
    _must_exist(path)
    return _lines(path)


def read_stream_lines(stream: IO[bytes], name: str) -> Iterator[str | Fault]:
    """Yield each line of an open stream, or a Fault in its place if it cannot be used. Messages contain `name`."""
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            yield Fault(f"{name}:{number}: {LONG_LINE}", fatal=True)
            return
        if number == 1:
            raw = raw.removeprefix(BYTE_ORDER_MARK)
        yield _decode(raw, f"{name}:{number}")


def read_parallel(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two files: line n of `source` with line n of `target`.

    Raises: DataError as `read_lines` does, or if the files have different numbers of lines.
    """
    _must_exist(source, target)
    return _without_faults(_aligned(source, target), f"{source} and {target}")


def read_tsv(path: Path, source_column: int, target_column: int) -> Iterator[SentencePair]:
    """Yield the pairs of two columns of a tab-separated file. Columns are counted from 0.

    Raises: DataError as `read_lines` does, or if a line has too few columns.
    """
    assert 0 <= source_column != target_column >= 0
    _must_exist(path)
    return _without_faults(_columns(_lines(path), str(path), source_column, target_column), str(path))


def read_tsv_stream(stream: IO[bytes], name: str, source_column: int, target_column: int) -> Iterator[SentencePair]:
    """Yield the pairs of two columns of an open stream, as `read_tsv` does. Messages contain `name`."""
    return _without_faults(_columns(read_stream_lines(stream, name), name, source_column, target_column), name)


def _must_exist(*paths: Path) -> None:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise DataError(problems("corpus files are missing", map(_missing_file, missing)))


def _missing_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: the folder {folder.absolute()} does not exist"
    neighbours = (file.name for file in folder.iterdir() if file.is_file())
    return f"{path}: not in {folder.absolute()}{did_you_mean(path.name, neighbours)}"


def _without_faults(items: Iterable[Item | Fault], name: str) -> Iterator[Item]:
    """Yield the items before the first Fault. Raises: DataError if there is a Fault or no item at all.

    After the first Fault, the other items are only searched for more faults. The DataError lists up to MAX_PROBLEMS.
    """
    faults: list[str] = []
    empty = True
    for item in items:
        empty = False
        if isinstance(item, Fault):
            faults.append(item.text)
            if len(faults) == MAX_PROBLEMS:
                faults.append("perhaps more problems: reading stopped here")
                break
        elif not faults:
            yield item
    if faults:
        raise DataError(problems(f"{name} cannot be used", faults))
    if empty:
        raise DataError(f"{name}: no text; accepted: a corpus with at least one line")


def _lines(path: Path) -> Iterator[str | Fault]:
    number = 0
    try:
        with open_corpus(path) as stream:
            for line in read_stream_lines(stream, str(path)):
                number += 1
                yield line
    except EOFError:
        yield Fault(f"{path}: the compressed file is cut short after line {number}", fatal=True)
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        yield Fault(f"{path}: a damaged {path.suffix} file after line {number}: {error}", fatal=True)
    except OSError as error:
        yield Fault(f"{path}: cannot be read after line {number}: {error.strerror or error}", fatal=True)


def read_content(path: Path) -> bytes:
    """Return the content of a file, decompressed.

    Raises: DataError if it is missing or damaged, or if a line has more than MAX_LINE_BYTES bytes.
    """
    _must_exist(path)
    content = bytearray()
    try:
        with open_corpus(path) as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise DataError(f"{path}: {LONG_LINE}")
                content += line
        return bytes(content)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def open_corpus(path: Path) -> IO[bytes]:
    """Open a file for reading bytes. If its name ends with .gz or .xz, it is decompressed while it is read."""
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


def _aligned(source: Path, target: Path) -> Iterator[SentencePair | Fault]:
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
                yield SentencePair(source_text, target_text, number, file)
    if counts[0] != counts[1]:
        yield Fault(
            f"not line-aligned: {source} has {counts[0]:,} lines and {target} has {counts[1]:,} lines; "
            "line n of one must be the translation of line n of the other"
        )


def _columns(
    lines: Iterable[str | Fault], file: str, source_column: int, target_column: int
) -> Iterator[SentencePair | Fault]:
    needed = 1 + max(source_column, target_column)
    for number, line in enumerate(lines, start=1):
        if isinstance(line, Fault):
            yield line
            continue
        columns = line.split("\t")
        if len(columns) < needed:
            has = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            text = repr(line if len(line) <= 60 else line[:57] + "...")
            yield Fault(f"{file}:{number}: has {has} where at least {needed} are needed: {text}")
        else:
            yield SentencePair(columns[source_column], columns[target_column], number, file)
