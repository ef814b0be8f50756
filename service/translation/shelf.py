"""Documents between their upload and their download: in memory, bounded, each for its caller and for a while."""

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from service.errors import InternalError, NotFound, Overloaded, ServiceError, shown, where
from service.translation.documents import Opened

RETRY_SECONDS = 1.0  # while the queue is full
STATUS_SECONDS = 2.0  # how long a question about one waits for it to be done: the SDK asks again only after 5 s


@dataclass(frozen=True)
class ShelfLimits:
    """How many documents, and bytes of them, are kept for one caller and for all; and for how many seconds."""

    documents_of_one: int = 20
    documents: int = 200
    bytes: int = 200_000_000
    seconds: float = 3600.0


@dataclass(frozen=True, eq=False)
class Shelved:
    """A document that is translated, or has been. `task` ends with the translation."""

    id: str
    key: str
    owner: str
    name: str
    characters: int
    size: int  # of what was uploaded, in bytes
    task: "asyncio.Task[bytes]"
    since: float = field(default_factory=time.monotonic)

    @property
    def error(self) -> str:
        """Why it could not be translated; empty if it could, or is being."""
        if not self.task.done():
            return ""
        if self.task.cancelled():
            return "It took too long"
        error = self.task.exception()
        return "" if error is None else error.message if isinstance(error, ServiceError) else "Internal error"

    @property
    def done(self) -> bool:
        return self.task.done() and not self.error

    async def settled(self, seconds: float) -> None:
        """Returns when it is, or after so long."""
        await asyncio.wait([self.task], timeout=seconds)


Translate = Callable[[], Coroutine[Any, Any, bytes]]


class Shelf:
    """All the documents."""

    def __init__(self, limits: ShelfLimits, report: Callable[[str], None]) -> None:
        """`report` is told where our own mistakes were made."""
        self._limits = limits
        self._report = report
        self._documents: dict[str, Shelved] = {}

    def put(self, owner: str, opened: Opened, translate: Translate) -> Shelved:
        """Begin to translate a document. Raises Overloaded if there are too many."""
        self._expire()
        sizes = [each.size for each in self._documents.values()]
        of_owner = sum(each.owner == owner for each in self._documents.values())
        limits = self._limits
        full = len(sizes) >= limits.documents or sum(sizes) + len(opened.content) > limits.bytes
        if full or of_owner >= limits.documents_of_one:
            raise Overloaded(retry_after=10)
        task = asyncio.ensure_future(self._patiently(translate))
        task.add_done_callback(self._note)
        document = Shelved(
            id=uuid4().hex.upper(),
            key=secrets.token_hex(32).upper(),
            owner=owner,
            name=opened.name,
            characters=opened.characters,
            size=len(opened.content),
            task=task,
        )
        self._documents[document.id] = document
        asyncio.get_running_loop().call_later(limits.seconds + 1, self._expire)
        return document

    def find(self, owner: str, id: str, key: str) -> Shelved:
        """Raises NotFound, whatever does not fit."""
        self._expire()
        document = self._documents.get(id)
        known = document is not None and document.owner == owner
        if document is None or not known or not hmac.compare_digest(document.key.encode(), key.encode()):
            raise NotFound(f"There is no document {shown(id)} with this key: it was fetched, or is too old")
        return document

    def remove(self, document: Shelved) -> None:
        """Once it has been fetched."""
        self._documents.pop(document.id, None)

    def close(self) -> None:
        """The service ends."""
        for document in self._documents.values():
            document.task.cancel()
        self._documents.clear()

    async def _patiently(self, translate: Translate) -> bytes:
        """A document that was accepted waits for its turn, where a request would be refused."""
        while True:
            try:
                return await translate()
            except Overloaded:
                await asyncio.sleep(RETRY_SECONDS)

    def _expire(self) -> None:
        oldest = time.monotonic() - self._limits.seconds
        for document in [each for each in self._documents.values() if each.since <= oldest]:
            document.task.cancel()
            self.remove(document)

    def _note(self, task: "asyncio.Task[bytes]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, InternalError):
            self._report(error.where)
        elif error is not None and not isinstance(error, ServiceError):
            self._report(where(error))
