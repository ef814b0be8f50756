"""Documents between their upload and their download: in the store, bounded, each for its caller and for a while.

Where the store is a file, a restart loses none of them: what was not done is begun anew.
"""

import asyncio
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from mt.text.terms import Terms
from service.access.store import Store, Work
from service.errors import (
    CannotTranslate,
    InternalError,
    NotFound,
    Overloaded,
    ServiceError,
    TooManyRequests,
    Unavailable,
    shown,
    where,
)
from service.translation.documents import Opened
from service.translation.jobs import Job

T = TypeVar("T")

RETRY_SECONDS = 1.0  # while the queue is full, or the store cannot be written to
STATUS_SECONDS = 2.0  # how long a question about one waits for it to be done: the SDK asks again only after 5 s
TIDY_SECONDS = 60.0
TURNS, TURNS_OF_ONE = 8, 4  # documents that are in work at the same time, in all and of one caller
MOST_ATTEMPTS = 5  # processes that may die over a document; one that kills them must not do so for ever


@dataclass(frozen=True)
class ShelfLimits:
    """How many documents, and bytes of them, are kept for one caller and for all; and for how many seconds. Those that
    could not be translated do not count."""

    documents_of_one: int = 20
    bytes_of_one: int = 50_000_000
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
    `give_back` is told a caller, when he was charged and the characters of what failed, `report` where our own mistakes
    were made."""

    translate: Callable[[str, bytes, Job], Awaitable[bytes]]
    give_back: Callable[[str, float, int], Awaitable[None]]
    report: Callable[[str], None]


@dataclass(frozen=True)
class _Task:
    """A document that is to be translated."""

    name: str
    content: bytes
    attempts: int  # this one included
    owner: str
    created: float  # seconds since 1970
    job: str


class Shelf:
    """All the documents."""

    def __init__(self, store: Store, limits: ShelfLimits, means: Means) -> None:
        self._store = store
        self._limits = limits
        self._means = means
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._taken: set[str] = set()  # by those of the tasks that had their turn
        self._turns = asyncio.Semaphore(TURNS)
        self._turns_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # by owner

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While it is, documents are translated: at first those that an earlier process left undone."""
        for id, owner in await self._store.run(_undone):
            self._begin(id, owner)
        tidying = asyncio.create_task(self._tidy())
        try:
            yield
        finally:
            tasks = [tidying, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(sqlite3.Error):  # an ending waits for no disk; at worst an attempt too many is counted
                await self._store.run(partial(_return, taken=tuple(self._taken)))

    async def put(self, opened: Opened, job: Job) -> Handle:
        """Keep a document of the job's caller and begin to translate it. Raises TooManyRequests or Overloaded."""
        await self._expire()
        handle = Handle(uuid4().hex.upper(), secrets.token_hex(32).upper())
        limits, size = self._limits, len(opened.content)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(_FORGET_FAILED, (job.caller, limits.documents_of_one))
            asked = (
                "SELECT coalesce(sum(error = ''), 0), coalesce(sum(length(content)), 0), "
                "coalesce(sum(owner = :owner AND error = ''), 0), "
                "coalesce(sum(length(content)) FILTER (WHERE owner = :owner), 0) FROM documents"
            )
            documents, bytes, of_owner, bytes_of_owner = connection.execute(asked, {"owner": job.caller}).fetchone()
            if of_owner and bytes_of_owner + size > limits.bytes_of_one:
                most = f"{limits.bytes_of_one} bytes of documents at a time, until they are fetched"
                raise TooManyRequests(most, retry_after=10)
            if of_owner >= limits.documents_of_one:
                most = f"{limits.documents_of_one} documents at a time, until they are fetched"
                raise TooManyRequests(most, retry_after=10)
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
        self._begin(handle.id, job.caller)
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

    def _begin(self, id: str, owner: str) -> None:
        own = self._turns_of.setdefault(owner, asyncio.Semaphore(TURNS_OF_ONE))
        task = self._tasks[id] = asyncio.create_task(self._work(id, own))
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    async def _work(self, id: str, own_turns: asyncio.Semaphore) -> None:
        """Translate a document and keep what came of it. If the service ends meanwhile, the next one begins anew."""
        async with own_turns, self._turns:
            task = await self._surely(lambda connection: _take(connection, id))
            if task is None:
                return
            self._taken.add(id)
            content, error = await self._outcome(task)
            characters = await self._surely(lambda connection: _settle(connection, id, content, error))
            self._taken.discard(id)
        if error and characters:
            await self._means.give_back(task.owner, task.created, characters)

    async def _outcome(self, task: _Task) -> tuple[bytes, str]:
        """The translation, or why there is none."""
        try:
            if task.attempts > MOST_ATTEMPTS:
                raise CannotTranslate(f"the service ended {MOST_ATTEMPTS} times while it was being translated")
            return await self._patiently(task, _read(task.job, task.owner)), ""
        except ServiceError as failed:
            if isinstance(failed, InternalError):
                self._means.report(failed.where)
            return b"", failed.message
        except Exception as failed:
            self._means.report(where(failed))
            return b"", "Internal error"

    async def _patiently(self, task: _Task, job: Job) -> bytes:
        """A document that was accepted waits for its turn, and for the next process, where a request is refused."""
        while True:
            try:
                return await self._means.translate(task.name, task.content, job)
            except (Overloaded, Unavailable):
                await asyncio.sleep(RETRY_SECONDS)

    async def _tidy(self) -> None:
        """What is too old goes, though nobody asks for it."""
        while True:
            try:
                await self._expire()
                await self._store.forget()
            except sqlite3.Error as error:
                self._means.report(where(error))
            await asyncio.sleep(TIDY_SECONDS)

    async def _expire(self) -> None:
        oldest = time.time() - self._limits.seconds
        for id, owner, created, characters, undone in await self._store.run(partial(_delete, oldest=oldest)):
            self._taken.discard(id)
            if task := self._tasks.get(id):
                task.cancel()
            if undone:
                await self._means.give_back(owner, created, characters)

    async def _surely(self, work: Work[T]) -> T:
        """What the store makes of it, when it can: a disk may be full for a while, or another process in the way."""
        while True:
            try:
                return await self._store.run(work)
            except sqlite3.OperationalError as error:
                self._means.report(where(error))
                await asyncio.sleep(RETRY_SECONDS)


_UNDONE = "NOT done AND error = ''"
_FORGET_FAILED = (  # they take no place, and are few all the same: of one caller's, but for the latest
    "DELETE FROM documents WHERE id IN "
    "(SELECT id FROM documents WHERE owner = ? AND error != '' ORDER BY created DESC LIMIT -1 OFFSET ?)"
)


def _undone(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """With their owners, the oldest first."""
    return list(connection.execute(f"SELECT id, owner FROM documents WHERE {_UNDONE} ORDER BY created"))


def _take(connection: sqlite3.Connection, id: str) -> _Task | None:
    """None if it is not there any more, or another process has done it."""
    connection.execute(f"UPDATE documents SET attempts = attempts + 1 WHERE id = ? AND {_UNDONE}", (id,))
    asked = f"SELECT name, content, attempts, owner, created, job FROM documents WHERE id = ? AND {_UNDONE}"
    row = connection.execute(asked, (id,)).fetchone()
    return None if row is None else _Task(*row)


def _return(connection: sqlite3.Connection, taken: Sequence[str]) -> None:
    """They are not the reason why this process ends."""
    back = f"UPDATE documents SET attempts = attempts - 1 WHERE id = ? AND {_UNDONE}"
    connection.executemany(back, [(id,) for id in taken])


def _settle(connection: sqlite3.Connection, id: str, content: bytes, error: str) -> int:
    """The characters of the document; 0 if it is gone, or another process was first."""
    settled = f"UPDATE documents SET content = ?, done = ?, error = ? WHERE id = ? AND {_UNDONE} RETURNING characters"
    row = connection.execute(settled, (content, not error, error, id)).fetchone()
    return 0 if row is None else int(row[0])


def _delete(connection: sqlite3.Connection, oldest: float) -> list[tuple[str, str, float, int, bool]]:
    """Of what was there at that time or before: id, owner, when, characters, and whether it was still undone."""
    deleted = f"DELETE FROM documents WHERE created <= ? RETURNING id, owner, created, characters, {_UNDONE}"
    return [(*row[:4], bool(row[4])) for row in connection.execute(deleted, (oldest,))]


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
