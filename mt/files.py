"""Digests of files, atomic writes of files and folders, and locks between processes and threads."""

import ctypes
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Wait for the lock of `path`, and hold the lock during the block. The path need not exist.

    The lock excludes other processes and other threads. The system releases it if the process ends. The lock is a
    hidden file in the same folder, which is removed when the lock is released. That is safe because FileLock does not
    count a lock of a file that was removed before it was locked.
    """
    with _file_lock(path) as held:
        try:
            yield
        finally:
            Path(held.lock_file).unlink(missing_ok=True)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Yield True and hold the lock of `path` during the block.

    Yield False if another process or thread holds the lock.
    """
    held = _file_lock(path)
    try:
        held.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        Path(held.lock_file).unlink(missing_ok=True)
        held.release()


def _file_lock(path: Path) -> FileLock:
    path = path.resolve()
    path.parent.stat()  # raises FileNotFoundError for a missing folder, which FileLock would create
    return FileLock(path.with_name(f".{path.name}.lock"))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder. It replaces `folder` when the block ends, and is removed if the block raises an exception.

    Readers see the old or the new folder, never an incomplete one, even if a process is killed or the power fails. On
    systems and file systems that cannot exchange two folders, there is no folder for a moment. If `folder` is a
    symbolic link, the link's target is replaced. Concurrent writers of one folder wait for each other.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder), locked_folder(folder) as temporary:
        yield temporary


@contextmanager
def locked_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, as `atomic_folder` does, to a caller that holds the lock of `folder`."""
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _replace_folder(temporary, folder)


def _replace_folder(temporary: Path, folder: Path) -> None:
    """Write the folder `temporary` to the disk, then rename it to `folder`. An existing `folder` is removed."""
    replaced = folder.with_name(f".{folder.name}.old")
    for parent, _, names in os.walk(temporary, topdown=False):
        for name in names:
            _sync(Path(parent, name))
        _sync(Path(parent))
    if not folder.exists():
        temporary.rename(folder)
    elif not _exchange(temporary, folder):
        shutil.rmtree(replaced, ignore_errors=True)
        folder.rename(replaced)
        temporary.rename(folder)
    _sync(folder.parent)
    for leftover in (temporary, replaced):
        shutil.rmtree(leftover, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders atomically. Return False if the system or the file system cannot do this."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)  # Linux, glibc since 2.28
    current_folder, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = (current_folder, os.fsencode(first), current_folder, os.fsencode(second))
    return rename is not None and rename(*names, exchange) == 0


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, to which the caller writes a file.

    The file replaces `path` when the block ends, or is removed if the block raises an exception. Each caller gets
    another temporary path: of several concurrent writers, the last to end replaces the file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make the system write its buffers of a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
