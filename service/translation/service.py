"""The translation service, which all HTTP routes use.

It detects languages, chooses one model for each text, or two with a bridge language between them, and translates.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import islice

from mt.languages import Direction
from mt.pipeline.results import SentenceReport
from mt.text.documents import DocumentOptions
from mt.text.language_detection import LanguageDetector
from mt.text.segment import split_text
from service.errors import Overloaded, UnsupportedLanguage
from service.languages import TranslationRoute, TranslationRoutes, describe
from service.memories.matching import FindMatches, attach_matches
from service.parsers.pool import ParserPool
from service.translation import bridging
from service.translation.answers import BridgedText, answer_of, reports_of
from service.translation.cache import TranslationCache, keys_of
from service.translation.coroutines import TEXT_COST, WorkThreads, deadline_at, gather_or_raise, when_admitted
from service.translation.documents import DocumentTranslation, DocumentTranslator, OpenedDocument
from service.translation.jobs import Answer, DetectedSource, Format, Job, StreamedSentence
from service.translation.markup import MarkupTranslator
from service.translation.preparation import PreparedText, SupportsDetect, beginning_of, detect, prepare_text
from service.workers.fleet import Fleet
from service.workers.messages import OnSentence, SourceText, TranslateOptions
from service.workers.pool import WorkerPool
from service.workers.served_models import pools_named

DETECTION_COST = 100  # detecting the language of a text takes as long as other work on this many characters,
DETECTION_FACTOR = 10  # and of each of its characters as this many, if all letters differ
KEY_COST = 20  # hashing a text takes as long as other work on this many characters
PART_REPORTS = 200  # sentences of an answer from the cache that are taken at a time: a client may read them slowly
TERM_CHARACTERS = 30  # average length of a glossary entry
_WORD = re.compile(r"[^\W_]")  # a letter or digit, which every sentence has

NewDetector = Callable[[Sequence[str]], SupportsDetect]
"""Function that creates a detector of these languages."""


class TranslationService:
    """Service that detects languages, parses markup, translates through bridge languages, and caches results."""

    def __init__(
        self,
        fleet: Fleet,
        cache_characters: int = 0,
        documents: DocumentOptions | None = None,
        detector: NewDetector = LanguageDetector,
        parsers: ParserPool | None = None,
        find_matches: FindMatches | None = None,
        part_seconds: float = 300.0,
    ) -> None:
        """Create a translation service. The caller must close `parsers`. Jobs with a memory need `find_matches`.

        `part_seconds` limits the time of each part of a document. Other jobs have a deadline of their own.

        `detector` creates a language detector for the languages that it is given. It takes a second, so it is called in
        a thread, before the first detection.
        """
        self.cache = TranslationCache(cache_characters, joining=fleet.joining)
        self._fleet = fleet
        self._parsers = parsers or ParserPool()
        self.threads = WorkThreads()
        self.documents = DocumentTranslator(documents or DocumentOptions(), self._parsers, self.threads)
        self._markup = MarkupTranslator(self._parsers, self.threads)
        self._find_matches = find_matches
        self._part_seconds = part_seconds
        self._new_detector = detector
        self._detector: tuple[tuple[str, ...], SupportsDetect] | None = None
        self._detecting = asyncio.Lock()
        self._routes: tuple[Sequence[WorkerPool], dict[str, TranslationRoutes]] = (), {}  # by model; "": all models

    @property
    def routes(self) -> TranslationRoutes:
        """Language pairs that the currently served models can translate, with the routes between them."""
        return self.routes_of("")

    def routes_of(self, model: str) -> TranslationRoutes:
        """Return the routes that use only the model with this name, or all models if `model` is "".

        Raises: UnknownModel if no model has this name.
        """
        pools = self._fleet.pools
        if self._routes[0] != pools:
            self._routes = pools, {}
        routes = self._routes[1]
        if model not in routes:
            routes[model] = TranslationRoutes(pool.description.directions for pool in pools_named(model, pools))
        return routes[model]

    async def warm_up(self) -> None:
        """Load what would delay the first requests: the language detector, rules for ends of sentences, a parser."""
        await self._language_detector()
        languages = self.routes.source_languages
        await asyncio.to_thread(lambda: [list(split_text("Dr. A. B.", language)) for language in languages])
        await self._parsers.start()

    async def detect(self, text: str, caller: str = "") -> list[DetectedSource]:
        """Return every language with the confidence that `text` is in it, the likeliest language first."""
        detector = await self._language_detector()
        effort = DETECTION_COST + DETECTION_FACTOR * len(text)
        return await self.threads.run(caller, effort, partial(detect, text, self.routes, detector))

    async def translate(self, job: Job) -> list[Answer]:
        """Return an answer for each text of the job.

        Raises: the errors of Fleet.translate, such as UnsupportedLanguage, and DeadlineExceeded.
        """
        async with deadline_at(job.deadline):
            prepared = await self.prepare(job)
            if job.source is None and job.format is not Format.TEXT:
                return await self._translate_detected(prepared, job)
            answers = iter(
                await self.translate_parts(
                    [(part, text.route) for text in prepared if text.route for part in text.parts], job
                )
            )
            groups = [list(islice(answers, len(text.parts) if text.route else 0)) for text in prepared]
            written: Iterator[Sequence[str]] = iter(())
            if job.format is not Format.TEXT:
                marked = [(text.text, group) for text, group in zip(prepared, groups, strict=True) if text.route]
                written = iter(await self._markup.write(job, marked))
            pairs = zip(prepared, groups, strict=True)
            effort = TEXT_COST * max(len(prepared), sum(map(len, groups)))

            def answered() -> list[Answer]:
                return [text.answer(group, next(written, ()) if text.route else ()) for text, group in pairs]

            return await self.threads.run(job.caller, effort, answered)

    async def _translate_detected(self, prepared: Sequence[PreparedText], job: Job) -> list[Answer]:
        """Return the answers for marked-up texts. What divides a line depends on the language: they are read again."""
        numbers: dict[str, list[int]] = {}
        for number, text in enumerate(prepared):
            if text.route:
                numbers.setdefault(text.source, []).append(number)
        answers = {number: text.answer(()) for number, text in enumerate(prepared) if not text.route}
        jobs = [replace(job, texts=tuple(job.texts[n] for n in of), source=source) for source, of in numbers.items()]
        for of, group in zip(numbers.values(), await gather_or_raise(list(map(self.translate, jobs))), strict=True):
            answers |= zip(of, group, strict=True)
        return [replace(answers[number], detected=text.detected) for number, text in enumerate(prepared)]

    async def stream(self, job: Job) -> AsyncIterator[StreamedSentence | list[Answer]]:
        """Yield the sentences of each text, in order, as soon as they are translated, and finally all answers.

        A marked-up text counts as one sentence. If the queue is full, the second and later texts wait; only the first
        text raises Overloaded.

        Raises: the errors of `translate`.
        """
        async with deadline_at(job.deadline):
            prepared = await self.prepare(job)
        answers: list[Answer] = []
        for number, text in enumerate(prepared):
            job = replace(job, waits=number > 0)
            if text.is_markup or not text.route or not job.split_sentences:
                if text.route:
                    alone = replace(job, texts=(text.text,), source=text.source)
                    (answer,) = await when_admitted(partial(self.translate, alone), (Overloaded,) if job.waits else ())
                else:
                    answer = text.answer(())
                yield StreamedSentence(number, 0, (0, len(text.text)), answer.text, answer.confidence)
                answers.append(replace(answer, detected=text.detected))
            else:
                async for item in self._stream_text(number, text, job):
                    if isinstance(item, StreamedSentence):
                        yield item
                    else:
                        answers.append(replace(item, detected=text.detected))
        yield answers

    async def translate_document(self, name: str, content: bytes, job: Job) -> bytes:
        """Return the content of the translated file. Segments that cannot be translated stay unchanged.

        If `job.source` is None, the language of the file is detected. If the queue is full, wait and try again.

        Raises: UnsupportedLanguage if the file is in the target language; InvalidDocument, ParsingLimitExceeded if it
            cannot be read or written; the errors of `translate`, except Overloaded.
        """
        opened = await self.documents.open(job, name, content)
        translate = partial(self.translate_opened, opened, job)
        return (await when_admitted(translate)).content

    async def translate_opened(self, opened: OpenedDocument, job: Job) -> DocumentTranslation:
        """Translate a file that `documents.open` has returned. Segments that cannot be translated stay unchanged.

        Raises: UnsupportedLanguage if the file is in the target language, or no models translate from its language; the
            errors of `translate`.
        """
        async with deadline_at(job.deadline):
            beginning = beginning_of(segment.text for segment in opened.segments)
            (whole,) = await self.prepare(replace(job, texts=(beginning,), format=Format.TEXT))
            routes = self.routes_of(job.model)
            if not whole.served:
                routes.find(whole.source, job.target)
            if whole.detected and not whole.detected.confidence:  # without letters
                source = next(iter(routes.sources_of(job.target)), whole.source)
                whole = replace(whole, source=source, route=routes.find(source, job.target))
            if not whole.route:
                raise UnsupportedLanguage(
                    f"Source and target language are equal: {describe(whole.source)}",
                    accepted="another target, or the language of the file as the source if it was not recognised",
                )
            if job.source is None:  # what divides a line depends on the language
                opened = await self.documents.open_again(replace(job, source=whole.source), opened)

            async def translate(texts: Sequence[SourceText]) -> list[Answer]:
                async with deadline_at(time.monotonic() + self._part_seconds):
                    return await self.translate_parts([(text, whole.route) for text in texts], job)

            return await self.documents.translated(job.caller, opened, whole.source, translate)

    async def prepare(self, job: Job) -> list[PreparedText]:
        """Detect the languages and parse the markup of all texts of a job.

        Raises: UnsupportedLanguage if no models translate from the source of the job to its target; Overloaded if the
            queue is too full for the texts.
        """
        routes = self.routes_of(job.model)
        if job.source is None:
            routes.check_supported(job.target)
        else:
            routes.find(job.source, job.target)
        if job.source is None or job.format is not Format.TEXT:
            self._fleet.check_room(job.caller, job.texts)
        segments = [None] * len(job.texts) if job.format is Format.TEXT else await self._markup.read(job)
        detector = None if job.source else await self._language_detector()
        effort = TEXT_COST * len(job.texts)
        if detector:
            effort += sum(DETECTION_COST + DETECTION_FACTOR * len(text) for text in job.texts)

        def prepare_all() -> list[PreparedText]:
            return [prepare_text(job, number, parts, routes, detector) for number, parts in enumerate(segments)]

        return await self.threads.run(job.caller, effort, prepare_all)

    async def translate_parts(self, parts: Sequence[tuple[SourceText, TranslationRoute]], job: Job) -> list[Answer]:
        """Return an answer for each (text, route) in `parts`. Texts with the same route are translated together."""
        parts = await attach_matches(parts, job, self._find_matches, self.threads)
        groups: dict[TranslationRoute, list[int]] = {}
        for index, (_, route) in enumerate(parts):
            groups.setdefault(route, []).append(index)
        results = await gather_or_raise(
            [
                self._translate_on_route(route, [parts[index][0] for index in indices], job)
                for route, indices in groups.items()
            ]
        )
        answers = {
            index: answer
            for indices, group in zip(groups.values(), results, strict=True)
            for index, answer in zip(indices, group, strict=True)
        }
        return [answers[index] for index in range(len(parts))]

    async def _translate_on_route(self, route: TranslationRoute, texts: Sequence[SourceText], job: Job) -> list[Answer]:
        """Translate texts with the one or two models of `route`. The second model translates sentence by sentence."""
        if len(route) == 1:
            return await self._translate_with_one_model(texts, bridging.last_options(job, route), job)
        firsts = await self._translate_with_one_model(
            [replace(text, matches=()) for text in texts], bridging.first_options(job, route), job
        )
        size = sum(len(text.text) for text in texts)
        reports, sentences = await self.threads.run(
            job.caller, size, partial(bridging.divide_by_sentences, texts, firsts)
        )
        seconds = await self._translate_with_one_model(sentences, bridging.last_options(job, route), job)
        join = partial(bridging.join_sentences, route, texts, firsts, reports, seconds)
        return await self.threads.run(job.caller, size, join)

    async def _translate_with_one_model(
        self, texts: Sequence[SourceText], options: TranslateOptions, job: Job, on_sentence: OnSentence | None = None
    ) -> list[Answer]:
        """Translate texts with one model, or take answers from the cache.

        A text without letters and digits stays unchanged.
        """
        source = options.direction.source
        pool = self._fleet.pool_for(options.direction, options.model)
        terms = len(options.terms.glossary) + len(options.terms.untranslated)
        effort = TERM_CHARACTERS * terms + sum(KEY_COST + len(text.text) for text in texts)
        version = pool.description.version.encode()
        keys = await self.threads.run(job.caller, effort, partial(keys_of, texts, version, options))
        by_key = dict(zip(keys, texts, strict=True))

        async def translate_missing(keys: Sequence[bytes]) -> list[Answer]:
            translations = await self._fleet.translate(
                [by_key[key] for key in keys],
                options,
                caller=job.caller,
                on_sentence=on_sentence,
            )
            return [answer_of(translation, source, pool.name) for translation in translations]

        results = iter(
            await self.cache.get(job.caller, list(filter(None, keys)), translate_missing, job.repeated_after)
        )
        return [
            next(results) if key else Answer(text.text, source, models=(pool.name,))
            for key, text in zip(keys, texts, strict=True)
        ]

    async def _stream_text(self, number: int, text: PreparedText, job: Job) -> AsyncIterator[StreamedSentence | Answer]:
        """Yield the sentences of text number `number`, then the answer for the whole text."""
        parts = [(text.parts[0], text.route)]
        ((part, route),) = await attach_matches(parts, job, self._find_matches, self.threads)
        if len(route) == 2:
            reported = self._reported_by_both(part, route, job)
        else:
            reported = self._reported(part, bridging.last_options(job, route), job)
        count = read = 0
        async with aclosing(reported):
            async for item in reported:
                if isinstance(item, Answer):
                    if not count:
                        yield StreamedSentence(number, 0, (0, len(part.text)), item.text, 1.0)
                    yield item
                    continue
                for report in item:
                    begin, read = read, report.source_range[1]
                    if report.after or not _WORD.search(part.text, read):  # the last sentence
                        read = len(part.text)  # `after` is text of the translation
                    translation = report.before + report.text + report.after
                    yield StreamedSentence(number, count, (begin, read), translation, report.confidence)
                    count += 1
                    await asyncio.sleep(0)  # sentences that have arrived do not wait, nor does a client that reads

    async def _reported(
        self, text: SourceText, options: TranslateOptions, job: Job
    ) -> AsyncGenerator[list[SentenceReport] | Answer, None]:
        """Translate a text with one model. Yield the sentences that have just been finished, and at last the answer."""
        finished, arrived, count = list[SentenceReport](), asyncio.Event(), 0

        def report(sentence: SentenceReport) -> None:
            finished.append(sentence)
            arrived.set()

        work = partial(self._translate_with_one_model, [text], options, job, report)
        task = asyncio.ensure_future(self._in_time(job, work, job.waits))
        task.add_done_callback(lambda _: arrived.set())
        try:
            while finished or not task.done():
                await arrived.wait()
                arrived.clear()
                ready, finished = finished, []
                count += len(ready)
                yield ready
            (answer,) = await task
            if count < len(answer.sentences):  # an answer from the cache, or from the computation of another call
                left = islice(reports_of(answer), count, None)
                while ready := list(islice(left, PART_REPORTS)):
                    yield ready
            yield answer
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            del task  # a cycle: the traceback of its error leads here

    async def _reported_by_both(
        self, text: SourceText, route: TranslationRoute, job: Job
    ) -> AsyncGenerator[list[SentenceReport] | Answer, None]:
        """Translate a text with the two models of `route`. Yield what `_reported` yields.

        The second model begins as soon as the first one has finished a sentence.
        """
        options = bridging.last_options(job, route)
        bridged = BridgedText(text.text, Direction(route[0].source, route[1].target))
        plain = replace(text, matches=())
        async with aclosing(self._reported(plain, bridging.first_options(job, route), job)) as reported:
            async for item in reported:
                if isinstance(item, Answer):
                    yield bridged.finish(replace(item, bridge=route[0].target))
                    continue
                sentences = [bridging.bridge_sentence(text, first) for first in item]
                work = partial(self._translate_with_one_model, sentences, options, job)
                seconds = await self._in_time(job, work, waits=True)
                yield list(map(bridged.add, item, seconds))

    async def _in_time(self, job: Job, work: Callable[[], Awaitable[list[Answer]]], waits: bool) -> list[Answer]:
        async with deadline_at(job.deadline):
            return await when_admitted(work, (Overloaded,) if waits else ())

    async def _language_detector(self) -> SupportsDetect:
        """Return the detector of the languages that are served now."""
        languages = self.routes.languages
        async with self._detecting:
            if self._detector is None or self._detector[0] != languages:
                self._detector = languages, await asyncio.to_thread(self._new_detector, languages)
        return self._detector[1]
