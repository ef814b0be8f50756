"""Files and folders that appear whole or not at all, whenever a process is killed or a machine loses its power."""

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mt.locks import waited_for


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `folder` when the block ends well; else it is removed.

    A link stays one: what it points to is replaced. Several processes that write it do so one after the other.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with waited_for(folder):
        aside, replaced = (folder.with_name(f".{folder.name}.{end}") for end in ("part", "old"))
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        try:
            yield aside
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        for file in aside.iterdir():
            _flush(file)
        _flush(aside)
        if not folder.exists():
            aside.rename(folder)
        elif not _exchanged(aside, folder):
            shutil.rmtree(replaced, ignore_errors=True)
            folder.rename(replaced)
            aside.rename(folder)
        _flush(folder.parent)
        for left in (aside, replaced):
            shutil.rmtree(left, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change names at once, so that there is one of each name at every moment.

    False where a system cannot: that is Linux's call, of glibc since 2.28, and not of every file system.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def put(aside: Path, path: Path) -> None:
    """Rename a file that is written to what it replaces."""
    _flush(aside)
    aside.replace(path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    """Make sure that what was written is on the disk before it is renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
