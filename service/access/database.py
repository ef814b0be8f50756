"""The SQLite database of the service: a file, or memory whose content ends with the process."""

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

BUSY_SECONDS = 5.0  # for which a transaction waits while another process writes
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
            content BLOB NOT NULL -- the upload, and once it is done its translation
        )""",
    ),
)
"""Statements from each version of the schema to the next. Released ones never change; new ones are appended."""


class DatabaseError(MTError):
    """Raised if the database cannot be used."""


class Database:
    """Database connection in a separate thread, so that the event loop never waits for the disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the database at `path`; create it or update its schema if necessary.

        Raises:
            DatabaseError: the path or the database cannot be used.
        """
        try:
            connection = sqlite3.connect(
                path or ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for the one writer
            connection.execute("PRAGMA secure_delete = ON")  # no document that was fetched stays in free pages
            connection.execute("PRAGMA synchronous = NORMAL")  # loses nothing if the process is killed
            _migrate(connection)
        except (sqlite3.Error, DatabaseError) as error:
            connection.close()
            raise _unusable(path, error) from error
        return cls(connection)

    async def run(self, work: Work[T]) -> T:
        """Run `work` in one transaction, which is rolled back if it raises. Return its result."""
        return await asyncio.wrap_future(self._submit(work))

    async def truncate_log(self) -> None:
        """Truncate the write-ahead log, which may still contain deleted rows."""
        work = self._thread.submit(lambda: self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        await asyncio.wrap_future(work)

    def run_sync(self, work: Work[T]) -> T:
        """Run `work` as `run` does, for programs without an event loop."""
        return self._submit(work).result()

    def close(self) -> None:
        """Close the connection after all submitted work."""
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
    connection.execute("BEGIN IMMEDIATE")  # a transaction that begins by reading may fail at its first write
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
            raise DatabaseError(
                f"its schema is of a later release, version {version}; accepted: up to {len(MIGRATIONS)}"
            )
        for statement in (statement for script in MIGRATIONS[version:] for statement in script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _unusable(path: Path | None, error: Exception) -> DatabaseError:
    return DatabaseError(
        f"the database {path} cannot be used: {error}; accepted: a file of this service, or a new file in a "
        "writable folder"
    )
