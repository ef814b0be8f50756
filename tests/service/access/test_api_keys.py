"""API keys: made, found, refused; and kept without the keys themselves."""

import asyncio
import contextlib
import errno
import io
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Timer
from typing import Any

import pytest

from service.access.api_keys import ApiKey, find_key, list_keys, make_key
from service.access.database import MIGRATIONS, Database, DatabaseError
from service.errors import InvalidRequest, StorageFull, StorageUnavailable
from service.verbs.keys import main

Run = Callable[..., tuple[int, str, str]]
NOW = 1_800_000_000.0


def made(database: Database, name: str = "wiki", *limits: Any) -> tuple[str, ApiKey]:
    return database.run_sync(lambda connection: make_key(connection, name, *limits))


def test_a_damaged_database_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    with Database.open(path) as database:
        made(database)
        asyncio.run(database.truncate_log())
        path.write_bytes(b"\xff" * path.stat().st_size)
        with pytest.raises(StorageUnavailable, match="The database cannot be used") as raised:
            asyncio.run(find_key(database, "mt_secret"))
        assert int(raised.value.headers["Retry-After"]) > 0


def test_changes_are_refused_while_another_file_or_none_is_at_the_path(tmp_path: Path) -> None:
    path, aside = tmp_path / "service.db", tmp_path / "aside"

    def write() -> None:
        asyncio.run(database.write(lambda connection: connection.execute("DELETE FROM keys"), "a"))

    with Database.open(path) as database:
        write()
        path.rename(aside)
        for _ in range(2):
            with pytest.raises(StorageUnavailable, match="The database cannot be used"):
                write()
            assert database.lost()
            path.touch()
        aside.rename(path)
        write()
        assert not database.lost()


def test_a_read_only_database_is_named(database: Database) -> None:
    database.run_sync(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StorageUnavailable, match="The database is read-only"):
        asyncio.run(database.write(lambda connection: make_key(connection, "wiki"), "a"))


def test_a_key_is_found_by_its_text_alone(database: Database) -> None:
    secret, key = made(database, "wiki", 5, 100, NOW)
    other, _ = made(database, "mail")
    assert asyncio.run(find_key(database, secret)) == key
    assert (key.name, key.rate, key.quota, key.expires, key.revoked) == ("wiki", 5, 100, NOW, False)
    assert secret != other and len(secret) > 40 and secret.startswith("mt_")
    for wrong in ("", secret[:-1], secret + "a", secret.upper(), key.id, key.name, "\ud800", "\0", "ü" * 999):
        assert asyncio.run(find_key(database, wrong)) is None, wrong
    select, change = "SELECT digest FROM keys WHERE name = 'wiki'", "UPDATE keys SET digest = ? WHERE name = 'wiki'"
    (digest,) = database.run_sync(lambda connection: connection.execute(select).fetchone())
    near = digest[:-1] + bytes([digest[-1] ^ 1])
    database.run_sync(lambda connection: connection.execute(change, (near,)).fetchall())
    assert asyncio.run(find_key(database, secret)) is None, "the whole hash is compared"


def test_the_database_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    with Database.open(path) as database:
        secrets = [database.run_sync(partial(make_key, name=f"k{i}"))[0] for i in range(20)]
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"k19" in held
    for secret in secrets:
        assert secret.encode() not in held and secret.removeprefix("mt_").encode() not in held


def test_a_database_is_brought_up_to_date_once_and_only_its_owner_reads_its_files(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    path.touch(0o644)
    for _ in range(2):
        with Database.open(path) as database:
            version = database.run_sync(lambda connection: connection.execute("PRAGMA user_version").fetchone())
            assert version == (len(MIGRATIONS),)
            database.run_sync(lambda connection: connection.execute("UPDATE keys SET rate = 1"))
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
            assert modes == dict.fromkeys(("service.db", "service.db-shm", "service.db-wal"), 0o600)


async def test_a_closed_database_is_unavailable() -> None:
    """A request that the shutdown cancels may still undo what it has stored."""
    with Database.open(None) as database:
        pass
    with pytest.raises(StorageUnavailable, match="shutting down"):
        await database.write(list_keys)


async def test_reads_do_not_wait_for_the_write_lock(tmp_path: Path) -> None:
    """While another process holds the lock, keys and other rows are read, and writes are refused at once."""
    path, read = tmp_path / "service.db", "SELECT name FROM keys"
    with Database.open(path) as database:
        made(database)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await database.read(lambda connection: connection.execute(read).fetchall()) == [("wiki",)]
        assert await find_key(database, "mt_none") is None
        begun = time.monotonic()
        for caller in "abcdef":
            with pytest.raises(StorageUnavailable, match="The database is locked"):
                await database.write(lambda connection: None, caller)
        assert time.monotonic() - begun < 3
        other.execute("ROLLBACK")
        await database.write(lambda connection: make_key(connection, "phone"))


async def test_a_write_of_a_caller_has_little_time(tmp_path: Path) -> None:
    ran, quick = list[str](), Event()

    def make_slowly(connection: sqlite3.Connection) -> None:
        make_key(connection, "wiki")
        assert quick.wait(60)

    with Database.open(tmp_path / "service.db") as database:
        database.write_seconds = 0.1
        slow = asyncio.create_task(database.write(make_slowly, "a"))
        await asyncio.sleep(0)
        with pytest.raises(StorageUnavailable, match="The database is slow: try again in 2 s"):
            await database.write(lambda connection: ran.append("of a caller"), "b")
        with pytest.raises(StorageUnavailable):
            await slow
        quick.set()
        await database.write(lambda connection: ran.append("of the service"))
        assert await database.read(list_keys) == []  # the late transaction was rolled back
    assert ran == ["of the service"]


async def test_a_late_commit_is_answered_as_stored(tmp_path: Path) -> None:
    quick = Event()

    def commit_slowly(connection: sqlite3.Connection) -> str:
        make_key(connection, "wiki")
        connection.set_progress_handler(lambda: not quick.wait(60), 1)
        return "stored"

    with Database.open(tmp_path / "service.db") as database:
        database.write_seconds = 0.1
        Timer(0.5, quick.set).start()
        assert await database.write(commit_slowly, "a") == "stored"
        assert [key.name for key in await database.read(list_keys)] == ["wiki"]


async def test_a_full_disk_is_an_error_of_its_own_and_leaves_no_transaction(tmp_path: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # as few as there are
        for number in range(100):
            make_key(connection, "x" * 1000 + str(number))

    with Database.open(tmp_path / "service.db") as database:
        with pytest.raises(StorageFull):
            await database.write(fill)
        assert await database.read(list_keys) == []
        await database.write(lambda connection: connection.execute("UPDATE keys SET rate = 1"))


def test_rollbacks_do_not_damage_a_temporary_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SQLite's own temporary database was damaged, for all callers, by writes of one that were refused."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    random, unit = Random(1), "INSERT INTO memory_units VALUES (?, ?, ?, ?, ?)"

    def write(connection: sqlite3.Connection) -> None:
        match random.randrange(10):
            case 0:
                connection.execute("DELETE FROM memory_units WHERE memory = ?", (random.randrange(1500),))
            case 1 | 2 | 3:
                connection.execute("DELETE FROM glossaries WHERE rowid % 5 = ?", (random.randrange(5),))
            case _:
                memory = random.randrange(10**9)
                connection.executemany(
                    unit, ((memory, n, random.randrange(1 << 60), "s" * 60, "t") for n in range(999))
                )
        if random.random() < 0.4:
            raise InvalidRequest.listing("refused")

    with Database.open(None) as database:
        assert list(tmp_path.iterdir()) == []
        for _ in range(900):
            with suppress(InvalidRequest):
                database.run_sync(write)
        checked = database.run_sync(lambda connection: connection.execute("PRAGMA integrity_check").fetchall())
    assert checked == [("ok",)]


def test_a_missing_temporary_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite asks for the folder when a database in its cache outgrows it."""
    monkeypatch.setattr(tempfile, "tempdir", "/missing")

    def fail(connection: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_GETTEMPPATH
        raise error

    with Database.open(None) as database, pytest.raises(StorageFull, match=r"no writable temporary folder .* TMPDIR"):
        asyncio.run(database.write(fail))


def test_databases_that_cannot_be_used(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"no database at all " * 100)
    with pytest.raises(DatabaseError, match=r"rubbish\.db cannot be used: file is not a database; accepted: a file of"):
        Database.open(rubbish)
    with pytest.raises(DatabaseError, match="No such file or directory"):
        Database.open(tmp_path / "no" / "such" / "folder.db")
    later = tmp_path / "later.db"
    with sqlite3.connect(later) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(DatabaseError, match="a later release wrote version 999"):
        Database.open(later)


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`mt-service keys` with arguments and a database: its exit status, and what it printed to stdout and stderr."""
    monkeypatch.setenv("MT_DATABASE", str(tmp_path / "service.db"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_script(keys: Run, tmp_path: Path) -> None:
    status, printed, told = keys("add", "the [/wiki]", "--rate", "5", "--quota", "100", "--days", "3")
    assert status == 0 and f"new database created: {tmp_path / 'service.db'}" in told
    assert "new database" not in keys("add", "mail")[2]
    secret = printed.strip()
    with Database.open(tmp_path / "service.db") as database:
        found = asyncio.run(find_key(database, secret))
    assert found is not None and (found.name, found.rate, found.quota) == ("the [/wiki]", 5, 100)
    assert found.expires is not None and 2.9 < (found.expires - time.time()) / 86_400 < 3
    shown = json.loads(keys("list", "--json")[1])[0]
    assert (shown["id"], shown["name"], shown["state"], shown["used"]) == (found.id, "the [/wiki]", "valid", 0)
    (revoked,) = json.loads(keys("revoke", "the [/wiki]", "--json")[1])
    assert revoked["state"] == "revoked"
    listed = keys("list")
    assert all(text in listed[2] for text in ("revoked", "the [/wiki]", found.id))
    assert secret not in f"{shown} {revoked} {listed}"


@pytest.mark.parametrize(
    "limit", [("--days", "9999999"), ("--rate", str(2**63)), ("--quota", "0"), ("--rate", "x"), ("--rate", "9" * 5000)]
)
def test_limits_that_cannot_be(limit: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["add", "wiki", *limit])
    assert f"argument {limit[0]}: " in capsys.readouterr().err


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, f"no room for {text!r}")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_key_that_cannot_be_shown_is_not_stored(keys: Run, monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    with monkeypatch.context() as full, contextlib.suppress(OSError):
        full.setattr(sys, stream, Full())
        assert main(["add", "wiki"]) != 0
    assert "wiki" not in keys("list", "--json")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "wiki"), "there is a key named 'wiki' already"),
        (("add", " "), "the name is ' '"),
        (("revoke", "mail"), "there is no key 'mail'; accepted: wiki"),
        (("list", "--database", "slip.db"), "database slip.db does not exist"),
    ],
)
def test_the_script_refuses(keys: Run, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    with Database.open(tmp_path / "service.db") as database:
        made(database)
    status, printed, told = keys(*arguments)
    assert status == 2 and said in told and printed == ""
    assert not Path("slip.db").exists()


async def test_look_ups_of_one_address_do_not_delay_another(database: Database) -> None:
    ended = list[str]()

    async def find(address: str) -> None:
        assert await find_key(database, "mt_wrong", address) is None
        ended.append(address)

    many = [asyncio.create_task(find("127.0.0.2")) for _ in range(100)]
    await asyncio.sleep(0)
    await asyncio.gather(*many, asyncio.create_task(find("127.0.0.3")))
    assert ended.index("127.0.0.3") < 10
