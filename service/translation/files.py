"""Translated files, kept for a while in a folder of bounded size until they are fetched."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from service.errors import NotFound

MOST_NAME = 100  # characters of the original name in the new one


@dataclass(frozen=True)
class FileLimits:
    """Seconds that a file is kept, and bytes of all of them; beyond these who has most loses the oldest of theirs."""

    seconds: float = 1800.0
    bytes: int = 200_000_000


@dataclass(frozen=True)
class Kept:
    path: Path
    owner: str
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

    async def put(self, name: str, content: bytes, owner: str) -> str:
        """Keeps a file of a caller's; the name under which it is found, which ends with the given one."""
        found = f"{secrets.token_urlsafe(24)}.{_tame(name)}"
        path = Path(self._folder.name) / secrets.token_hex(16)
        await asyncio.to_thread(path.write_bytes, content)
        self._kept[found] = Kept(path, owner, len(content), self._clock() + self._limits.seconds)
        self._drop()
        return found

    def path(self, name: str) -> Path:
        """Raises NotFound."""
        self._drop()
        if name not in self._kept:
            raise NotFound("There is no such file, or no longer")
        return self._kept[name].path

    def _drop(self) -> None:
        now = self._clock()
        for name in [name for name, kept in self._kept.items() if kept.until <= now]:
            self._remove(name)
        sizes = Counter[str]()
        for kept in self._kept.values():
            sizes[kept.owner] += kept.size
        while sizes.total() > self._limits.bytes:
            [(most, _)] = sizes.most_common(1)
            name = next(name for name, kept in self._kept.items() if kept.owner == most)
            sizes[most] -= self._remove(name)

    def _remove(self, name: str) -> int:
        """The bytes that this frees."""
        gone = self._kept.pop(name)
        gone.path.unlink(missing_ok=True)
        return gone.size


def original(name: str) -> str:
    """The name that a file was kept with."""
    return name.partition(".")[2]


def _tame(name: str) -> str:
    """A name without folders, control characters and the like."""
    base = PurePath(name.replace("\\", "/")).name
    stem, suffix = PurePath(base).stem, PurePath(base).suffix
    safe = "".join(letter if letter.isalnum() or letter in " ._-" else "_" for letter in stem).strip(". ")
    return (safe[:MOST_NAME] or "file") + suffix[:16].lower()
