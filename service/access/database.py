"""The SQLite database of the service, in a file or in a temporary file that is lost when the process ends."""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from errno import ENOSPC, EROFS
from pathlib import Path
from threading import Lock
from typing import Self, TypeVar
from weakref import WeakValueDictionary

import structlog

from mt.errors import MTError
from service.errors import SHUTTING_DOWN, StorageFull, StorageUnavailable

T = TypeVar("T")
DatabaseWork = Callable[[sqlite3.Connection], T]

OPEN_SECONDS = 5.0  # longest wait for the lock of another process, when the database is opened
BUSY_MILLISECONDS = 250  # longest wait for this lock in a transaction of a request
NO_FOLDER = (
    "The service has no writable temporary folder for what it stores; its operator sets TMPDIR or the option --database"
)
"""Message for a temporary database without a folder that outgrows its cache of 2 MB."""

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
    (),  # documents, which the last version stores anew
    (
        "DELETE FROM dictionaries WHERE glossary NOT IN (SELECT id FROM glossaries)",
        "ALTER TABLE glossaries ADD COLUMN bytes INTEGER NOT NULL DEFAULT 1024",
        """UPDATE glossaries SET bytes = 1024 + (
            SELECT coalesce(sum(length(CAST(entries AS BLOB))), 0) FROM dictionaries WHERE glossary = id
        )""",
        "DROP INDEX glossaries_owner",
        "CREATE INDEX glossaries_owner ON glossaries (owner, created, bytes)",
    ),
    (
        """CREATE TABLE memories (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            source TEXT NOT NULL,
            target TEXT NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            count INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 1024
        )""",
        "CREATE INDEX memories_owner ON memories (owner, number)",
        """CREATE TABLE memory_units (
            memory INTEGER NOT NULL,
            number INTEGER NOT NULL, -- from 0, without gaps
            digest INTEGER NOT NULL, -- of the source
            source TEXT NOT NULL,
            target TEXT NOT NULL,
            PRIMARY KEY (memory, number)
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX memory_units_digest ON memory_units (memory, digest)",
        """CREATE TABLE memory_words (
            memory INTEGER NOT NULL,
            word INTEGER NOT NULL, -- number of a word of a source
            block INTEGER NOT NULL,
            units BLOB NOT NULL, -- offsets in the block of the units with this word, of two bytes each
            PRIMARY KEY (memory, word, block)
        ) WITHOUT ROWID""",
        """CREATE TABLE memory_lengths (
            memory INTEGER NOT NULL,
            block INTEGER NOT NULL,
            lengths BLOB NOT NULL, -- numbers of words of the units of the block, of two bytes each
            PRIMARY KEY (memory, block)
        ) WITHOUT ROWID""",
    ),
    (),
    (
        "DROP TABLE IF EXISTS editable_pages",
        "DROP TABLE IF EXISTS editable_documents",
        "DROP TABLE IF EXISTS documents",
        """CREATE TABLE documents (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE, -- of a translated file: the name by which it is downloaded
            digest BLOB NOT NULL DEFAULT x'', -- of the key of an uploaded document
            owner TEXT NOT NULL,
            created REAL NOT NULL,
            expires REAL NOT NULL,
            name TEXT NOT NULL,
            characters INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL, -- with what the row takes besides its content
            job BLOB NOT NULL DEFAULT x'',
            attempts INTEGER NOT NULL DEFAULT 0, -- that a process began while no other document was translated
            suspect INTEGER NOT NULL DEFAULT 0, -- whether a process began to translate it beside others
            done INTEGER NOT NULL DEFAULT 0,
            error TEXT NOT NULL DEFAULT '',
            fetched REAL, -- time of the first download
            content BLOB NOT NULL -- the upload, and once it is done its translation
        )""",
    ),
    ("ALTER TABLE memories ADD COLUMN ready INTEGER NOT NULL DEFAULT 1",),  # 0 during the upload that creates a memory
    ("ALTER TABLE documents DROP COLUMN suspect",),  # `attempts` counts all attempts
)
"""SQL that updates the schema from each version to the next. Released statements never change; append new ones."""


class DatabaseError(MTError):
    """Raised if the database cannot be used."""


class DatabaseUnavailable(DatabaseError):
    """Raised if the database is locked, read-only or on a full disk, which may pass."""


class _Connection:
    """Database connection with a thread that runs its transactions. Waiting callers take turns."""

    def __init__(self, connection: sqlite3.Connection, name: str, begin: str, path: Path | None = None) -> None:
        """`name` is the name of the thread, and `begin` is the statement that begins a transaction.

        If the file at `path` is deleted or replaced, transactions fail: they would write to a file without a name.
        """
        self._connection = connection
        self._path = path
        self._file = _identity(path)
        self._begin = begin
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by caller
        self._failed = False  # whether the last transaction failed

    async def run(self, work: DatabaseWork[T], caller: str = "", seconds: float | None = None) -> T:
        """Run `work` in one transaction and return its result.

        The transactions of one caller run one after the other: the next one is queued when the previous one has ended.

        Raises: StorageUnavailable if the database is locked or cannot be used, or if `work` has not ended after
            `seconds`: then nothing is stored. A COMMIT that has begun is awaited. StorageFull if the disk is full.
        """
        decided = Lock()
        try:
            try:
                async with asyncio.timeout(seconds), self._turns.setdefault(caller, asyncio.Lock()):
                    transaction = self.submit(work, decided)
                    return await asyncio.wrap_future(transaction)
            except TimeoutError:  # cancels a transaction that has not begun
                if decided.acquire(blocking=False):
                    raise StorageUnavailable("The database is slow: try again in 2 s") from None
                return await asyncio.wrap_future(transaction)
        except sqlite3.DatabaseError as error:
            if not _is_unusable(error):
                raise
            raise _storage_error(error.sqlite_errorcode) from error

    def submit(self, work: DatabaseWork[T], decided: "Lock | None" = None) -> Future[T]:
        """Let the thread run `work` in one transaction. If another has acquired `decided` by its end, roll it back."""

        def within() -> T:
            try:
                if self.lost():
                    error = sqlite3.OperationalError(f"the file {self._path} was deleted or replaced")
                    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
                    raise error
                with self._transaction():
                    result = work(self._connection)
                    if decided and not decided.acquire(blocking=False):
                        raise TimeoutError
                    return result
            except sqlite3.DatabaseError as error:
                if _is_unusable(error):
                    if not self._failed:
                        structlog.get_logger().error("database failed", problem=str(error))
                    self._failed = True
                raise

        try:
            return self._thread.submit(within)
        except RuntimeError as error:  # after `close`, for example at the end of a request that the shutdown cancelled
            raise StorageUnavailable(SHUTTING_DOWN) from error

    def run_sync(self, work: DatabaseWork[T]) -> T:
        """Run `work` as `run` does, but block until it ends. Raises: DatabaseError if the database cannot be used."""
        try:
            return self.submit(work).result()
        except sqlite3.DatabaseError as error:
            if not _is_unusable(error):
                raise
            raise DatabaseError(f"the database cannot be used: {error}; try again") from error

    def lost(self) -> bool:
        """Return whether another file, or none, is at the path of the database. Waits for the disk."""
        return _identity(self._path) != self._file

    async def truncate_log(self) -> None:
        """Truncate the write-ahead log, which may still contain deleted rows."""
        work = self._thread.submit(lambda: self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        await asyncio.wrap_future(work)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # After a failure, the next transactions do not wait for a lock: their waiting times would add up.
        self._connection.execute(f"PRAGMA busy_timeout = {0 if self._failed else BUSY_MILLISECONDS}")
        self._connection.execute(self._begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself rolls back if the disk is full
                self._connection.execute("ROLLBACK")
            raise
        self._failed = False


class Database:
    """Connections to the database. Each has its own thread, so that the event loop never waits for the disk.

    One connection writes. Two others read and never wait for the writer; one of them reads only API keys, so that no
    other work delays the admission of a request. A temporary database has a single connection.
    """

    write_seconds = 10.0  # longest time of a write of a request, on a slow or busy disk

    def __init__(self, path: Path | None, writer: sqlite3.Connection, readers: Sequence[sqlite3.Connection]) -> None:
        """`readers` is empty or has two connections: one for reading API keys, and one for reading all other data.

        If `readers` is empty, as for a temporary database, `writer` also reads.
        """
        self._writer = only = _Connection(writer, "database", "BEGIN IMMEDIATE", path)
        self._readers = [_Connection(reader, "database-reader", "BEGIN") for reader in readers]
        self.run_sync, self.lost, self.truncate_log = only.run_sync, only.lost, only.truncate_log
        key_reader, reader = self._readers or (only, only)
        self.read, self.read_sync = reader.run, reader.run_sync  # for work that only reads: no writer delays it
        self.read_keys = key_reader.run  # for work that reads nothing but API keys

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the database at `path`; create it or update its schema if necessary.

        Raises: DatabaseError if the path or the database cannot be used.
        """
        temporary = None if path else _temporary_file()
        try:
            if path:
                _make_private(path)
            writer = _connect(path or temporary)
            try:
                writer.execute(f"PRAGMA locking_mode = {'NORMAL' if path else 'EXCLUSIVE'}")
                # Readers of a file do not wait for its one writer. A temporary database has no other readers, and a log
                # would let it stay full: on a full disk, a deletion could not be written.
                writer.execute(f"PRAGMA journal_mode = {'WAL' if path else 'MEMORY'}")
                writer.execute("PRAGMA secure_delete = ON")  # overwrite deleted documents with zeros
                writer.execute(f"PRAGMA synchronous = {'FULL' if path else 'OFF'}")  # survive a power failure
                _migrate(writer)
                writer.execute("PRAGMA foreign_keys = ON")  # deletes the dictionaries of a deleted glossary
            except BaseException:
                writer.close()
                raise
            finally:
                if temporary:
                    temporary.unlink(missing_ok=True)  # it stays open, and ends with this process
            return cls(path, writer, [_connect(path) for _ in range(2)] if path else [])
        except (OSError, sqlite3.Error, DatabaseError) as error:
            passing = isinstance(error, sqlite3.OperationalError) or getattr(error, "errno", 0) in (EROFS, ENOSPC)
            raise (DatabaseUnavailable if passing else DatabaseError)(
                f"the database {path} cannot be used: {error}; accepted: a file of this service, or a new one, in a "
                "writable folder with free space"
            ) from error

    async def write(self, work: DatabaseWork[T], caller: str = "") -> T:
        """Run `work` in one transaction and return its result. If `work` raises, the transaction is rolled back.

        Callers take turns, one transaction each. A write of a caller has `write_seconds`, and is rolled back if it ends
        later; one of the service, without a caller, has no limit.

        Raises: StorageUnavailable if the database is locked, cannot be used or is too slow, StorageFull if the disk is
            full.
        """
        return await self._writer.run(work, caller, self.write_seconds if caller else None)

    def close(self) -> None:
        """Wait until all submitted work has ended, then close the connections."""
        for connection in (*self._readers, self._writer):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _is_unusable(error: sqlite3.DatabaseError) -> bool:
    """Return whether the database is locked, full or damaged. Other errors are mistakes in the code."""
    return type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError)


def _storage_error(code: int) -> StorageUnavailable:
    """Return the error for a client, given an extended result code of SQLite."""
    if code == sqlite3.SQLITE_IOERR_GETTEMPPATH:
        return StorageFull(NO_FOLDER)
    match code & 0xFF:  # the primary result code
        case sqlite3.SQLITE_FULL:
            return StorageFull()
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageUnavailable()
        case sqlite3.SQLITE_READONLY:
            return StorageUnavailable("The database is read-only: its operator must make the file writable", 60)
    return StorageUnavailable("The database cannot be used: its operator finds the reason in the log", 60)


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Return what tells the file at `path` from others, or None if there is no file."""
    with suppress(OSError):
        if path:
            status = path.stat()
            return status.st_dev, status.st_ino
    return None


def _connect(path: Path | None) -> sqlite3.Connection:
    return sqlite3.connect(path or "", timeout=OPEN_SECONDS, isolation_level=None, check_same_thread=False)


def _temporary_file() -> Path | None:
    """Create a temporary file. Return None if there is no writable folder: SQLite then keeps 2 MB in memory.

    SQLite's own temporary database is damaged by transactions that are rolled back after they outgrew its cache
    (3.40.1: integrity_check finds wrong pages after about 1,000 of them).
    """
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="mt-service-")
        os.close(descriptor)
        return Path(name)
    return None


def _make_private(path: Path) -> None:
    """Create the database file if it is missing. Let only its owner read it and the files that SQLite adds."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for file in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
        with suppress(FileNotFoundError, PermissionError):  # a file of another user stays as it is
            file.chmod(0o600)


def _migrate(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")  # after an error, closing the connection rolls back
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise DatabaseError(
            f"a later release wrote version {version} of the schema; accepted: versions up to {len(MIGRATIONS)}"
        )
    for statement in (statement for script in MIGRATIONS[version:] for statement in script):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
