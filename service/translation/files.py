"""Store of translated files: a temporary folder of limited size, from which clients download them."""

import asyncio
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import gettempdir
from typing import BinaryIO

from mt.files import lock, try_lock
from service.access.eviction import evicted
from service.errors import NotFound, StorageFull

PREFIX = "mt-files-"
MAX_NAME = 100  # characters of the original name
SMALLEST_BYTES = 4096  # smallest size that a file takes on the disk


@dataclass(frozen=True)
class FileLimits:
    """Limits of the file store. If it is full, the oldest file of the caller with the most bytes is deleted."""

    seconds: float = 1800.0  # a file is deleted after this time
    bytes: int = 200_000_000  # limit for all files together


@dataclass(frozen=True)
class StoredFile:
    """A file in the folder."""

    path: Path
    owner: str
    size: int
    expires: float


class FileStore:
    """Stores files under names that nobody can guess. File names from clients are never used as paths."""

    def __init__(self, limits: FileLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(_temporary_folder(Path(gettempdir())))
        self._files: dict[str, StoredFile] = {}  # by name, the oldest first

    def close(self) -> None:
        """Delete all files."""
        self._stack.close()

    async def put(self, name: str, content: bytes, owner: str) -> str:
        """Store a file of the caller `owner`. Return its new name: random characters, a dot and `_safe_name(name)`.

        Raises: StorageFull if the disk is full.
        """
        stored_name = f"{secrets.token_urlsafe(24)}.{_safe_name(name)}"
        path = self._folder / secrets.token_hex(16)
        try:
            await asyncio.to_thread(path.write_bytes, content)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StorageFull from error
        size = max(len(content), SMALLEST_BYTES)
        self._files[stored_name] = StoredFile(path, owner, size, self._clock() + self._limits.seconds)
        self._expire()
        return stored_name

    def open(self, name: str) -> BinaryIO:
        """Open the file with the name that `put` returned. It can be read to its end even if it is deleted meanwhile.

        Raises: NotFound if no such file is stored.
        """
        self._expire()
        if name not in self._files:
            raise NotFound("There is no such file; files are deleted after a while")
        return self._files[name].path.open("rb")

    def _expire(self) -> None:
        now = self._clock()
        for name in [name for name, file in self._files.items() if file.expires <= now]:
            self._remove(name)
        excess = sum(file.size for file in self._files.values()) - self._limits.bytes
        for name in list(evicted(((name, file.owner, file.size) for name, file in self._files.items()), excess)):
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._files.pop(name).path.unlink(missing_ok=True)


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Make a folder in `parent`, and delete it when the context ends.

    First delete the folders that earlier services could not delete because they were killed.
    """
    for other in parent.glob(PREFIX + "*"):
        with suppress(OSError), try_lock(other) as ended:
            if ended:
                shutil.rmtree(other)
    folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
    with lock(folder):
        folder.mkdir(0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def original_name(name: str) -> str:
    """Return `name`, which `FileStore.put` returned, without the random characters and the dot at its beginning."""
    return name.partition(".")[2]


def _safe_name(name: str) -> str:
    """Return the last part of a path that a client sent, shortened if necessary.

    Every character before the suffix that is not a letter, a digit, " ", ".", "_" or "-" is replaced by "_".
    """
    base = PurePath(name.replace("\\", "/")).name
    stem, suffix = PurePath(base).stem, PurePath(base).suffix
    safe = "".join(letter if letter.isalnum() or letter in " ._-" else "_" for letter in stem).strip(". ")
    return (safe[:MAX_NAME] or "file") + suffix[:16].lower()
