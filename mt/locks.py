"""One process at a time: a lock on a path that ends with the process that holds it, however that ends.

A record lock (POSIX, fcntl), which the processes that its holder forks do not keep, on a hidden file beside the path.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def waited_for(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, which need not be there itself, as soon as no other process does."""
    with _locked(path, fcntl.LOCK_EX):
        yield


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder, which need not be there itself: true; or false, if another process does."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    path = path.resolve()
    lock = path.with_name(f".{path.name}.lock")
    while True:
        with lock.open("a") as file:
            fcntl.lockf(file, how)
            if not _is(lock, file.fileno()):
                continue  # who held it before us has removed it
            try:
                yield
            finally:
                lock.unlink()
            return


def _is(path: Path, number: int) -> bool:
    """Whether this open file has that name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False
