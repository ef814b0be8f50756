"""The table of documents: uploads that are being translated, their translations, and translated files to download.

If the database is a file, documents survive a restart of the service. Contents are read in parts, so that a download
takes little memory.
"""

import hmac
import sqlite3
import time
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import PurePath
from secrets import token_urlsafe

from service.access.database import Database
from service.access.eviction import evicted
from service.errors import NotFound, StorageFull, shorten

DOCUMENT_BYTES = 20_000  # bytes that a document takes at most besides its content and its job
FILE_BYTES = 4096  # bytes that a translated file takes at most besides its content
PART_BYTES = 131_072  # part of a content that is read at a time; SQLite finds a later part more slowly
MAX_NAME = 100  # characters of the name of a file
NO_KEY = b""  # in place of the digest of a key
UNFINISHED = "NOT done AND error = ''"
_COLUMNS = "number, id, owner, name, length(content), characters, error, done"
_FINISHED = f"SELECT id, owner, bytes FROM documents WHERE NOT ({UNFINISHED}) ORDER BY fetched IS NULL, created"


@dataclass(frozen=True)
class StoredDocument:
    """A document without its content. `done` is true after success, and `error` is the message of a failure or ""."""

    number: int  # key in the database; `id` is for callers
    id: str
    owner: str
    name: str
    size: int  # of the content, in bytes
    characters: int
    error: str
    done: bool

    @property
    def settled(self) -> bool:
        """True if the translation has finished or failed."""
        return self.done or bool(self.error)


class DocumentStore:
    """Store of translated files under names that nobody can guess."""

    def __init__(self, database: Database, bytes: int, seconds: float) -> None:
        """Create a store that deletes files after `seconds`. All files take at most `bytes` bytes: see `make_room`."""
        self._database = database
        self._bytes = bytes
        self._seconds = seconds

    async def put(self, name: str, content: bytes, owner: str) -> str:
        """Store a file of the caller `owner`. Return its new name: random characters, a dot and `safe_name(name)`.

        Raises: StorageFull if the disk is full, or the other documents leave too little room.
        """
        name = safe_name(name)
        stored, size, now = f"{token_urlsafe(24)}.{name}", len(content) + FILE_BYTES, time.time()
        row = (stored, owner, now, now + self._seconds, name, size, content)

        def write(connection: sqlite3.Connection) -> None:
            make_room(connection, size, self._bytes)
            insert = "INSERT INTO documents (id, owner, created, expires, name, bytes, content, done) VALUES "
            connection.execute(f"{insert} (?, ?, ?, ?, ?, ?, ?, 1)", row)

        await self._database.write(write, owner)
        return stored

    async def find(self, id: str, caller: str) -> StoredDocument:
        """Return a translated file to `caller`.

        Raises: NotFound if there is none; uploaded documents need their key.
        """
        document = await self._database.read(lambda connection: read_document(connection, id, NO_KEY), caller)
        if document is None:
            raise NotFound(f"There is no file {shorten(id)}; files are deleted after a while")
        return document

    async def parts(self, document: StoredDocument) -> AsyncIterator[bytes]:
        """Yield the content of a document in parts of PART_BYTES. Raises: NotFound if it is deleted meanwhile.

        After each part comes b"", whose sending waits until the client has read the part: while it is slow, no other
        part is in memory.
        """
        for begin in range(0, document.size, PART_BYTES):

            def read(connection: sqlite3.Connection, begin: int = begin) -> bytes:
                query = "SELECT 1 FROM documents WHERE number = ? AND id = ?"
                if connection.execute(query, (document.number, document.id)).fetchone() is None:
                    raise NotFound("The file has been deleted")
                with connection.blobopen("documents", "content", document.number, readonly=True) as blob:
                    blob.seek(begin)
                    return blob.read(PART_BYTES)

            yield await self._database.read(read, document.owner)
            yield b""


def read_document(connection: sqlite3.Connection, id: str, digest: bytes) -> StoredDocument | None:
    """Return the document with this id if `digest` is that of its key, or NO_KEY and it has no key; None otherwise."""
    query = f"SELECT digest, {_COLUMNS} FROM documents WHERE id = ? AND expires > ?"
    row = connection.execute(query, (id, time.time())).fetchone()
    if row is None or not hmac.compare_digest(digest, row[0]):
        return None
    return StoredDocument(*(*row[1:-1], bool(row[-1])))


def make_room(connection: sqlite3.Connection, size: int, limit: int) -> None:
    """Delete finished documents until a new one of `size` bytes fits into `limit` bytes.

    The caller with the most bytes loses its oldest documents, first those that have been fetched.

    Raises: StorageFull if the document does not fit.
    """
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM documents").fetchone()
    ids = list(evicted(connection.execute(_FINISHED), total + size - limit))
    connection.executemany("DELETE FROM documents WHERE id = ?", [(id,) for id in ids])
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM documents").fetchone()
    if total + size > limit:
        raise StorageFull


def safe_name(name: str) -> str:
    """Return the last part of a path that a client sent, shortened if necessary.

    Every other character than letters, their marks, digits, " ", ".", "_" and "-" becomes "_", except in the suffix.
    """
    base = PurePath(name.replace("\\", "/")).name
    stem, suffix = unicodedata.normalize("NFC", PurePath(base).stem), PurePath(base).suffix
    kept = ("L", "M", "N")  # letters, their marks, and digits
    safe = "".join(c if unicodedata.category(c)[0] in kept or c in " ._-" else "_" for c in stem).strip(". ")
    return (safe[:MAX_NAME] or "file") + suffix[:16].lower()
