"""Parsing and writing of the marked-up texts of jobs. Parser processes, which can be killed, process long texts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack, cast

from service.parsers.operations import PackedSegment, pack, read_markup, write_markup
from service.parsers.pool import ParserPool
from service.parsers.process import run
from service.translation.answers import alignment_of, text_of_rank
from service.translation.coroutines import TEXT_COST, WorkThreads
from service.translation.jobs import Answer, Format, Job
from service.workers.messages import SourceText

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

SHORT = 2000  # most characters that a thread parses; the worst known input takes 0.1 s of processor time
PARSING_COST = 10  # parsing a character of markup takes as long as other work on this many characters


class MarkupTranslator:
    """Reader of the segments of marked-up texts, and writer of their translations."""

    def __init__(self, parsers: ParserPool, threads: WorkThreads) -> None:
        self._parsers = parsers
        self._threads = threads

    async def read(self, job: Job) -> list[list[SourceText]]:
        """Return the segments of each marked-up text of a job. Raises: InvalidDocument, ParsingLimitExceeded."""
        xml = job.format is Format.XML
        segments: list[list[SourceText]] = [[] for _ in job.texts]
        for number, segment in await self._run(job, 1, read_markup, job.texts, xml, job.markup_options):
            segments[number].append(segment)
        return segments

    async def write(self, job: Job, texts: Sequence[tuple[str, Sequence[Answer]]]) -> list[list[str]]:
        """Return the marked-up translations of each text, the best first.

        `texts` contains pairs of a marked-up text and the answers for its segments.

        Raises: InvalidDocument, ParsingLimitExceeded.
        """
        counts = [1 + max((len(answer.alternatives) for answer in group), default=0) for _, group in texts]

        def collect() -> list[PackedSegment]:
            return [
                pack(text_of_rank(answer, rank), alignment_of(answer) if rank == 0 else ())
                for count, (_, group) in zip(counts, texts, strict=True)
                for rank in range(count)
                for answer in group
            ]

        translations = await self._threads.run(job.caller, sum(map(len, job.texts)), collect)
        versions = tuple((text, count) for count, (text, _) in zip(counts, texts, strict=True))
        xml = job.format is Format.XML
        most = max(counts, default=1)
        written = iter(await self._run(job, most, write_markup, versions, xml, job.markup_options, translations))
        return [list(dict.fromkeys(next(written) for _ in range(count))) for count in counts]

    async def _run(self, job: Job, times: int, operation: Callable[[Unpack[Arguments]], T], *args: *Arguments) -> T:
        """Run an operation of service/parsers/operations.py and return its result.

        Depending on the length of the job's texts and on how many `times` each is written, it runs on the event loop,
        in a thread or in a process.
        """
        size = sum(map(len, job.texts))
        if size > SHORT:
            return await self._parsers.run(job.caller, operation, *args)
        work = partial(run, operation.__name__, args)
        effort = times * (PARSING_COST * size + TEXT_COST * len(job.texts))
        outcome = await self._threads.run(job.caller, effort, work)
        return cast(T, self._parsers.result(outcome, operation.__name__))
