"""Memory for the packed weights of a model, which several processes can share.

Packed int8 weights are a file in a private cache folder of the user. Each process maps the file, so that all processes
share its pages, and a process that starts later need not pack the weights again. The name of the file is a digest of
everything that determines its content. A file is written once and never changed, and only the user may write to the
folder.
"""

import hashlib
import logging
import mmap
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mt.arrays import Arrays
from mt.files import lock

FREE_PART = 4
"""A file may take at most 1 / FREE_PART of the free space.

In a container, the cache folder can be on a small file system in memory.
"""

UNUSED_SECONDS = 30 * 24 * 3600
"""Files that no process has opened for this long are removed when another file is written."""

logger = logging.getLogger(__name__)

Fill = Callable[[mmap.mmap], None]


def digest(arrays: Arrays, *more: bytes) -> str:
    """Return a digest of the names, types, shapes and contents of `arrays`, and of `more`.

    The order of arrays is irrelevant.
    """
    content = hashlib.sha256()
    for name, array in sorted(arrays.items(), key=lambda item: item[0]):
        content.update(f"{name} {array.dtype} {array.shape}\n".encode())
        content.update(np.ascontiguousarray(array).reshape(-1).data)
    for part in more:
        content.update(part)
    return content.hexdigest()


def private_memory(size: int) -> mmap.mmap:
    """Return `size` bytes of memory that belongs to this process alone and contains zeros."""
    return mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def shared_memory(folder: Path, name: str, size: int, fill: Fill) -> mmap.mmap | None:
    """Return the file `name` of a private folder, mapped as read-only memory of `size` bytes.

    If the file does not exist, it is created: `fill` writes its content, and other processes wait meanwhile. If the
    folder cannot be used, log the reason and return None.
    """
    path = folder / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(folder.lstat(), stat.S_IFDIR)
        if not path.exists():
            with lock(path):
                if not path.exists():
                    _write(path, size, fill)
        return _map(path, size)
    except OSError as error:
        logger.info("packed weights are not shared with other processes: %s", error)
        return None


def _map(path: Path, size: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        _check_private(status, stat.S_IFREG)
        if status.st_size != size:
            raise OSError(f"{path} has {status.st_size} bytes, not {size}")
        os.utime(descriptor)
        return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)


def _write(path: Path, size: int, fill: Fill) -> None:
    """Write a file of `size` bytes, and remove files that were not used for long.

    The file becomes visible only when it is complete, even if the power fails.
    """
    space = os.statvfs(path.parent)
    if size * FREE_PART > space.f_bavail * space.f_frsize:
        raise OSError(f"{path.parent} has too little free space")
    for other in path.parent.glob("*"):
        if other.stat().st_mtime < time.time() - UNUSED_SECONDS:
            other.unlink(missing_ok=True)
    temporary = path.with_suffix(".part")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)  # otherwise a full disk would kill the process
        with mmap.mmap(descriptor, size) as memory:
            fill(memory)
            memory.flush()
        os.fchmod(descriptor, 0o400)
        os.fsync(descriptor)
        temporary.rename(path)
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _check_private(status: os.stat_result, kind: int) -> None:
    """Check that a file has the type `kind` (of `stat`), belongs to this user and is closed to all other users.

    Raises:
        OSError: One of these conditions does not hold.
    """
    if stat.S_IFMT(status.st_mode) != kind or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError("a file or folder of the cache belongs to another user, or other users have access to it")
