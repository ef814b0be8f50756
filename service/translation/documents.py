"""Translates files: opens and renders them in separate threads, and translates their segments in parts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from mt.errors import DocumentError
from mt.text.documents import Document, DocumentOptions, open_document
from mt.text.markup import TranslatedSegment
from service.errors import CannotTranslate, DeadlineExceeded, InvalidDocument, Overloaded, error_location
from service.translation.answers import alignment_of, unchanged_answer
from service.translation.jobs import Answer
from service.translation.preparation import beginning_of, segment_text
from service.workers.messages import SourceText

T = TypeVar("T")

THREADS = 2  # threads that open and render files
THREAD_SECONDS = 30.0  # longest time for opening or rendering a file
PART_CHARACTERS, PART_TEXTS = 20_000, 200  # largest part of a document that goes to the models in one request
MAX_PARTS = 2  # parts of a document that are translated at a time
RETRY_SECONDS = 0.5  # pause between attempts while the queue is full

TranslateTexts = Callable[[Sequence[SourceText]], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class OpenedDocument:
    """A file and the document that was parsed from it."""

    name: str
    content: bytes
    document: Document

    @property
    def characters(self) -> int:
        """Number of characters to translate."""
        return sum(len(segment.text) for segment in self.document.segments)

    def beginning(self) -> str:
        """Return the text of the first segments, for language detection."""
        return beginning_of(segment.text for segment in self.document.segments)


class DocumentTranslator:
    """Opens files and translates them."""

    def __init__(self, options: DocumentOptions) -> None:
        self._options = options
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="documents")

    async def open(self, name: str, content: bytes) -> OpenedDocument:
        """Parse a file in a thread. Raises: InvalidDocument if the file cannot be parsed."""
        try:
            document = await self._in_thread(name, partial(open_document, name, content, self._options))
        except DocumentError as error:
            raise InvalidDocument(str(error)) from error
        return OpenedDocument(name, content, document)

    async def translated(self, opened: OpenedDocument, source: str, translate: TranslateTexts) -> bytes:
        """Return the content of the file with translated segments.

        A segment for which `translate` raises CannotTranslate stays unchanged.

        Raises:
            InvalidDocument: the file cannot be rendered.
            ServiceError: any other error of `translate`.
        """
        segments = opened.document.segments
        progress = _Progress(source, translate)
        parts = _parts([segment_text(segment) for segment in segments])
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(progress.part(part)) for part in parts]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        answers = [answer for task in tasks for answer in task.result()]
        if progress.failed:
            structlog.get_logger().warning("segments not translated", failed=progress.failed, segments=len(segments))
        translated = [TranslatedSegment(answer.text, alignment_of(answer)) for answer in answers]
        return await self._in_thread(opened.name, partial(opened.document.render, translated))

    async def _in_thread(self, name: str, work: Callable[[], T]) -> T:
        """Return the result of `work`, which reads or writes the file `name` in a thread.

        Raises: DocumentError if `work` raises it; InvalidDocument for any other error, because the same file would
            fail again, and if `work` takes more than THREAD_SECONDS.
        """
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def working() -> T:
            loop.call_soon_threadsafe(begun.set)
            return work()

        result = loop.run_in_executor(self._threads, working)
        try:
            await begun.wait()
            return await asyncio.wait_for(result, THREAD_SECONDS)
        except TimeoutError as error:
            raise InvalidDocument(f"{name} takes longer than {THREAD_SECONDS:g} s to read or write") from error
        except DocumentError:
            raise
        except Exception as error:
            structlog.get_logger().error("document failed", location=error_location(error))
            raise InvalidDocument(f"{name} cannot be read or written") from error
        finally:
            result.cancel()  # if the work has not begun


class _Progress:
    """Translates the parts of one document."""

    def __init__(self, source: str, translate: TranslateTexts) -> None:
        self.failed = 0  # number of segments that could not be translated
        self._source = source
        self._translate = translate
        self._room = asyncio.Semaphore(MAX_PARTS)
        self._admitted = False

    async def part(self, texts: Sequence[SourceText]) -> Sequence[Answer]:
        """Translate one part after waiting until fewer than MAX_PARTS parts are being translated."""
        async with self._room:
            return await self._together(texts)

    async def _together(self, texts: Sequence[SourceText]) -> Sequence[Answer]:
        try:
            return await self._when_admitted(texts)
        except CannotTranslate:
            return [await self._alone(text) for text in texts]
        except DeadlineExceeded:  # the part is too large for the time limit of a request
            if len(texts) == 1:
                raise
            half = len(texts) // 2
            return [*await self._together(texts[:half]), *await self._together(texts[half:])]

    async def _alone(self, text: SourceText) -> Answer:
        try:
            return (await self._when_admitted([text]))[0]
        except CannotTranslate:
            self.failed += 1
            return unchanged_answer(text.text, self._source)

    async def _when_admitted(self, texts: Sequence[SourceText]) -> Sequence[Answer]:
        """Translate texts. While the queue is full, try again if an earlier part of the document was admitted.

        Raises: Overloaded if the queue is full and no part of the document has been admitted.
        """
        while True:
            try:
                answers = await self._translate(texts)
            except Overloaded:
                if not self._admitted:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._admitted = True
                return answers


def _parts(texts: Sequence[SourceText]) -> list[list[SourceText]]:
    parts: list[list[SourceText]] = []
    size = 0
    for text in texts:
        if not parts or size + len(text.text) > PART_CHARACTERS or len(parts[-1]) == PART_TEXTS:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text.text)
    return parts
