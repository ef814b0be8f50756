"""Translated files that wait to be downloaded, and the schema of an earlier release."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.access.database import Database
from service.errors import NotFound, StorageFull
from service.translation import document_store
from service.translation.document_store import FILE_BYTES, DocumentStore

Put = tuple[str, str, int]  # owner, name, bytes with FILE_BYTES


async def content(store: DocumentStore, name: str) -> bytes:
    return b"".join([part async for part in store.parts(await store.find(name))])


@pytest.mark.parametrize(
    ("puts", "left"),
    [
        ([("a", "1", 6000), ("a", "2", 6000)], "2"),
        ([("a", "1", 5000), ("b", "2", 4500)], "12"),
        ([("a", "1", 5000), ("b", "2", 5001)], "2"),  # the caller with the most bytes loses its oldest
        ([("a", "1", 4100), ("b", "2", 4200), ("a", "3", 4100)], "13"),
        ([("a", "1", 5000), ("b", "2", 10_001)], "1"),  # larger than all of the room
    ],
)
async def test_the_caller_with_the_most_bytes_makes_room(database: Database, puts: Sequence[Put], left: str) -> None:
    store = DocumentStore(database, 10_000, 60)
    names = {}
    for owner, name, size in puts:
        try:
            names[name] = await store.put(name, b"x" * (size - FILE_BYTES), owner)
        except StorageFull:
            assert size > 10_000
    kept = [name for name, stored in names.items() if await is_stored(store, stored)]
    assert "".join(kept) == left


async def is_stored(store: DocumentStore, name: str) -> bool:
    try:
        await store.find(name)
    except NotFound:
        return False
    return True


async def test_a_content_is_read_in_parts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_store, "PART_BYTES", 1000)
    data = bytes(range(256)) * 40

    store = DocumentStore(database, 10**6, 60)
    name = await store.put("../a b?.txt", data, "me")
    assert name.endswith(".a b_.txt") and (await store.find(name)).name == "a b_.txt"
    assert await content(store, name) == data
    empty = await store.put("e.txt", b"", "me")
    assert await content(store, empty) == b""


async def test_a_deleted_file_ends_its_download(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later document may get the row number of a deleted one."""
    monkeypatch.setattr(document_store, "PART_BYTES", 10)

    store = DocumentStore(database, FILE_BYTES + 30, 60)
    parts = store.parts(await store.find(await store.put("a.txt", b"a" * 30, "me")))
    assert await anext(parts) == b"a" * 10
    await store.put("b.txt", b"b" * 30, "me")
    with pytest.raises(NotFound):
        await anext(parts)


async def test_files_expire(database: Database) -> None:
    store = DocumentStore(database, 10**6, 0.05)
    name = await store.put("a.txt", b"a", "me")
    await asyncio.sleep(0.1)
    assert not await is_stored(store, name)


def test_a_database_of_an_earlier_release_keeps_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    Database.open(path).close()
    old = sqlite3.connect(path)
    old.execute("INSERT INTO keys VALUES ('a', x'00', 'wiki', NULL, NULL, 1, NULL, 0)")
    old.execute("DROP TABLE documents")
    old.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, content BLOB NOT NULL)")
    old.execute("CREATE TABLE editable_documents (number INTEGER PRIMARY KEY)")
    old.execute("ALTER TABLE memories DROP COLUMN ready")
    old.execute("PRAGMA user_version = 6")
    old.commit()
    old.close()
    with Database.open(path) as database:
        tables = database.run_sync(
            lambda connection: connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        )
        assert ("editable_documents",) not in tables
        assert database.run_sync(lambda connection: connection.execute("SELECT name FROM keys").fetchall()) == [
            ("wiki",)
        ]
        asyncio.run(DocumentStore(database, 10**6, 60).put("a.txt", b"a", "me"))
