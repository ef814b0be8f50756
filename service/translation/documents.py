"""Translates files: parser processes read and write them, and their segments are translated in parts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import structlog

from mt.text.documents import DocumentOptions, translated_name
from mt.text.markup import TranslatedSegment
from service.errors import CannotTranslate, DeadlineExceeded, Overloaded
from service.parsers.operations import read_document, write_document
from service.parsers.pool import ParserPool
from service.translation.answers import alignment_of, unchanged_answer
from service.translation.jobs import Answer
from service.translation.preparation import beginning_of
from service.workers.messages import SourceText

PART_CHARACTERS, PART_TEXTS = 20_000, 200  # largest part of a document that goes to the models in one request
MAX_PARTS = 2  # parts of a document that are translated at a time
RETRY_SECONDS = 0.5  # pause between attempts while the queue is full

TranslateTexts = Callable[[Sequence[SourceText]], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class OpenedDocument:
    """A file and the texts of its segments."""

    name: str
    content: bytes
    options: DocumentOptions
    segments: Sequence[SourceText]

    @cached_property
    def characters(self) -> int:
        """Number of characters to translate."""
        return sum(len(segment.text) for segment in self.segments)

    def beginning(self) -> str:
        """Return the text of the first segments, for language detection."""
        return beginning_of(segment.text for segment in self.segments)


class DocumentTranslator:
    """Opens files and translates them."""

    def __init__(self, options: DocumentOptions, parsers: ParserPool) -> None:
        self._options = options
        self._parsers = parsers

    async def open(
        self,
        caller: str,
        name: str,
        content: bytes,
        columns: tuple[str, ...] = (),
        source: str = "",
        target: str = "",
    ) -> OpenedDocument:
        """Parse a file. Raises: InvalidDocument, ParsingLimitExceeded if the file cannot be parsed."""
        options = replace(self._options, columns=columns, source_language=source, target_language=target)
        segments = await self._parsers.run(caller, read_document, name, content, options)
        return OpenedDocument(name, content, options, segments)

    async def untranslated(self, caller: str, opened: OpenedDocument) -> bytes:
        """Return the content of the file, in the format of its translation."""
        if translated_name(opened.name) == opened.name:
            return opened.content
        same = [TranslatedSegment(segment.text) for segment in opened.segments]
        return await self._parsers.run(caller, write_document, opened.name, opened.content, opened.options, same)

    async def translated(self, caller: str, opened: OpenedDocument, source: str, translate: TranslateTexts) -> bytes:
        """Return the content of the file with translated segments.

        A segment for which `translate` raises CannotTranslate stays unchanged.

        Raises:
            InvalidDocument, ParsingLimitExceeded: if the file cannot be written.
            ServiceError: any other error of `translate`.
        """
        progress = _Progress(source, translate, _parts(opened.segments))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(MAX_PARTS):
                    group.create_task(progress.run())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        translations = [segment for number in sorted(progress.done) for segment in progress.done[number]]
        if progress.failed:
            structlog.get_logger().warning(
                "segments not translated", failed=progress.failed, segments=len(opened.segments)
            )
        return await self._parsers.run(
            caller, write_document, opened.name, opened.content, opened.options, translations
        )


class _Progress:
    """Translates the parts of one document."""

    def __init__(self, source: str, translate: TranslateTexts, parts: Sequence[Sequence[SourceText]]) -> None:
        self.failed = 0  # number of segments that could not be translated
        self.done: dict[int, list[TranslatedSegment]] = {}  # translations by number of the part
        self._source = source
        self._translate = translate
        self._parts = iter(enumerate(parts))
        self._admitted = False

    async def run(self) -> None:
        """Translate one part after the other, until no part is left. Several of these may run at a time."""
        for number, segments in self._parts:
            answers = await self._together(segments)
            self.done[number] = [TranslatedSegment(answer.text, alignment_of(answer)) for answer in answers]
            await asyncio.sleep(0)  # parts whose translations are in the cache never wait

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


def _parts(segments: Sequence[SourceText]) -> list[list[SourceText]]:
    parts: list[list[SourceText]] = []
    size = 0
    for segment in segments:
        if not parts or size + len(segment.text) > PART_CHARACTERS or len(parts[-1]) == PART_TEXTS:
            parts.append([])
            size = 0
        parts[-1].append(segment)
        size += len(segment.text)
    return parts
