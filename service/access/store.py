"""What outlives the process: one SQLite file; without a path, a database in memory that does not."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from mt.errors import MTError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_SECONDS = 5.0  # how long to wait while another process writes
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            name TEXT NOT NULL UNIQUE,
            rate INTEGER,
            quota INTEGER,
            created REAL NOT NULL,
            expires REAL,
            revoked INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID""",
        """CREATE TABLE usage (
            key TEXT NOT NULL,
            month TEXT NOT NULL,
            characters INTEGER NOT NULL,
            PRIMARY KEY (key, month)
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE glossaries (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            created REAL NOT NULL
        )""",
        "CREATE INDEX glossaries_owner ON glossaries (owner)",
        """CREATE TABLE dictionaries (
            glossary TEXT NOT NULL REFERENCES glossaries (id) ON DELETE CASCADE,
            source TEXT NOT NULL,
            target TEXT NOT NULL,
            count INTEGER NOT NULL,
            entries TEXT NOT NULL,
            PRIMARY KEY (glossary, source, target)
        )""",
    ),
    (
        """CREATE TABLE documents (
            id TEXT PRIMARY KEY,
            digest BLOB NOT NULL,
            owner TEXT NOT NULL,
            created REAL NOT NULL,
            name TEXT NOT NULL,
            characters INTEGER NOT NULL,
            job TEXT NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            done INTEGER NOT NULL DEFAULT 0,
            error TEXT NOT NULL DEFAULT '',
            content BLOB NOT NULL -- what was uploaded, and when that is done its translation
        )""",
    ),
)
"""Statements that lead from each version to the next. What has been released never changes; more come at the end."""


class StoreError(MTError):
    """A database that cannot be used."""


class Store:
    """One connection, used in a thread of its own, so that no disk ever holds up the event loop."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """The database at `path`, made or brought up to date if need be. Raises StoreError."""
        try:
            connection = sqlite3.connect(
                path or ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # readers and one writer at a time do not wait for another
            connection.execute("PRAGMA secure_delete = ON")  # documents that were fetched are not left in free pages
            connection.execute("PRAGMA synchronous = NORMAL")  # a process that is killed loses nothing
            _migrate(connection)
        except (sqlite3.Error, StoreError) as error:
            connection.close()
            raise _unusable(path, error) from error
        return cls(connection)

    async def run(self, work: Work[T]) -> T:
        """What `work` returns. What it writes is written whole or, if it raises, not at all."""
        return await asyncio.wrap_future(self._submit(work))

    async def forget(self) -> None:
        """What was deleted leaves the write-ahead log, too."""
        work = self._thread.submit(lambda: self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        await asyncio.wrap_future(work)

    def do(self, work: Work[T]) -> T:
        """The same, for programs without an event loop."""
        return self._submit(work).result()

    def close(self) -> None:
        """After whatever has been asked for is done."""
        self._thread.shutdown()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, work: Work[T]) -> Future[T]:
        def within() -> T:
            with _transaction(self._connection):
                return work(self._connection)

        return self._thread.submit(within)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")  # a later upgrade to writing could fail, with all work done
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise StoreError(f"it has version {version}, of a later release; accepted: up to {len(MIGRATIONS)}")
        for statement in (each for script in MIGRATIONS[version:] for each in script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _unusable(path: Path | None, error: Exception) -> StoreError:
    return StoreError(
        f"the database {path} cannot be used: {error}; accepted: a file of this service, or a new one in a folder that "
        "is there and can be written to"
    )
