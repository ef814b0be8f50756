"""One process at a time in a folder: a lock that ends with the process that holds it, however that ends.

A record lock (POSIX, fcntl), which the processes that its holder forks do not keep, on a hidden file beside the folder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def waited_for(folder: Path) -> Iterator[None]:
    """Hold the folder's lock as soon as no other process does. The folder itself need not be there."""
    with _locked(folder, fcntl.LOCK_EX):
        yield


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock, which is true; false if another process does."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f".{folder.name}.lock")
    while True:
        with path.open("a") as file:
            fcntl.lockf(file, how)
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue  # who held it before us has removed it
            try:
                yield
            finally:
                path.unlink()
            return
