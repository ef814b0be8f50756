"""The service's core, which no dialect shows in: jobs in, answers out, over models that each translate a direction."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from mt.engine.results import Insight, Translation
from mt.text import segment
from mt.text.documents import DocumentOptions
from mt.text.language import Detector
from mt.text.markup import Range
from mt.text.terms import Terms
from service.errors import DeadlineExceeded, Overloaded, ServiceError
from service.languages import Direction, Route, Routes
from service.translation.assembly import Assembly, answered, chained, moved, unchanged
from service.translation.cache import SharedWork
from service.translation.documents import Documents, Opened
from service.translation.jobs import Answer, Detected, Format, Job, StreamedSentence, StreamEnd
from service.translation.preparation import LOOKED_AT, Guess, Prepared, Preparer, Unit
from service.workers.messages import Text, Wish

T = TypeVar("T")

ASIDE = 2000  # characters of text from which on it is looked into in a thread, for the event loop must go on
MARKUP = 10  # times as long a character of markup takes
RETRY_SECONDS = 0.5  # while the queue is full
AHEAD = 16  # sentences of a stream that are in work at the same time


class Models(Protocol):
    """service.fleet.Fleet, as far as it translates."""

    @property
    def directions(self) -> tuple[Direction, ...]: ...

    def version(self, direction: Direction) -> str: ...

    async def translate(
        self,
        texts: Sequence[Text],
        direction: Direction,
        wish: Wish,
        *,
        caller: str = "",
        deadline: float | None = None,
    ) -> list[Translation]: ...


class Key(NamedTuple):
    """All that a translation depends on."""

    version: str
    direction: Direction
    wish: bytes  # a digest of it
    text: str
    kept: tuple[Range, ...]


class Translations:
    """Translates jobs: languages told, markup and sentences taken apart and put together, two models chained."""

    def __init__(
        self,
        models: Models,
        cache_characters: int = 0,
        documents: DocumentOptions | None = None,
        detector: Callable[[Sequence[str]], Guess] = Detector,
    ) -> None:
        """`detector` is made in a thread, for that takes a second."""
        self.work: SharedWork[Key, Answer] = SharedWork(cache_characters, _weight)
        self._models = models
        self._documents = Documents(documents or DocumentOptions())
        self._make_detector = detector
        self._detector: tuple[tuple[str, ...], Guess] | None = None
        self._detecting = asyncio.Lock()
        self._routes: tuple[tuple[Direction, ...], Routes] | None = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those that a model translates."""
        return self._models.directions

    @property
    def pairs(self) -> tuple[Direction, ...]:
        """Those, and the ones through a bridge."""
        return self.routes.pairs

    @property
    def routes(self) -> Routes:
        directions = self._models.directions
        if self._routes is None or self._routes[0] != directions:
            self._routes = directions, Routes(directions)
        return self._routes[1]

    async def warm(self) -> None:
        """Makes ready what would keep the first text in an unknown language waiting."""
        await self._preparer(detecting=True)

    async def detect(self, text: str) -> list[Detected]:
        """The likeliest language first."""
        preparer = await self._preparer(detecting=True)
        return await aside(len(text), partial(preparer.detect, text))

    async def translate(self, job: Job) -> list[Answer]:
        """An answer for each text. Raises UnsupportedLanguage, DeadlineExceeded, and what the models raise."""
        async with before(job.deadline):
            prepared = await self.prepare(job)
            found = await self.translate_units([(unit, each.route) for each in prepared for unit in each.units], job)
            left = iter(found)
            return [await self._answer(each, list(islice(left, len(each.units)))) for each in prepared]

    async def stream(self, job: Job) -> AsyncIterator[StreamedSentence | StreamEnd]:
        """The sentences of each text, in order, as soon as they can be; markup comes as one. Raises as `translate`."""
        async with before(job.deadline):
            prepared = await self.prepare(job)
        answers = []
        for number, each in enumerate(prepared):
            if each.markup is not None or not each.route or job.sentences:
                alone = replace(job, texts=(each.text,), source=each.source)
                answer = (await let_in(partial(self.translate, alone), refusable=number == 0))[0]
                answer = replace(answer, detected=each.detected)
                yield StreamedSentence(number, 0, (0, len(each.text)), answer.text, answer.confidence)
            else:
                assembly = Assembly(each.source, job.target)
                async for sentence in self._streamed(each, job, number, assembly):
                    yield sentence
                answer = replace(assembly.finish()[1], detected=each.detected)
            answers.append(answer)
        yield StreamEnd(tuple(answers))

    async def open_document(self, name: str, content: bytes) -> Opened:
        """Raises InvalidDocument."""
        return await self._documents.open(name, content)

    async def translate_document(self, name: str, content: bytes, job: Job) -> bytes:
        """A file of the kind that its name says, in the language that all of it is in. The job has no texts.

        Raises InvalidDocument, and what `translate` raises; a segment that cannot be translated stays as it is.
        """
        return await self.translate_opened(await self.open_document(name, content), job)

    async def translate_opened(self, opened: Opened, job: Job) -> bytes:
        """The same for a file that has been taken apart."""
        async with before(job.deadline):
            (whole,) = await self.prepare(replace(job, texts=(opened.beginning(LOOKED_AT),), format=Format.TEXT))
            if not whole.route:
                return opened.content

            async def translate(units: Sequence[Unit]) -> list[Answer]:
                return await self.translate_units([(unit, whole.route) for unit in units], job)

            return await self._documents.translated(opened, whole.source, translate)

    async def prepare(self, job: Job) -> list[Prepared]:
        """Raises UnsupportedLanguage, for texts that there are not, too."""
        self.routes.check(*([job.source] if job.source is not None else []), job.target)
        if job.source is not None:
            self.routes.of(job.source, job.target)
        preparer = await self._preparer(detecting=job.source is None)
        effort = MARKUP if job.format is not Format.TEXT else int(job.source is None)
        return await aside(effort * sum(map(len, job.texts)), partial(preparer.prepare, job))

    async def translate_units(self, units: Sequence[tuple[Unit, Route]], job: Job) -> list[Answer]:
        """An answer for each unit, along its route. What can be translated together is."""
        groups: dict[tuple[Route, bool], list[int]] = {}
        for place, (unit, route) in enumerate(units):
            groups.setdefault((route, unit.linked), []).append(place)
        done = await together(
            [self._through(route, [units[place][0] for place in places], job) for (route, _), places in groups.items()]
        )
        found = {
            place: answer
            for places, answers in zip(groups.values(), done, strict=True)
            for place, answer in zip(places, answers, strict=True)
        }
        return [found[place] for place in range(len(units))]

    async def _answer(self, prepared: Prepared, found: Sequence[Answer]) -> Answer:
        size = 0 if prepared.markup is None else MARKUP * len(prepared.text)
        return await aside(size, partial(prepared.answer, found))

    async def _through(self, route: Route, units: Sequence[Unit], job: Job) -> list[Answer]:
        """Through two models a text goes sentence by sentence, so that each is known on both sides of the bridge."""
        if len(route) == 1:
            return await self._leg(route[0], units, job, last=True)
        if job.sentences:
            return await self._bridged(route, units, job)
        size = sum(len(unit.text) for unit in units)
        parts = await aside(size, lambda: [_sentences(unit, route[0].source) for unit in units])
        sentences = [part for each in parts for part in each if isinstance(part, Unit)]
        found = await self._bridged(route, sentences, replace(job, sentences=True))
        return await aside(size, partial(_assembled, parts, found, Direction(route[0].source, route[1].target)))

    async def _bridged(self, route: Route, units: Sequence[Unit], job: Job) -> list[Answer]:
        first = await self._leg(route[0], units, job, last=False)
        between = [
            Unit(answer.text, moved(unit.kept, unit.text, answer.text), unit.linked)
            for unit, answer in zip(units, first, strict=True)
        ]
        second = await self._leg(route[1], between, job, last=True)
        return [chained(one, two, route[0].target) for one, two in zip(first, second, strict=True)]

    async def _leg(self, direction: Direction, units: Sequence[Unit], job: Job, last: bool) -> list[Answer]:
        """Through one model; what is blank needs none. All units want their alignment, or none does."""
        lively = [unit for unit in units if not unit.blank]
        found: list[Answer] = []
        if lively:
            wish = self._wish(job, lively[0].linked, last)
            version, digest = self._models.version(direction), blake2b(repr(wish).encode(), digest_size=16).digest()
            keys = [Key(version, direction, digest, unit.text, unit.kept) for unit in lively]
            found = await self.work.get(keys, partial(self._work, direction, wish, job))
        left = iter(found)
        return [unchanged(unit.text, direction.source) if unit.blank else next(left) for unit in units]

    async def _work(self, direction: Direction, wish: Wish, job: Job, keys: Sequence[Key]) -> list[Answer]:
        texts = [Text(key.text, key.kept) for key in keys]
        found = await self._models.translate(texts, direction, wish, caller=job.caller, deadline=job.deadline)
        return [answered(translation, direction) for translation in found]

    def _wish(self, job: Job, linked: bool, last: bool) -> Wish:
        """Alternatives come from the last leg. On a first one, the terms of the glossary are carried across as they
        are, so that the last, which knows their translations, finds them."""
        count = 1 + job.wants.alternatives if last else 1
        terms = job.terms if last else Terms((), (*job.terms.untranslated, *(term for term, _ in job.terms.glossary)))
        return Wish(
            beam_size=None if job.beam_size is None else max(job.beam_size, count),
            n_best=count,
            sentences=job.sentences,
            terms=terms,
            insight=Insight(alignment=linked, attention=job.wants.attention and last),
        )

    async def _streamed(
        self, prepared: Prepared, job: Job, number: int, assembly: Assembly
    ) -> AsyncIterator[StreamedSentence]:
        """What is kept at the end of the text comes with the last sentence."""
        unit = prepared.units[0]
        parts = await aside(len(unit.text), partial(_sentences, unit, prepared.source))
        alone = replace(job, sentences=True)
        waiting = [part for part in parts if isinstance(part, Unit)]
        tail = "".join(part.text for part in _after_last(parts))
        first = number == 0

        def ask(index: int) -> "asyncio.Task[Answer]":
            refusable = first and index == 0
            return asyncio.create_task(self._one(prepared.route, waiting[index], alone, refusable))

        tasks = [ask(index) for index in range(min(AHEAD, len(waiting)))]
        try:
            index = 0
            for part in parts:
                if not isinstance(part, Unit):
                    assembly.keep(part)
                    continue
                answer = await tasks[index]
                if index + AHEAD < len(waiting):
                    tasks.append(ask(index + AHEAD))
                begin = assembly.read
                text = assembly.add(part.text, answer)
                index += 1
                rest = tail if index == len(waiting) else ""
                source = begin, assembly.read + len(rest)
                yield StreamedSentence(number, index - 1, source, text + rest, answer.confidence)
            if not waiting:
                yield StreamedSentence(number, 0, (0, len(tail)), tail, 1.0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, route: Route, unit: Unit, job: Job, refusable: bool) -> Answer:
        async with before(job.deadline):
            return (await let_in(lambda: self._through(route, [unit], job), refusable))[0]

    async def _preparer(self, detecting: bool) -> Preparer:
        routes = self.routes
        if not detecting:
            return Preparer(routes, None)
        async with self._detecting:
            if self._detector is None or self._detector[0] != routes.languages:
                made = await asyncio.to_thread(self._make_detector, routes.languages)
                self._detector = routes.languages, made
        return Preparer(routes, self._detector[1])


def _sentences(unit: Unit, language: str) -> list[Unit | segment.Piece]:
    """Units of one sentence each, and what is kept between them."""
    found: list[Unit | segment.Piece] = []
    place = 0
    for piece in segment.split(unit.text, language):
        end = place + len(piece.text)
        inside = ((max(a, place) - place, min(b, end) - place) for a, b in unit.kept if a < end and b > place)
        found.append(piece if piece.kept else Unit(piece.text, tuple(inside), unit.linked))
        place = end
    return found


def _assembled(
    texts: Sequence[Sequence[Unit | segment.Piece]], found: Sequence[Answer], direction: Direction
) -> list[Answer]:
    """The answers for texts, of those for their sentences."""
    left = iter(found)
    answers = []
    for parts in texts:
        assembly = Assembly(*direction)
        for part in parts:
            if isinstance(part, Unit):
                assembly.add(part.text, next(left))
            else:
                assembly.keep(part)
        answers.append(assembly.finish()[1])
    return answers


def _after_last(parts: Sequence[Unit | segment.Piece]) -> list[segment.Piece]:
    """What is kept after the last sentence."""
    found: list[segment.Piece] = []
    for part in reversed(parts):
        if isinstance(part, Unit):
            break
        found.insert(0, part)
    return found


def _weight(key: Key, answer: Answer) -> int:
    """Characters, more or less; what is not text is counted by the memory that it takes."""
    sentences = sum(200 + 100 * len(each.alignment) + sum(map(len, each.alternatives)) for each in answer.sentences)
    maps = (each.attention.weights for each in answer.sentences if each.attention)
    weights = sum(len(row) for layers in maps for heads in layers for rows in heads for row in rows)
    return 500 + len(key.text) + len(answer.text) + sum(map(len, answer.alternatives)) + sentences + 32 * weights


async def aside(size: int, work: Callable[[], T]) -> T:
    """What takes long, for its size, is done in a thread."""
    return work() if size < ASIDE else await asyncio.to_thread(work)


async def let_in(ask: Callable[[], Awaitable[T]], refusable: bool) -> T:
    """What is asked for, once the queue has room. A stream is refused at its beginning, and not half told."""
    while True:
        try:
            return await ask()
        except Overloaded:
            if refusable:
                raise
            await asyncio.sleep(RETRY_SECONDS)


@asynccontextmanager
async def before(deadline: float | None) -> AsyncIterator[None]:
    """Raises DeadlineExceeded when it is over, by time.monotonic()."""
    try:
        async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded from error


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in order. When one fails, the others are cancelled, and the error is that one."""
    if len(work) == 1:
        return [await work[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        found = next((each for each in errors.exceptions if isinstance(each, ServiceError)), errors.exceptions[0])
        raise found from None
    return [task.result() for task in tasks]
