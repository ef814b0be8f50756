"""Document jobs: uploaded documents are translated in the background, and stored in the database until the download.

If the database is a file, documents survive a restart of the service, and unfinished translations begin again.
"""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from typing import Any, TypeVar
from uuid import uuid4

import structlog
from pydantic import TypeAdapter

from service.access.database import Database, DatabaseWork
from service.errors import (
    CannotTranslate,
    InternalError,
    NotFound,
    Overloaded,
    ServiceError,
    StorageUnavailable,
    TooManyRequests,
    Unavailable,
    error_location,
    shorten,
)
from service.translation.coroutines import when_admitted
from service.translation.document_store import DOCUMENT_BYTES, UNFINISHED, StoredDocument, make_room, read_document
from service.translation.documents import DocumentTurns, OpenedDocument
from service.translation.jobs import Job

T = TypeVar("T")

STATUS_SECONDS = 2.0  # longest wait of a status request for the translation; the SDK repeats the request after 5 s
FETCHED_SECONDS = 60.0  # time in which a document can be downloaded again, as the first download may have failed
STORED_FIELDS = {"texts", "source", "target", "terms", "formality", "memory", "memory_score"}  # of a job
MAX_ATTEMPTS = 4  # a document fails after the service has ended this many times while translating it


@dataclass(frozen=True)
class DocumentJobLimits:
    """Limits of the stored documents. The limits per caller do not count documents that failed or were downloaded.

    If all documents together exceed `bytes`, the oldest finished document of the caller with the most bytes is deleted.
    A new document is refused if it and its caller's unfinished documents have more bytes than all unfinished documents
    leave free of `bytes`. Other callers can therefore store documents, too.
    """

    documents_per_caller: int = 20
    bytes_per_caller: int = 50_000_000
    bytes: int = 200_000_000  # limit of all documents and translated files together
    seconds: float = 3600.0  # a document is deleted this long after its upload
    cleanup_seconds: float = 60.0  # time between two deletions of expired documents


TranslateDocument = Callable[[str, bytes, Job], Awaitable[bytes]]
"""Function (name, content, job) that returns the translated content."""
Refund = Callable[[str, float, int], Awaitable[None]]
"""Function (caller, time of the charge, characters) that is called for a document that is not translated."""


@dataclass(frozen=True)
class _Task:
    """A stored document, for one attempt to translate it."""

    name: str
    content: bytes
    attempts: int  # number of attempts, including this one
    owner: str
    created: float  # seconds since 1970
    job: bytes  # JSON, see job_to_json


class DocumentJobs:
    """Documents that are translated in the background, and stored until they are fetched or expire."""

    def __init__(
        self,
        database: Database,
        limits: DocumentJobLimits,
        translate: TranslateDocument,
        refund: Refund,
        turns: DocumentTurns,
    ) -> None:
        self._database = database
        self._limits = limits
        self._translate = translate
        self._refund = refund
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._alone = asyncio.Lock()  # held for a document that may have ended an earlier process
        self._turns = turns

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Translate documents while the context is open, first those that an earlier process has not finished."""
        query = f"SELECT id, owner, length(content), attempts FROM documents WHERE {UNFINISHED} "
        query += "ORDER BY attempts = 0, created"  # first those that may have ended an earlier process
        unfinished = await self._database.read(lambda connection: connection.execute(query).fetchall())
        for id, owner, size, attempts in unfinished:
            self._start(id, self._work_alone(id) if attempts else self._beside_others(id, owner, size))
        cleanup = asyncio.create_task(self._clean_up())
        try:
            yield
        finally:
            tasks = [cleanup, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def put(self, opened: OpenedDocument, job: Job) -> tuple[str, str]:
        """Store a document for `job.caller` and begin to translate it. Return the id and the key that fetch it.

        The database stores only a digest of the key.

        Raises:
            TooManyRequests: if the caller has reached its limit of documents or bytes.
            Overloaded: if the unfinished documents of all callers leave too little of `DocumentJobLimits.bytes`.
        """
        id, key = uuid4().hex.upper(), secrets.token_hex(32).upper()
        await self._expire(job.caller)
        job_bytes = await asyncio.to_thread(job_to_json, job)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(_DELETE_FAILED, (job.caller, self._limits.documents_per_caller))
            self._make_room(connection, job.caller, len(opened.content) + len(job_bytes))
            now, size = time.time(), len(opened.content) + len(job_bytes) + DOCUMENT_BYTES
            connection.execute(
                "INSERT INTO documents (id, digest, owner, created, expires, name, characters, bytes, job, content) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(id, _digest(key), job.caller, now, now + self._limits.seconds),
                    *(opened.name, opened.characters, size, job_bytes, opened.content),
                ),
            )

        try:
            await self._database.write(write, job.caller)
        except StorageUnavailable:  # a commit that has begun is not undone, but the characters are refunded now
            self._start(id, self._write(partial(_settle, id=id, content=b"", error="refused")))
            raise
        self._start(id, self._beside_others(id, job.caller, len(opened.content)))
        return id, key

    async def find(self, owner: str, id: str, key: str, wait_seconds: float = 0.0) -> StoredDocument:
        """Return a document, after waiting at most `wait_seconds` seconds for its translation to end.

        Raises: NotFound if the id, the key or the owner is wrong.
        """
        task = self._tasks.get(id)  # before the document is read, because the task may end meanwhile
        document = await self._read(owner, id, key)
        if document.settled or task is None or not wait_seconds:
            return document
        await asyncio.wait([task], timeout=wait_seconds)
        return await self._read(owner, id, key)

    async def remove(self, id: str) -> None:
        """Let a document expire after FETCHED_SECONDS. Call this when the document has been sent to the client."""
        now = time.time()
        update = "UPDATE documents SET fetched = ?, expires = min(expires, ?) WHERE id = ? AND fetched IS NULL"
        await self._database.write(lambda connection: connection.execute(update, (now, now + FETCHED_SECONDS, id)))

    async def _read(self, owner: str, id: str, key: str) -> StoredDocument:
        digest = _digest(key)
        document = await self._database.read(lambda connection: read_document(connection, id, digest), owner)
        if document is None or document.owner != owner:
            problem = f"There is no document {shorten(id)} with this key"
            raise NotFound(f"{problem}; documents are deleted once fetched or expired")
        return document

    def _make_room(self, connection: sqlite3.Connection, caller: str, size: int) -> None:
        """Check that a new document of `size` bytes may be stored. Delete finished documents until it fits.

        Raises:
            TooManyRequests: if the caller has reached its limit of documents or bytes.
            Overloaded: if the unfinished documents of all callers leave too little of `DocumentJobLimits.bytes`.
        """
        limits = self._limits
        (documents, bytes) = connection.execute(f"{_SUMS} WHERE {_COUNTED} AND owner = ?", (caller,)).fetchone()
        if documents and bytes + size > limits.bytes_per_caller:
            raise TooManyRequests(f"{limits.bytes_per_caller} bytes of documents at a time, until they are fetched", 10)
        if documents >= limits.documents_per_caller:
            raise TooManyRequests(f"{limits.documents_per_caller} documents at a time, until they are fetched", 10)
        size += DOCUMENT_BYTES
        (_, caller_bytes) = connection.execute(f"{_SUMS} WHERE {UNFINISHED} AND owner = ?", (caller,)).fetchone()
        (_, unfinished) = connection.execute(f"{_SUMS} WHERE {UNFINISHED}").fetchone()
        if caller_bytes + size > limits.bytes - unfinished:
            raise Overloaded(retry_after=10)
        make_room(connection, size, limits.bytes)

    def _start(self, id: str, work: Coroutine[Any, Any, Any]) -> None:
        task = self._tasks[id] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    async def _work_alone(self, id: str) -> None:
        """Translate a document while no other document is translated: it may have crashed an earlier process."""
        async with self._alone:
            await self._work(id)

    async def _beside_others(self, id: str, owner: str, size: int) -> None:
        async with self._alone:  # after those that are translated alone: tasks get the lock in turn
            pass
        async with self._turns.held(owner, size):
            await self._work(id)

    async def _work(self, id: str) -> None:
        """Translate a document and store the result."""
        task = await self._write(partial(_begin_attempt, id=id))
        if task is None:
            return
        try:
            content, error = await self._outcome(task)
            characters = await self._write(lambda connection: _settle(connection, id, content, error))
        except asyncio.CancelledError:  # an orderly end of the service
            with suppress(StorageUnavailable):  # then the interrupted attempt counts
                undo = f"UPDATE documents SET attempts = attempts - 1 WHERE id = ? AND attempts > 0 AND {UNFINISHED}"
                await self._database.write(lambda connection: connection.execute(undo, (id,)))
            raise
        if error and characters:
            await self._refund(task.owner, task.created, characters)

    async def _outcome(self, task: _Task) -> tuple[bytes, str]:
        """Translate a document. Return (translation, "") on success, or (b"", error message) on failure."""
        try:
            if task.attempts > MAX_ATTEMPTS:
                raise CannotTranslate(f"the service ended {MAX_ATTEMPTS} times while it translated the document")
            job = await asyncio.to_thread(lambda: _stored_job().validate_json(task.job))
            translate = partial(self._translate, task.name, task.content, replace(job, caller=task.owner))
            return await when_admitted(translate, (Unavailable,)), ""
        except ServiceError as failed:
            if isinstance(failed, InternalError):
                _log_failure(failed.location)
            return b"", failed.message
        except Exception as failed:
            _log_failure(error_location(failed))
            return b"", "Internal error"

    async def _clean_up(self) -> None:
        """Delete expired documents every `cleanup_seconds` until cancelled."""
        while True:
            try:
                await self._expire()
                await self._database.truncate_log()
            except (sqlite3.Error, StorageUnavailable) as error:
                _log_failure(error_location(error))
            await asyncio.sleep(self._limits.cleanup_seconds)

    async def _expire(self, caller: str = "") -> None:
        for id, owner, created, characters, undone in await self._database.write(_delete_expired, caller):
            if task := self._tasks.get(id):
                task.cancel()
            if undone:
                await self._refund(owner, created, characters)

    async def _write(self, work: DatabaseWork[T]) -> T:
        """Run `work` as Database.write does, and run it again as long as the database raises StorageUnavailable."""
        return await when_admitted(partial(self._database.write, work), (StorageUnavailable,))


_COUNTED = "error = '' AND fetched IS NULL AND digest != x''"  # uploads; translated files have no digest
_SUMS = "SELECT count(*), coalesce(sum(bytes), 0) FROM documents"
_DELETE_FAILED = (  # deletes the failed documents of one caller, except the latest ones
    "DELETE FROM documents WHERE id IN "
    "(SELECT id FROM documents WHERE owner = ? AND error != '' ORDER BY created DESC LIMIT -1 OFFSET ?)"
)


def _begin_attempt(connection: sqlite3.Connection, id: str) -> _Task | None:
    """Count an attempt and return the document; None if it is deleted, or if another process has translated it.

    If the process ends meanwhile, one of the documents that it translates may be the cause: the next process translates
    each of them alone. If it ends again, this document is the likely cause.
    """
    update = f"UPDATE documents SET attempts = attempts + 1 WHERE id = ? AND {UNFINISHED}"
    columns = "name, content, attempts, owner, created, job"
    row = connection.execute(f"{update} RETURNING {columns}", (id,)).fetchone()
    return None if row is None else _Task(*row)


def _settle(connection: sqlite3.Connection, id: str, content: bytes, error: str) -> int:
    """Store the translation or the error message, and return the document's number of characters.

    Store nothing and return 0 if the document is deleted, or another process has stored an outcome.
    """
    update = (
        "UPDATE documents SET content = ?, done = ?, error = ?, bytes = bytes - length(content) + ? "
        f"WHERE id = ? AND {UNFINISHED} RETURNING characters"
    )
    row = connection.execute(update, (content, not error, error, len(content), id)).fetchone()
    return 0 if row is None else int(row[0])


def _delete_expired(connection: sqlite3.Connection) -> list[tuple[str, str, float, int, bool]]:
    """Delete expired documents. Return (id, owner, created, characters, unfinished) of each."""
    columns = f"id, owner, created, characters, {UNFINISHED}"
    deleted = connection.execute(f"DELETE FROM documents WHERE expires <= ? RETURNING {columns}", (time.time(),))
    return [(*row[:4], bool(row[4])) for row in deleted]


_stored_job = cache(lambda: TypeAdapter(Job))  # takes some milliseconds


def job_to_json(job: Job) -> bytes:
    """Return the fields of a document's job, without the caller, as JSON.

    The JSON can take megabytes. It is stored as bytes, not as text: SQLite knows the length of bytes without reading
    them.
    """
    return _stored_job().dump_json(replace(job, texts=()), include=STORED_FIELDS)


def _log_failure(location: str) -> None:
    structlog.get_logger().error("failed", location=location)


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
