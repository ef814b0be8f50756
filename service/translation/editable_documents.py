"""Translated documents that a person reads and edits sentence by sentence.

The sentences are stored in pages of limited size, so that a request reads and writes only one page.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any
from uuid import uuid4

from mt.text.documents import DocumentOptions
from service.access.control import KEY_PREFIX
from service.access.database import Database
from service.access.eviction import evicted
from service.access.memories import clean_text
from service.errors import InvalidRequest, NotFound, StorageUnavailable, shorten
from service.translation.document_sentences import DocumentSentence
from service.translation.documents import DocumentFile, DocumentTranslation

PAGE_SENTENCES, PAGE_CHARACTERS = 100, 50_000  # largest page, unless a single sentence is larger
PAGES = 20  # pages that one transaction reads
MAX_TARGET_LENGTH = 20_000  # characters of an edited translation
DOCUMENT_BYTES = 20_000  # bytes of a document in addition to its content and its sentences
CLEANUP_SECONDS = 60.0  # time between two deletions of expired documents


@dataclass(frozen=True)
class EditableDocumentLimits:
    """Limits of the stored documents. `evicted` selects the documents to delete if they exceed a limit of bytes."""

    bytes_per_caller: int = 50_000_000
    bytes: int = 200_000_000  # limit for all callers together
    seconds: float = 1800.0  # a document is deleted this long after its last change


@dataclass(frozen=True)
class EditableDocument:
    """A stored document without its content. `source` and `target` are languages."""

    number: int  # key in the database; the id is for callers
    owner: str
    name: str
    source: str
    target: str
    sentences: int


@dataclass(frozen=True)
class SentencePage:
    """Consecutive sentences of a document, beginning with sentence number `first`."""

    first: int
    sentences: Sequence[DocumentSentence]


class EditableDocuments:
    """The editable documents of all callers.

    If a caller without a key stores a document, everybody who knows its id can use it. Methods raise NotFound if a
    document does not exist or belongs to another caller.
    """

    def __init__(self, database: Database, limits: EditableDocumentLimits, options: DocumentOptions) -> None:
        """`options` has the parsing options of all documents, except those that are stored with each document."""
        self._database = database
        self._limits = limits
        self._options = options

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Delete expired documents in the background while the context is open."""
        cleanup = asyncio.create_task(self._clean_up())
        try:
            yield
        finally:
            cleanup.cancel()
            await asyncio.gather(cleanup, return_exceptions=True)

    async def put(self, owner: str, file: DocumentFile, translated: DocumentTranslation, target: str) -> str | None:
        """Store a document of the caller `owner` and return its id; None if it is too large for the limits.

        `target` is the language of the translation.
        """
        options = {name: getattr(file.options, name) for name in _STORED_OPTIONS}
        pages = await asyncio.to_thread(lambda: list(_pages(translated.sentences)))
        size = DOCUMENT_BYTES + len(file.content) + sum(len(content) for _, content in pages)
        if size > min(self._limits.bytes_per_caller, self._limits.bytes):
            return None
        row = (str(uuid4()), owner, file.name, translated.source, target, json.dumps(options), time.time())

        def write(connection: sqlite3.Connection) -> str | None:
            insert = (
                "INSERT INTO editable_documents (id, owner, name, source, target, options, changed, sentences, bytes, "
                "content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            )
            number = connection.execute(insert, (*row, len(translated.sentences), size, file.content)).lastrowid
            connection.executemany(
                "INSERT INTO editable_pages VALUES (?, ?, ?)", ((number, first, content) for first, content in pages)
            )
            return row[0] if self._make_room(connection, owner, row[0]) else None

        return await self._database.write(write, owner)

    async def get(self, caller: str, id: str) -> EditableDocument:
        return await self._database.read(lambda connection: self._select(connection, caller, id), caller)

    async def page(self, caller: str, id: str, first: int) -> tuple[EditableDocument, SentencePage]:
        """Return a document, and its sentences from number `first` to the end of the page that contains this number.

        Return no sentences if `first` is too large.
        """

        def read(connection: sqlite3.Connection) -> tuple[EditableDocument, SentencePage]:
            document = self._select(connection, caller, id)
            if first >= document.sentences:
                return document, SentencePage(first, ())
            page = _page(connection, document.number, first)
            return document, SentencePage(first, page.sentences[first - page.first :])

        return await self._database.read(read, caller)

    async def pages(self, caller: str, id: str) -> AsyncIterator[SentencePage]:
        """Yield all pages of a document in order. The sentences contain the edits that have been made so far."""
        document = await self.get(caller, id)
        first = 0
        while first < document.sentences:

            def read(connection: sqlite3.Connection, first: int = first) -> list[SentencePage]:
                self._select(connection, caller, id)
                query = f"{_SELECT_PAGE} AND first >= ? ORDER BY first LIMIT {PAGES}"
                return [_parsed(*row) for row in connection.execute(query, (document.number, first))]

            for page in await self._database.read(read, caller):
                yield page
                first = page.first + len(page.sentences)

    async def edit(self, caller: str, id: str, number: int, target: str) -> DocumentSentence:
        """Replace the translation of sentence `number` by `target`, and return the changed sentence.

        White space and control characters in `target` become single spaces.

        Raises:
            NotFound: if the document does not exist, or has no sentence of this number.
            InvalidRequest: if the translation is too long, or makes the document too large.
        """
        if len(target) > MAX_TARGET_LENGTH:
            most = f"accepted: at most {MAX_TARGET_LENGTH}"
            raise InvalidRequest.listing([f"the translation has {len(target)} characters; {most}"])
        text = clean_text(target)

        def write(connection: sqlite3.Connection) -> DocumentSentence:
            document = self._select(connection, caller, id)
            if number >= document.sentences:
                raise NotFound(f"The document has no sentence {number}; it has {document.sentences}, from number 0")
            page = _page(connection, document.number, number)
            sentences = list(page.sentences)
            before = _content(sentences)
            edited = sentences[number - page.first] = sentences[number - page.first].with_target(text)
            after = _content(sentences)
            update = "UPDATE editable_pages SET sentences = ? WHERE document = ? AND first = ?"
            connection.execute(update, (after, document.number, page.first))
            update = "UPDATE editable_documents SET bytes = bytes + ?, changed = ? WHERE number = ?"
            connection.execute(update, (len(after) - len(before), time.time(), document.number))
            if not self._make_room(connection, document.owner, id):
                most = f"accepted: at most {self._limits.bytes_per_caller:,}"
                raise InvalidRequest.listing([f"the translation makes the document too large in bytes; {most}"])
            return edited

        return await self._database.write(write, caller)

    async def file(self, caller: str, id: str) -> DocumentFile:
        """Return the original file, which was translated."""

        def read(connection: sqlite3.Connection) -> DocumentFile:
            document = self._select(connection, caller, id)
            query = "SELECT options, content FROM editable_documents WHERE number = ?"
            options, content = connection.execute(query, (document.number,)).fetchone()
            stored = json.loads(options)
            stored["columns"] = tuple(stored["columns"])
            return DocumentFile(document.name, bytes(content), replace(self._options, **stored))

        return await self._database.read(read, caller)

    async def delete(self, caller: str, id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            self._select(connection, caller, id)
            connection.execute("DELETE FROM editable_documents WHERE id = ?", (id,))

        await self._database.write(write, caller)

    def _select(self, connection: sqlite3.Connection, caller: str, id: str) -> EditableDocument:
        query = (
            "SELECT number, owner, name, source, target, sentences FROM editable_documents "
            f"WHERE id = ? AND (owner = ? OR owner NOT LIKE '{KEY_PREFIX}%') AND changed > ?"
        )
        row = connection.execute(query, (id, caller, time.time() - self._limits.seconds)).fetchone()
        if row is None:
            raise NotFound(f"There is no document {shorten(id)}; documents are deleted after a while")
        return EditableDocument(*row)

    def _make_room(self, connection: sqlite3.Connection, owner: str, id: str) -> bool:
        """Delete documents until all limits are met. Return whether the document `id` is still stored.

        `owner` is the caller whose limit is checked.
        """
        self._delete_expired(connection)
        query = "SELECT id, owner, bytes FROM editable_documents ORDER BY number"
        sizes = connection.execute(query).fetchall()
        owned = [row for row in sizes if row[1] == owner]
        deleted = set(evicted(owned, sum(row[2] for row in owned) - self._limits.bytes_per_caller))
        left = [row for row in sizes if row[0] not in deleted]
        deleted |= set(evicted(left, sum(row[2] for row in left) - self._limits.bytes))
        connection.executemany("DELETE FROM editable_documents WHERE id = ?", ((one,) for one in deleted))
        return id not in deleted

    def _delete_expired(self, connection: sqlite3.Connection) -> None:
        expired = time.time() - self._limits.seconds
        connection.execute("DELETE FROM editable_documents WHERE changed <= ?", (expired,))

    async def _clean_up(self) -> None:
        """Delete expired documents every CLEANUP_SECONDS until cancelled."""
        while True:
            with suppress(StorageUnavailable):
                await self._database.write(self._delete_expired)
            await asyncio.sleep(CLEANUP_SECONDS)


_STORED_OPTIONS = ("columns", "source_language", "target_language")
_values = attrgetter(*(field.name for field in fields(DocumentSentence)))
_SELECT_PAGE = "SELECT first, sentences FROM editable_pages WHERE document = ?"


def _pages(sentences: Sequence[DocumentSentence]) -> Iterator[tuple[int, bytes]]:
    """Divide sentences into pages. Yield (number of the first sentence, content) of each page."""
    first = size = 0
    for number, sentence in enumerate(sentences):
        length = len(sentence.source) + len(sentence.target)
        if number > first and (size + length > PAGE_CHARACTERS or number - first == PAGE_SENTENCES):
            yield first, _content(sentences[first:number])
            first, size = number, 0
        size += length
    if sentences:
        yield first, _content(sentences[first:])


def _content(sentences: Sequence[DocumentSentence]) -> bytes:
    """Return sentences as JSON, to be stored as bytes: SQLite knows the length of bytes without reading them."""
    text = json.dumps(list(map(_values, sentences)), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _page(connection: sqlite3.Connection, document: int, number: int) -> SentencePage:
    """Return the page that contains sentence `number` of the document with the key `document`."""
    query = f"{_SELECT_PAGE} AND first <= ? ORDER BY first DESC LIMIT 1"
    return _parsed(*connection.execute(query, (document, number)).fetchone())


def _parsed(first: int, content: bytes) -> SentencePage:
    return SentencePage(first, [_sentence(*values) for values in json.loads(content)])


def _sentence(
    segment: int, source: str, target: str, before: str, after: str, links: list[list[list[int]]], *values: Any
) -> DocumentSentence:
    pairs = tuple(((a, b), (c, d)) for (a, b), (c, d) in links)
    return DocumentSentence(segment, source, target, before, after, pairs, *values)
