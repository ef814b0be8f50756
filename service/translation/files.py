"""Translated files, kept for a while in a folder of bounded size until they are fetched."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from service.errors import NotFound

MOST_NAME = 100  # characters of the original name in the new one


@dataclass(frozen=True)
class FileLimits:
    """Seconds that a file is kept, and bytes of all of them; beyond these the oldest is dropped."""

    seconds: float = 1800.0
    bytes: int = 200_000_000


@dataclass(frozen=True)
class Kept:
    path: Path
    size: int
    until: float


class Files:
    """Files by names that nobody can guess. Only these names lead to files: what a client sends is no path."""

    def __init__(self, limits: FileLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._folder = TemporaryDirectory(prefix="mt-files-")
        self._kept: dict[str, Kept] = {}  # the oldest first

    def close(self) -> None:
        """Deletes all of them."""
        self._folder.cleanup()

    async def put(self, name: str, content: bytes) -> str:
        """Keeps a file; the name under which it is found, which ends with the given one."""
        found = f"{secrets.token_urlsafe(24)}.{_tame(name)}"
        path = Path(self._folder.name) / secrets.token_hex(16)
        await asyncio.to_thread(path.write_bytes, content)
        self._kept[found] = Kept(path, len(content), self._clock() + self._limits.seconds)
        self._drop()
        return found

    def path(self, name: str) -> Path:
        """Raises NotFound."""
        self._drop()
        if name not in self._kept:
            raise NotFound("There is no such file, or no longer")
        return self._kept[name].path

    def _drop(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        for name, kept in list(self._kept.items()):
            if kept.until > self._clock() and size <= self._limits.bytes:
                break
            size -= kept.size
            kept.path.unlink(missing_ok=True)
            del self._kept[name]


def original(name: str) -> str:
    """The name that a file was kept with."""
    return name.partition(".")[2]


def _tame(name: str) -> str:
    """A name without folders, control characters and the like."""
    base = PurePath(name.replace("\\", "/")).name
    stem, suffix = PurePath(base).stem, PurePath(base).suffix
    safe = "".join(letter if letter.isalnum() or letter in " ._-" else "_" for letter in stem).strip(". ")
    return (safe[:MOST_NAME] or "file") + suffix[:16].lower()
