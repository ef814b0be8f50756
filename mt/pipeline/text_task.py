"""Tasks that translate texts, and the planner that splits texts into sentences of a length that the model accepts."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from time import monotonic

from mt.engine.requests import Request
from mt.errors import MTError, RequestError
from mt.pipeline.analysis import is_untranslatable
from mt.pipeline.driver import DecodeCall, EngineAnswer, Routine
from mt.pipeline.explain import Explainer, Explanation
from mt.pipeline.results import Alternative, Failure, SentenceReport, SentenceTranslation, Translation
from mt.pipeline.sentence_translator import SentenceTranslator, TranslatedSentence, exact_translation
from mt.pipeline.variants import join_alternatives
from mt.text import protect, segment
from mt.text.alignment import Range, shift, split_ranges, with_marks
from mt.text.clock import is_english_time
from mt.text.formality import Formality
from mt.text.fuzzy_match import MemoryMatch
from mt.text.markup.strings import MESSAGE, inner_range, split_marked_text
from mt.text.messages import whole_sentences
from mt.text.normalise import NormalisedText, narrow, remove_invisible
from mt.text.numbers import mend_numbers, unify_numbers, write_dates
from mt.text.segment import TextPart
from mt.text.typography import has_no_break_spaces

_LONGEST_SENTENCE = 4  # relative to the sentences that the model covers; a longer one is cut, also within a clause

AnyRoutine = Routine[TranslatedSentence] | Routine[list[Explanation]]


@dataclass(eq=False)
class TextTask:
    """Translation of a text. There is one routine for each sentence, and then one routine for the explanations.

    The caller calls `plan` until `planned` is true, then answers (`resume`) the calls of the routines (`take_calls`)
    until `done` is true.
    """

    text: str
    planner: "TextPlanner"
    matches: Mapping[str, MemoryMatch] = field(default_factory=dict)  # by sentence
    no_break_spaces: bool = False  # whether the translation gets those that typography demands
    parts: list[TextPart] = field(default_factory=list)
    problem: str = ""  # reason why the text has no translation
    requests: list[Request] = field(default_factory=list)  # requests of all calls so far
    planned: bool = False  # whether the translation of all sentences has started
    steps: Iterator[TextPart | None] = field(default_factory=lambda: iter(()))  # remaining steps of planning
    _written: list[TextPart] = field(default_factory=list)  # the parts, with the kept ones as the translation has them
    _sentences: list[tuple[TextPart, Routine[TranslatedSentence]]] = field(default_factory=list)
    _explanations: Routine[list[Explanation]] | None = None
    _unfinished: int = 0  # number of unfinished routines
    _calling: deque[AnyRoutine] = field(default_factory=deque)
    _reported: int = 0  # number of reported sentences
    _reported_length: int = 0  # characters of the translation in all reports

    @property
    def done(self) -> bool:
        """True if the translation is complete, or if it has failed with a problem."""
        return bool(self.problem) or (self.planned and not self._unfinished)

    def plan(self, seconds: float = inf) -> None:
        """Split the text into sentences and start their translation, for at most about `seconds` seconds.

        If sentences remain, `planned` is still false, and `plan` must be called again.
        """
        stop = monotonic() + seconds
        for part in self.steps:
            if part is not None:
                self._add(part)
            if monotonic() >= stop:
                return
        self.planned = True
        self._explain()

    def _add(self, part: TextPart) -> None:
        """Append a part of the text and start its translation."""
        self.parts.append(part)
        self._written.append(replace(part, text=self.planner.written(part)) if part.kept else part)
        if not part.kept:
            matched = self.matches.get(part.text)
            routine = Routine(self.planner.translate(part, matched, self.no_break_spaces))
            self._sentences.append((part, routine))
            self._unfinished += 1
            self._track(routine)

    def take_calls(self) -> list[AnyRoutine]:
        """Return the routines that have made an engine call since the last call of `take_calls`."""
        routines, self._calling = list(self._calling), deque()
        return routines

    def resume(self, routine: AnyRoutine, answer: EngineAnswer) -> None:
        """Answer the call of a routine.

        An exception that the routine does not catch becomes the problem of the task.
        """
        try:
            routine.resume(answer)
            self._track(routine)
            self._explain()
        except Exception as error:  # any exception of the model concerns only this text
            failed = next((part for part, sentence in self._sentences if sentence is routine), self._sentences[0][0])
            reason = str(error) if isinstance(error, MTError) else f"{type(error).__name__}: {error}"
            self.problem = f"the text that begins {failed.text[:40]!r} cannot be translated: {reason}"

    def take_reports(self) -> list[SentenceReport]:
        """Return reports of newly finished sentences, in order and without gaps; none before the text is planned."""
        reports: list[SentenceReport] = []
        while self.planned and not self.problem and self._reported < len(self._sentences):
            number, routine = self._reported, self._sentences[self._reported][1]
            if not routine.done:
                break
            before, text, quality = self._gaps[number], routine.value.best.text, routine.value.expectation.quality
            place = self._reported_length + len(before), self._reported_length + len(before + text)
            self._reported, self._reported_length = number + 1, place[1]
            after = self._gaps[-1] if self._reported == len(self._sentences) else ""
            reports.append(SentenceReport(self._source_ranges[number], place, before, text, after, quality))
        return reports

    def sentences(self) -> Iterator[SentenceTranslation]:
        """Yield the sentences of a task that is done.

        Raises:
            RequestError: The task has a problem.
        """
        assert self.done
        if self.problem:
            raise RequestError(self.problem)
        explanations = self._explanations.value if self._explanations else [Explanation()] * len(self._sentences)
        end = 0
        places = zip(self._source_ranges, self._gaps[:-1], strict=True)
        for (part, routine), (source_range, gap), explained in zip(self._sentences, places, explanations, strict=True):
            translated = routine.value
            best, expectation = translated.best, translated.expectation
            labels = [part.marked[n] for n in translated.labels]
            begin = end + len(gap)
            end = begin + len(best.text)
            yield SentenceTranslation(
                part.text,
                translated.alternatives,
                source_range,
                (begin, end),
                confidence=expectation.quality,
                links=tuple(
                    (shift(left, source_range[0]), shift(right, begin))
                    for left, right in with_marks(explained.links, labels, translated.marked)
                ),
                attention=explained.attention,
                untranslated=not best.pieces,
                unfamiliar=expectation.unfamiliar,
                omitted=best.omitted,
                copied=best.copied,
            )

    def translation(self, sentences: Sequence[SentenceTranslation] | None = None) -> Translation:
        """Return the translation of a task that is done. Its `sentences` are computed unless they are given.

        Raises: the error of `sentences`.
        """
        sentences = tuple(self.sentences()) if sentences is None else sentences
        if len(self.parts) == len(sentences) == 1 and sentences[0].match is None:
            return Translation(sentences[0].alternatives, tuple(sentences))
        ranks = max((len(sentence.alternatives) for sentence in sentences), default=1)
        return Translation(tuple(self._join(sentences, rank) for rank in range(ranks)), tuple(sentences))

    def outcome(self) -> Translation | Failure:
        """Return the translation of a task that is done, or a Failure if the task has a problem."""
        return Failure(self.text, self.problem) if self.problem else self.translation()

    def _explain(self) -> None:
        """Start the routine that computes the explanations, if all sentences are translated."""
        explainer = self.planner.explainer
        if explainer is None or self._explanations or self._unfinished or not self.planned or not self._sentences:
            return
        self._explanations = Routine(explainer.explain([(part, one.value.best) for part, one in self._sentences]))
        self._unfinished += 1
        self._track(self._explanations)

    def _track(self, routine: AnyRoutine) -> None:
        """Queue the call of a started or resumed routine. If there is no call, count the routine as finished."""
        if routine.call is None:
            self._unfinished -= 1
            return
        self._calling.append(routine)
        if isinstance(routine.call, DecodeCall):
            self.requests += routine.call.requests

    def _join(self, sentences: Sequence[SentenceTranslation], rank: int) -> Alternative:
        """Join alternative `rank` of each sentence, or the last alternative of a sentence that has fewer."""
        chosen = [sentence.alternatives[min(rank, len(sentence.alternatives) - 1)] for sentence in sentences]
        texts = [gap + alternative.text for gap, alternative in zip(self._gaps, chosen, strict=False)]
        return join_alternatives("".join([*texts, self._gaps[-1]]), chosen)

    @cached_property
    def _source_ranges(self) -> list[Range]:
        return segment.sentence_ranges(self.parts)

    @cached_property
    def _gaps(self) -> list[str]:
        """The texts of the translation before each sentence, and the text after the last sentence."""
        context, gaps = self.planner.context, list[list[str]]([[]])
        for part in segment.lay_out(self._written, [""] * len(self._sentences), context.source, context.target):
            if part.kept:
                gaps[-1].append(part.text)
            else:
                gaps.append([])
        return ["".join(texts) for texts in gaps]


@dataclass(frozen=True)
class TextPlanner(SentenceTranslator):
    """Planner that splits texts into sentences and starts their translation, in one direction."""

    sentences: bool = False  # whether each text is one sentence
    explainer: Explainer | None = None

    def with_formality(self, formality: Formality | None) -> "TextPlanner":
        """Return a planner that requests a formality for its translations (`_translate_with_formality`)."""
        if formality == self.context.formality:
            return self
        return replace(self, context=replace(self.context, formality=formality))

    def task(self, text: str, kept: Sequence[Range] = (), marked: Sequence[Range] = ()) -> TextTask:
        """Return the planned task of a text. `kept` and `marked` are as in `begin`."""
        task = self.begin(text, kept, marked=marked)
        task.plan()
        return task

    def begin(
        self,
        text: str,
        kept: Sequence[Range] = (),
        matches: Iterable[MemoryMatch] = (),
        marked: Sequence[Range] = (),
    ) -> TextTask:
        """Return the task of a text, for which the caller must call `plan`. The ranges `kept` are not translated.

        `matches` are matches of a translation memory for sentences of the text, or for the whole text. `marked` are
        the ranges of marks around words (`Segment.marked`): each gets one link to the words that it has to enclose.
        """
        text = text if text.isascii() else narrow(text.encode("utf-8", "replace").decode())  # without lone surrogates
        by_sentence = {match.sentence: match for match in matches}
        planner = replace(self, is_message=True) if self.protect and "{" in text and MESSAGE.search(text) else self
        steps = planner._steps(text, kept, marked, by_sentence)
        return TextTask(text, planner, by_sentence, has_no_break_spaces(text), steps=steps)

    def attempt(self, text: str, kept: Sequence[Range] = (), marked: Sequence[Range] = ()) -> TextTask:
        """Return the planned task of a text. An exception of the tokenizer becomes the problem of the task."""
        try:
            return self.task(text, kept, marked)
        except Exception as error:  # a tokenizer can raise any exception
            return TextTask(text, self, problem=f"{type(error).__name__}: {error}")

    def written(self, part: TextPart) -> str:
        """Return a kept part as the translation has it."""
        text, context = part.text, self.context
        text = text if any(map(str.isalnum, text)) else remove_invisible(text).text
        if self.protect and not part.kept_ranges:
            text = unify_numbers(NormalisedText(text), (context.source, context.source)).text
            text = mend_numbers(text, text, (context.source, context.target))
            text = write_dates(text, (context.source, context.target))
        return text

    def _steps(
        self, text: str, kept: Sequence[Range], marked: Sequence[Range], matches: Mapping[str, MemoryMatch]
    ) -> Iterator[TextPart | None]:
        """Prepare the glossary, and yield None after each step. Then yield the parts of the text.

        Each step takes a bounded time.
        """
        for _ in self.context.terms.prepare():
            yield None
        kept = sorted((begin, min(end, len(text))) for begin, end in kept)
        begins, end = [begin for begin, _ in kept], 0
        first = [begin for begin, _ in marked]
        moved = [shift(place, len(text.lstrip()) - len(text)) for place in kept]
        whole = self.sentences or exact_translation(matches.get(text.strip()), moved)
        split = split_marked_text if self.protect else segment.split_text
        parts = segment.cut_text(text) if whole else split(text, self.context.source)
        list_language = "" if protect.has_numbered_lines(text) else self.context.source
        for part in segment.merge_divided(parts, kept):
            if not part.text:  # PAUSE
                yield None
                continue
            begin, end = end, end + len(part.text)
            ranges = kept[bisect_left(begins, begin) : bisect_left(begins, end)]
            moved = [shift(place, -begin) for place in ranges]
            if exact_translation(matches.get(part.text), moved):
                yield replace(part, kept_ranges=tuple(moved))
            else:
                inside = marked[bisect_left(first, begin) : bisect_left(first, end)]
                part = replace(part, marked=tuple(shift(place, -begin) for place in inside if place[1] <= end))
                for sentence, fixed in self._at_mark(part, moved) if part.marked else ((part, moved),):
                    yield from self._split(sentence, fixed, list_language)

    def _at_mark(self, part: TextPart, kept: Sequence[Range]) -> Iterator[tuple[TextPart, Sequence[Range]]]:
        """Yield a part, or those of a marked sentence without a full stop before another, or of marked labels."""
        text, end = part.text, part.marked[0][1] if part.marked[0][0] == 0 else 0
        cuts = [begin for begin, end in part.marked if text[begin].isupper() and ":" in text[end - 1 : end + 2]]
        if " " in text[:end] and text[end - 1].isalnum() and segment.begins_sentence(text, end, self.context.source):
            cuts = [0, end]
        cuts = [*cuts, len(text)] if cuts[:1] == [0] else [0, len(text)]
        parts = [one for begin, end in pairwise(cuts) for one in segment.split_margins(text[begin:end])]
        divided = (split_ranges(ranges, [one.text for one in parts]) for ranges in (kept, part.marked))
        for one, ranges, marked in zip(parts, *divided, strict=True):
            yield replace(one, marked=marked), ranges

    def _split(self, part: TextPart, kept: Sequence[Range], list_language: str) -> Iterator[TextPart | None]:
        """Yield the list marker and the outer marks of emphasis of a part, if any, and the rest of the part.

        A rest that is too long is split into pieces of a length that the training text of the model covers.
        """
        if part.kept:
            yield part
            return
        begin, end = self._inner_range(part.text, list_language)
        before, text, after = part.text[:begin], part.text[begin:end], part.text[end:]
        _, kept, _ = split_ranges(kept, [before, text, after])
        _, marked, _ = split_ranges(part.marked, [before, text, after])
        if before:
            yield TextPart(before, kept=True)
        protects = self.protect or bool(kept)
        is_message = self.is_message and not kept and whole_sentences(text) is not None
        is_kept = protects and not is_message and self._is_untranslatable(text, kept)
        yield None
        if is_kept or self._fits(text, kept):
            yield TextPart(text, is_kept, kept, () if is_kept else marked)
        else:
            yield None
            pieces = protect.split_at_long_spans(text, kept) if protects else [text]
            for piece, ranges in zip(pieces, split_ranges(kept, pieces), strict=True):
                is_word = all(letter.islower() or letter.isupper() for letter in piece)
                if ranges or (is_word and not self._fits(piece)) or self._is_untranslatable(piece, ()):
                    yield TextPart(piece, kept=True, kept_ranges=ranges)
                else:
                    fits = partial(self._fits, longest=1)
                    yield from segment.split_long_sentence(piece, fits, self.context.source)
        if after:
            yield TextPart(after, kept=True)

    def _inner_range(self, sentence: str, list_language: str) -> Range:
        """Return the range of a sentence without its list marker and its outer marks of emphasis."""
        marker = protect.list_marker_length(sentence, list_language) if self.protect else 0
        begin, end = inner_range(sentence[marker:]) if self.protect else (0, len(sentence))
        is_whole = end - begin == len(sentence) - marker or self._has_marked_term(TextPart(sentence, kept=False))
        spans = () if is_whole or sentence[marker] != "[" else protect.find_spans(sentence[marker:])  # [Your name]
        is_whole = is_whole or any(span.begin < begin and end < span.end for span in spans)
        return (marker, len(sentence)) if is_whole else (marker + begin, marker + end)

    def _fits(self, text: str, kept: Sequence[Range] = (), longest: int = _LONGEST_SENTENCE) -> bool:
        """Return whether the model accepts a text that is at most `longest` times a sentence that it covers."""
        tokens = len(self.context.encode(self.context.normaliser.normalise(text, kept).text))
        return tokens <= min(self.context.max_length, longest * self.context.covered_length)

    def _is_untranslatable(self, text: str, kept: Sequence[Range]) -> bool:
        normalised = self.context.normaliser.normalise(text, kept)
        return not is_english_time(text, self.context.source) and is_untranslatable(
            normalised.text, [normalised.normalised_range(*place) for place in kept]
        )
