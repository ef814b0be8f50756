"""Translation of files. Parser processes read and write a file, and the models translate its segments part by part."""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import NamedTuple

import structlog

from mt.pipeline.results import SentenceTranslation
from mt.scoring.confidence import DOUBTFUL
from mt.text.alignment import split_ranges, without_objects
from mt.text.documents import DocumentOptions
from service.errors import CannotTranslate, DeadlineExceeded, Overloaded
from service.fair_semaphore import FairSemaphore
from service.freed_memory import LongList
from service.parsers.operations import PackedSegment, pack, read_document, write_document
from service.parsers.pool import SMALL_FILE, ParserPool
from service.translation.answers import alignment_of, untranslated_answer
from service.translation.coroutines import WorkThreads, gather_or_raise, when_admitted
from service.translation.jobs import Answer, Job, percent
from service.workers.messages import SourceText

PART_CHARACTERS, PART_TEXTS = 20_000, 200  # largest part of a document that goes to the models in one request
MAX_PARTS = 2  # parts of a document that are translated at a time
UNKNOWN = 2  # a sentence without a confidence
MAX_LARGE, MAX_SMALL, MAX_PER_CALLER = 8, 64, 4  # documents that are translated at a time

TranslateTexts = Callable[[Sequence[SourceText]], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class OpenedDocument:
    """A file, the options for parsing it, and the texts of its segments."""

    name: str
    content: bytes
    options: DocumentOptions
    segments: Sequence[SourceText]

    @cached_property
    def characters(self) -> int:
        """Number of characters to translate."""
        return sum(len(segment.text) for segment in self.segments)


@dataclass(frozen=True)
class DocumentTranslation:
    """A translated file: its content, the language of its text, and (source, translation) of its sentences.

    `translated` is the number of sentences that the models were given, and `doubtful` the number of those that should
    be checked; it is None if the models estimate no confidence.
    """

    content: bytes
    source: str
    sentences: Sequence[tuple[str, str]]
    translated: int = 0
    doubtful: int | None = 0


class DocumentTurns:
    """Turns of documents to be translated. A document whose turn has not come holds its content only.

    A small document waits for small documents only.
    """

    def __init__(self) -> None:
        self._large, self._small = FairSemaphore(MAX_LARGE, MAX_PER_CALLER), FairSemaphore(MAX_SMALL, MAX_PER_CALLER)

    def held(self, caller: str, size: int) -> AbstractAsyncContextManager[None]:
        """Return a context that begins with the turn of a document of `size` bytes, and holds it until its end."""
        return (self._large if size > SMALL_FILE else self._small).held(caller)


class DocumentTranslator:
    """Translator of files."""

    def __init__(self, options: DocumentOptions, parsers: ParserPool, threads: WorkThreads) -> None:
        self.turns = DocumentTurns()
        self._options = options
        self._parsers = parsers
        self._threads = threads

    async def open(
        self, job: Job, name: str, content: bytes, columns: tuple[str, ...] = (), encoding: str = ""
    ) -> OpenedDocument:
        """Parse a file for the caller and the languages of a job.

        If `columns` are given and the file is a table, only these columns are parsed. `encoding` is that of a text
        file; if it is empty, it is detected.

        Raises: InvalidDocument, ParsingLimitExceeded if the file cannot be parsed.
        """
        options = replace(
            self._options,
            columns=columns,
            source_language=job.source or "",
            target_language=job.target,
            encoding=encoding,
        )
        segments = await self._parsers.run(job.caller, read_document, name, content, options)
        opened = OpenedDocument(name, content, options, segments)
        await self._threads.run(job.caller, len(segments), lambda: opened.characters)  # 8 ms for 100,000 segments
        return opened

    async def open_again(self, job: Job, opened: OpenedDocument) -> OpenedDocument:
        """Parse a file again for the languages of a job."""
        options = opened.options
        return await self.open(job, opened.name, opened.content, options.columns, options.encoding)

    async def translated(
        self, caller: str, opened: OpenedDocument, source: str, translate: TranslateTexts
    ) -> DocumentTranslation:
        """Return the file with translated segments. `source` is the language of the text.

        If `translate` raises CannotTranslate for a segment, this segment stays unchanged.

        Raises:
            CannotTranslate: if no segment can be translated.
            InvalidDocument, ParsingLimitExceeded: if the file cannot be written.
            ServiceError: any other error of `translate`.
        """
        progress = _Progress(caller, source, translate, self._threads, opened.segments)
        await gather_or_raise([progress.run() for _ in range(MAX_PARTS)])
        if progress.failed and progress.failed == sum(map(len, progress.done.values())):
            raise CannotTranslate(f"none of the {progress.failed:,} texts of the file can be translated")
        if progress.failed:
            structlog.get_logger().warning(
                "segments not translated", failed=progress.failed, segments=len(opened.segments)
            )
        pieces = (piece for number in sorted(progress.done) for piece in progress.done.pop(number))

        def collect() -> tuple[list[PackedSegment], DocumentTranslation]:
            whole = LongList(_joined(parts, list(islice(pieces, len(parts)))) for parts in map(_cut, opened.segments))
            sentences, verdicts = LongList(chain.from_iterable(one.sentences for one in whole)), bytearray()
            verdicts.extend(chain.from_iterable(one.verdicts for one in whole))
            about = DocumentTranslation(b"", source, sentences, len(verdicts), count_doubtful(verdicts))
            return LongList(one.packed for one in whole), about

        segments, about = await self._threads.run(caller, opened.characters, collect)
        file = opened.name, opened.content, opened.options
        return replace(about, content=await self._parsers.run(caller, write_document, *file, segments))


def sentence_pairs(text: str, answer: Answer) -> list[tuple[str, str]]:
    """Return (source, translation) of the sentences of `text`. If the answer lists none, `text` is one sentence."""
    if not answer.sentences:
        return [(without_objects(text), without_objects(answer.text))]
    ranges = ((sentence.source, sentence.target_range) for sentence in answer.sentences)
    return [(without_objects(source), without_objects(answer.text[begin:end])) for source, (begin, end) in ranges]


def verdicts_of(sentences: Sequence[SentenceTranslation]) -> bytes:
    """Return for each sentence whether its confidence is below DOUBTFUL or it is not translated: 1, 0, or UNKNOWN."""
    return bytes(
        UNKNOWN
        if sentence.confidence is None and not sentence.untranslated
        else sentence.untranslated or (percent(sentence.confidence) or 0) < DOUBTFUL
        for sentence in sentences
    )


def count_doubtful(verdicts: bytes | bytearray) -> int | None:
    """Return how many sentences are doubtful; None if nothing is known of any."""
    return None if verdicts and verdicts.count(UNKNOWN) == len(verdicts) else verdicts.count(1)


class _Piece(NamedTuple):
    """A translated segment, or a piece of one: what its file needs of it. An Answer takes six times the memory."""

    packed: PackedSegment
    sentences: list[tuple[str, str]]
    verdicts: bytes


def _pieces(texts: Sequence[SourceText], answers: Sequence[Answer]) -> list[_Piece]:
    return LongList(
        _Piece(
            pack(answer.text, alignment_of(answer)), sentence_pairs(text.text, answer), verdicts_of(answer.sentences)
        )
        for text, answer in zip(texts, answers, strict=True)
    )


class _Progress:
    """Translation of one document in parts. `done` has the translated pieces of its segments."""

    def __init__(
        self, caller: str, source: str, translate: TranslateTexts, threads: WorkThreads, segments: Sequence[SourceText]
    ) -> None:
        self.failed = 0  # number of pieces that could not be translated
        self.done: dict[int, list[_Piece]] = {}  # those of a part by the number of its first piece
        self._caller, self._source = caller, source
        self._translate, self._threads = translate, threads
        self._parts = _parts(segments)
        self._admitted = False

    async def run(self) -> None:
        """Translate one part after the other, until no part is left. Concurrent calls share the parts."""
        for first, segments in self._parts:
            finish = partial(_pieces, segments, await self._together(segments))
            self.done[first] = await self._threads.run(self._caller, sum(len(one.text) for one in segments), finish)
            await asyncio.sleep(0)  # parts whose translations are in the cache never wait

    async def _together(self, texts: Sequence[SourceText]) -> Sequence[Answer]:
        """Translate texts, in halves if one of them cannot be translated, or all take longer than a part may.

        Wait if the queue is full. Raises: Overloaded if no part of the document has been translated yet.
        """
        try:
            answers = await when_admitted(partial(self._translate, texts), (Overloaded,) if self._admitted else ())
        except (CannotTranslate, DeadlineExceeded) as error:
            if len(texts) > 1:
                half = len(texts) // 2
                return [*await self._together(texts[:half]), *await self._together(texts[half:])]
            if isinstance(error, DeadlineExceeded):
                raise
            self.failed += 1
            return [untranslated_answer(texts[0].text, self._source)]
        self._admitted = True
        return answers


def _parts(segments: Sequence[SourceText]) -> Iterator[tuple[int, Sequence[SourceText]]]:
    """Divide the pieces of all segments into parts. Yield (number of the first piece, pieces) of each part."""
    first, size, part = 0, 0, list[SourceText]()
    for piece in chain.from_iterable(map(_cut, segments)):
        if part and (size + len(piece.text) > PART_CHARACTERS or len(part) == PART_TEXTS):
            yield first, part
            first, size, part = first + len(part), 0, []
        part.append(piece)
        size += len(piece.text)
    if part:
        yield first, part


def _cut(segment: SourceText) -> list[SourceText]:
    """Cut a segment of more than PART_CHARACTERS characters into pieces: after a line break, else after a space."""
    if len(segment.text) <= PART_CHARACTERS:
        return [segment]
    texts, begin = [], 0
    while begin < len(segment.text):
        end = begin + PART_CHARACTERS
        if end < len(segment.text):
            end = next((place for sign in "\n 。" if (place := segment.text.rfind(sign, begin, end) + 1)), end)
        texts.append(segment.text[begin:end])
        begin = end
    protected = split_ranges(segment.protected, texts)
    return [
        replace(segment, text=text, protected=ranges, marked=()) for text, ranges in zip(texts, protected, strict=True)
    ]


def _joined(texts: Sequence[SourceText], pieces: Sequence[_Piece]) -> _Piece:
    """Return the translated segment whose pieces have these texts."""
    if len(pieces) == 1:
        return pieces[0]
    numbers, read, written = array("I"), 0, 0
    for text, piece in zip(texts, pieces, strict=True):
        translation, links = piece.packed
        numbers.extend(n + (read, read, written, written)[place % 4] for place, n in enumerate(array("I", links)))
        read, written = read + len(text.text), written + len(translation)
    return _Piece(
        ("".join(piece.packed[0] for piece in pieces), numbers.tobytes()),
        [pair for piece in pieces for pair in piece.sentences],
        b"".join(piece.verdicts for piece in pieces),
    )
