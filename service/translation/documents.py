"""Files: opened and rendered in threads of their own, and translated in parts, so that a long one blocks nobody."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from mt.errors import DocumentError
from mt.text.documents import Document, DocumentOptions, open_document
from mt.text.markup import Translated
from service.errors import CannotTranslate, DeadlineExceeded, InvalidDocument, Overloaded, where
from service.translation.assembly import links, unchanged
from service.translation.jobs import Answer
from service.translation.preparation import Unit, unit_of

T = TypeVar("T")

THREADS = 2  # that take files apart and put them together
SECONDS = 30.0  # for one of them to do so
PART_CHARACTERS, PART_TEXTS = 20_000, 200  # that go to the models together
PARTS = 2  # of a document that are in work at the same time
RETRY_SECONDS = 0.5  # a document that has begun waits for its turn

Translate = Callable[[Sequence[Unit]], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class Opened:
    """A file taken apart."""

    name: str
    content: bytes
    document: Document

    @property
    def characters(self) -> int:
        """To be translated."""
        return sum(len(segment.text) for segment in self.document.segments)

    def beginning(self, length: int) -> str:
        """What a person reads first."""
        found = ""
        for segment in self.document.segments:
            found += segment.text + "\n"
            if len(found) >= length:
                break
        return found


class Documents:
    """Opens files and writes them translated."""

    def __init__(self, options: DocumentOptions) -> None:
        self._options = options
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="documents")

    async def open(self, name: str, content: bytes) -> Opened:
        """Raises InvalidDocument."""
        try:
            document = await self._aside(name, partial(open_document, name, content, self._options))
        except DocumentError as error:
            raise InvalidDocument(str(error)) from error
        return Opened(name, content, document)

    async def translated(self, opened: Opened, source: str, translate: Translate) -> bytes:
        """The file with its segments translated. One that no model can translate stays, and the rest does not.

        Raises what `translate` raises, and InvalidDocument.
        """
        segments = opened.document.segments
        progress = _Progress(source, translate)
        parts = _parts([unit_of(segment) for segment in segments])
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(progress.part(part)) for part in parts]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        answers = [answer for task in tasks for answer in task.result()]
        if progress.failed:
            structlog.get_logger().warning("segments left as they were", count=progress.failed, of=len(segments))
        found = [Translated(answer.text, links(answer)) for answer in answers]
        return await self._aside(opened.name, partial(opened.document.render, found))

    async def _aside(self, name: str, work: Callable[[], T]) -> T:
        """In a thread, where it takes what time it takes, but is not waited for longer than that once it has begun.

        A file on which a library fails will not be better when it is sent again: no mistake of ours, to its client.
        """
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def working() -> T:
            loop.call_soon_threadsafe(begun.set)
            return work()

        found = loop.run_in_executor(self._threads, working)
        try:
            await begun.wait()
            return await asyncio.wait_for(found, SECONDS)
        except TimeoutError as error:
            raise InvalidDocument(f"{name} takes longer than {SECONDS:g} s to read or write") from error
        except DocumentError:
            raise
        except Exception as error:
            structlog.get_logger().error("document failed", where=where(error))
            raise InvalidDocument(f"{name} cannot be read or written") from error
        finally:
            found.cancel()  # if nobody waits any more, and it has not begun


class _Progress:
    """One document on its way."""

    def __init__(self, source: str, translate: Translate) -> None:
        self.failed = 0  # segments
        self._source = source
        self._translate = translate
        self._turns = asyncio.Semaphore(PARTS)
        self._begun = False

    async def part(self, units: Sequence[Unit]) -> Sequence[Answer]:
        async with self._turns:
            return await self._together(units)

    async def _together(self, units: Sequence[Unit]) -> Sequence[Answer]:
        try:
            return await self._patiently(units)
        except CannotTranslate:
            return [await self._alone(unit) for unit in units]
        except DeadlineExceeded:  # that of the models: too much for them at a time
            if len(units) == 1:
                raise
            half = len(units) // 2
            return [*await self._together(units[:half]), *await self._together(units[half:])]

    async def _alone(self, unit: Unit) -> Answer:
        try:
            return (await self._patiently([unit]))[0]
        except CannotTranslate:
            self.failed += 1
            return unchanged(unit.text, self._source)

    async def _patiently(self, units: Sequence[Unit]) -> Sequence[Answer]:
        """A document that has been let in is not sent away half done because the queue is full."""
        while True:
            try:
                found = await self._translate(units)
            except Overloaded:
                if not self._begun:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._begun = True
                return found


def _parts(units: Sequence[Unit]) -> list[list[Unit]]:
    found: list[list[Unit]] = []
    size = 0
    for unit in units:
        if not found or size + len(unit.text) > PART_CHARACTERS or len(found[-1]) == PART_TEXTS:
            found.append([])
            size = 0
        found[-1].append(unit)
        size += len(unit.text)
    return found
