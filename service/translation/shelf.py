"""Documents between their upload and their download: in the store, bounded, each for its caller and for a while.

Where the store is a file, a restart loses none of them: what was not done is begun anew.
"""

import asyncio
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from mt.text.terms import Terms
from service.access.store import Store
from service.errors import (
    CannotTranslate,
    InternalError,
    NotFound,
    Overloaded,
    ServiceError,
    TooManyRequests,
    shown,
    where,
)
from service.translation.documents import Opened
from service.translation.jobs import Job

RETRY_SECONDS = 1.0  # while the queue is full
STATUS_SECONDS = 2.0  # how long a question about one waits for it to be done: the SDK asks again only after 5 s
TIDY_SECONDS = 60.0
MOST_ATTEMPTS = 5  # starts of the service that a document may see; one that ends the process must not do so for ever


@dataclass(frozen=True)
class ShelfLimits:
    """How many documents, and bytes of them, are kept for one caller and for all; and for how many seconds."""

    documents_of_one: int = 20
    documents: int = 200
    bytes: int = 200_000_000
    seconds: float = 3600.0


@dataclass(frozen=True)
class Handle:
    """What its caller must name to have a document. Of the key the store has a digest."""

    id: str
    key: str


@dataclass(frozen=True)
class Shelved:
    """A document that is being translated, or is `done`, or has an `error`: why it could not be."""

    id: str
    name: str
    characters: int
    done: bool
    error: str

    @property
    def settled(self) -> bool:
        return self.done or bool(self.error)


@dataclass(frozen=True)
class Means:
    """What a shelf works with: `translate` makes of a file's name, content and job the file's translation,
    `give_back` is told a caller and the characters of what failed, `report` where our own mistakes were made."""

    translate: Callable[[str, bytes, Job], Awaitable[bytes]]
    give_back: Callable[[str, int], None]
    report: Callable[[str], None]


@dataclass(frozen=True)
class _Task:
    """A document that is to be translated."""

    name: str
    content: bytes
    characters: int
    attempts: int  # this one included
    job: Job


class Shelf:
    """All the documents."""

    def __init__(self, store: Store, limits: ShelfLimits, means: Means) -> None:
        self._store = store
        self._limits = limits
        self._means = means
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While it is, documents are translated: at first those that an earlier process left undone."""
        for id in await self._store.run(_undone):
            self._begin(id)
        tidying = asyncio.create_task(self._tidy())
        try:
            yield
        finally:
            tasks = [tidying, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def put(self, opened: Opened, job: Job) -> Handle:
        """Keep a document of the job's caller and begin to translate it. Raises TooManyRequests or Overloaded."""
        await self._expire()
        handle = Handle(uuid4().hex.upper(), secrets.token_hex(32).upper())
        limits, size = self._limits, len(opened.content)

        def write(connection: sqlite3.Connection) -> None:
            asked = "SELECT count(*), coalesce(sum(length(content)), 0), coalesce(sum(owner = ?), 0) FROM documents"
            documents, bytes, of_owner = connection.execute(asked, (job.caller,)).fetchone()
            if of_owner >= limits.documents_of_one:
                raise TooManyRequests(f"{limits.documents_of_one} documents at a time", retry_after=10)
            if documents >= limits.documents or bytes + size > limits.bytes:
                raise Overloaded(retry_after=10)
            connection.execute(
                "INSERT INTO documents (id, digest, owner, created, name, characters, job, content) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(handle.id, _digest(handle.key), job.caller, time.time()),
                    *(opened.name, opened.characters, _written(job), opened.content),
                ),
            )

        await self._store.run(write)
        self._begin(handle.id)
        return handle

    async def find(self, owner: str, handle: Handle, patience: float = 0.0) -> Shelved:
        """What has become of it; one that is not settled is waited for so many seconds.

        Raises NotFound, whatever does not fit.
        """
        await self._expire()
        found = await self._look(owner, handle)
        task = self._tasks.get(handle.id)
        if found.settled or task is None or not patience:
            return found
        await asyncio.wait([task], timeout=patience)
        return await self._look(owner, handle)

    async def content(self, id: str) -> bytes:
        """The translation of a document that is done. Raises NotFound if it has been fetched meanwhile."""

        def read(connection: sqlite3.Connection) -> bytes:
            row = connection.execute("SELECT content FROM documents WHERE id = ? AND done", (id,)).fetchone()
            if row is None:
                raise _not_there(id)
            return bytes(row[0])

        return await self._store.run(read)

    async def remove(self, id: str) -> None:
        """Once it has been fetched."""
        await self._store.run(lambda connection: connection.execute("DELETE FROM documents WHERE id = ?", (id,)))

    async def _look(self, owner: str, handle: Handle) -> Shelved:
        def read(connection: sqlite3.Connection) -> Shelved:
            asked = "SELECT owner, digest, name, characters, done, error FROM documents WHERE id = ?"
            row = connection.execute(asked, (handle.id,)).fetchone()
            if row is None or row[0] != owner or not hmac.compare_digest(row[1], _digest(handle.key)):
                raise _not_there(handle.id)
            return Shelved(handle.id, row[2], row[3], bool(row[4]), row[5])

        return await self._store.run(read)

    def _begin(self, id: str) -> None:
        task = self._tasks[id] = asyncio.create_task(self._work(id))
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    async def _work(self, id: str) -> None:
        """Translate a document and keep what came of it. If the service ends meanwhile, the next one begins anew."""
        task = await self._store.run(lambda connection: _take(connection, id))
        if task is None:
            return
        content, error = b"", ""
        try:
            content = await self._patiently(task)
        except Exception as failed:
            if isinstance(failed, InternalError):
                self._means.report(failed.where)
            elif not isinstance(failed, ServiceError):
                self._means.report(where(failed))
            error = failed.message if isinstance(failed, ServiceError) else "Internal error"
            self._means.give_back(task.job.caller, task.characters)
        settled = "UPDATE documents SET content = ?, done = ?, error = ? WHERE id = ?"
        await self._store.run(lambda connection: connection.execute(settled, (content, not error, error, id)))

    async def _patiently(self, task: _Task) -> bytes:
        """A document that was accepted waits for its turn, where a request would be refused."""
        if task.attempts > MOST_ATTEMPTS:
            raise CannotTranslate(f"the service ended {MOST_ATTEMPTS} times while it was being translated")
        while True:
            try:
                return await self._means.translate(task.name, task.content, task.job)
            except Overloaded:
                await asyncio.sleep(RETRY_SECONDS)

    async def _tidy(self) -> None:
        """What is too old goes, though nobody asks for it."""
        while True:
            await self._expire()
            await asyncio.sleep(TIDY_SECONDS)

    async def _expire(self) -> None:
        oldest = time.time() - self._limits.seconds

        def delete(connection: sqlite3.Connection) -> list[str]:
            found = connection.execute("DELETE FROM documents WHERE created <= ? RETURNING id", (oldest,))
            return [id for (id,) in found]

        for id in await self._store.run(delete):
            if task := self._tasks.get(id):
                task.cancel()


def _undone(connection: sqlite3.Connection) -> list[str]:
    """The oldest first."""
    found = connection.execute("SELECT id FROM documents WHERE NOT done AND error = '' ORDER BY created")
    return [id for (id,) in found]


def _take(connection: sqlite3.Connection, id: str) -> _Task | None:
    """None if it is not there any more."""
    connection.execute("UPDATE documents SET attempts = attempts + 1 WHERE id = ?", (id,))
    asked = "SELECT name, content, characters, attempts, job, owner FROM documents WHERE id = ?"
    row = connection.execute(asked, (id,)).fetchone()
    if row is None:
        return None
    name, content, characters, attempts, job, owner = row
    return _Task(name, bytes(content), characters, attempts, _read(job, owner))


def _written(job: Job) -> str:
    """All that distinguishes a document's job from others, but for its caller."""
    terms = {"glossary": job.terms.glossary, "untranslated": job.terms.untranslated}
    return json.dumps({"source": job.source, "target": job.target, "terms": terms}, ensure_ascii=False)


def _read(written: str, caller: str) -> Job:
    found = json.loads(written)
    glossary = tuple((term, translation) for term, translation in found["terms"]["glossary"])
    terms = Terms(glossary, tuple(found["terms"]["untranslated"]))
    return Job(texts=(), source=found["source"], target=found["target"], terms=terms, caller=caller)


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()


def _not_there(id: str) -> NotFound:
    return NotFound(f"There is no document {shown(id)} with this key: it was fetched, or is too old")
