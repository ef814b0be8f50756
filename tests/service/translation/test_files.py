"""Translated files that wait to be fetched."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.errors import NotFound
from service.translation.files import SMALLEST_BYTES, FileLimits, FileStore

Put = tuple[str, str, int]  # owner, name, bytes


@pytest.mark.parametrize(
    ("puts", "left"),
    [
        ([("a", "1", 60), ("a", "2", 60)], "2"),
        ([("a", "1", 40), ("b", "2", 30), ("b", "3", 30)], "123"),
        ([("a", "1", 40), ("b", "2", 30), ("b", "3", 31)], "13"),  # who has most loses the oldest of theirs
        ([("a", "1", 10), ("b", "2", 90), ("b", "3", 90)], "13"),
        ([("a", "1", 10), ("b", "2", 101)], "1"),  # what is larger than all of the room
    ],
)
def test_who_has_most_makes_room(puts: Sequence[Put], left: str) -> None:
    assert _left(FileStore(FileLimits(bytes=100 * SMALLEST_BYTES)), puts) == left


def test_files_go_when_their_time_is_over() -> None:
    time = [0.0]
    files = FileStore(FileLimits(seconds=10), clock=lambda: time[0])
    name = asyncio.run(files.put("a.txt", b"a", "me"))
    time[0] = 9.9
    begun = files.open(name)
    time[0] = 10.0
    with pytest.raises(NotFound):
        files.open(name)
    with begun:
        assert begun.read() == b"a", "a download that has begun ends"
    files.close()


def test_files_of_a_killed_service_are_deleted_at_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = """if True:
        import asyncio, os
        from service.translation.files import FileLimits, FileStore
        files = FileStore(FileLimits())
        asyncio.run(files.put("a.txt", b"a", "me"))
        os._exit(9)"""
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert [file.read_bytes() for file in tmp_path.glob("mt-files-*/*")] == [b"a"]
    living = FileStore(FileLimits())
    asyncio.run(living.put("b.txt", b"b", "me"))
    FileStore(FileLimits()).close()
    assert [file.read_bytes() for file in tmp_path.glob("mt-files-*/*")] == [b"b"]
    assert [folder.stat().st_mode & 0o077 for folder in tmp_path.glob("mt-files-*")] == [0]
    living.close()
    assert list(tmp_path.iterdir()) == []


def _left(files: FileStore, puts: Sequence[Put]) -> str:
    """The names of those that are still there when all have been put."""
    kept = {name: asyncio.run(files.put(name, b"x" * size * SMALLEST_BYTES, owner)) for owner, name, size in puts}
    found = ""
    for name, address in kept.items():
        try:
            files.open(address).close()
        except NotFound:
            continue
        found += name
    files.close()
    return found
