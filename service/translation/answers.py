"""Building of answers from the translations of one model, or of two models one after the other.

The first of two models translates into a bridge language, and the second translates from the bridge language.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from mt.languages import Direction
from mt.pipeline.results import (
    Alternative,
    SentenceReport,
    SentenceTranslation,
    Translation,
    joint_confidence,
    translated_again,
)
from mt.text import segment
from mt.text.alignment import Link, Range
from mt.text.segment import TextPart
from service.freed_memory import LongList
from service.translation.jobs import Answer


def untranslated_answer(text: str, source: str) -> Answer:
    """Return an answer whose translation is `text` itself, which is listed as untranslated."""
    sentence = text.strip()
    begin = text.index(sentence)
    place = begin, begin + len(sentence)
    alternative = Alternative(sentence, 0.0, 0.0, pieces=(), piece_log_probabilities=())
    unchanged = SentenceTranslation(sentence, (alternative,), place, place, untranslated=True)
    return Answer(text, source, sentences=(unchanged,) if sentence else ())


def answer_of(translation: Translation, source: str, model: str) -> Answer:
    """Return the answer for a translation by the model with this name. `source` is the source language."""
    return Answer(
        text=translation.text,
        source=source,
        models=(model,),
        alternatives=other_texts(translation.text, (other.text for other in translation.alternatives)),
        sentences=translation.sentences,
    )


def other_texts(text: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return `texts` in order, without repetitions and without those that equal `text`."""
    return tuple(other for other in dict.fromkeys(texts) if other != text)


def text_of_rank(answer: Answer, rank: int) -> str:
    """Return the translation if `rank` is 0, otherwise alternative number `rank`, counted from 1.

    If the answer has fewer alternatives, return the last alternative, or the translation if there is none.
    """
    return (answer.text, *answer.alternatives)[min(rank, len(answer.alternatives))]


def alignment_of(answer: Answer) -> tuple[Link, ...]:
    """Return the word alignment links of all sentences of an answer."""
    return tuple(link for sentence in answer.sentences for link in sentence.links)


def rounded_match(match: float | None) -> float | None:
    """Round the score of a match to two digits. A score below 1 becomes at most 0.99: 1 means an exact match."""
    return match if match is None or match == 1.0 else min(round(match, 2), 0.99)


def moved_ranges(ranges: Sequence[Range], text: str, translation: str) -> tuple[Range, ...]:
    """Return the ranges of `translation` that contain the same characters as the `ranges` of `text`.

    If several ranges have the same characters, the search for each begins after the range that was found last. A range
    is left out if it is not found, or overlaps another range that was found before.
    """
    moved: list[Range] = []
    next_begin: dict[str, int] = {}
    for begin, end in ranges:
        piece = text[begin:end]
        place = translation.find(piece, next_begin.get(piece, 0))
        if place >= 0 and not _overlaps(moved, (place, place + len(piece))):
            insort(moved, (place, place + len(piece)))
            next_begin[piece] = place + len(piece)
    return tuple(moved)


def _overlaps(ranges: Sequence[Range], new: Range) -> bool:
    """Return whether the range `new` overlaps one of `ranges`. These are sorted and do not overlap each other."""
    index = bisect_left(ranges, (new[1], 0))  # ranges from here on begin at its end or later
    return index > 0 and ranges[index - 1][1] > new[0]


def reports_of(answer: Answer) -> Iterator[SentenceReport]:
    """Yield a report for each sentence of a finished answer, like the reports of a worker during translation."""
    reached = 0
    for number, sentence in enumerate(answer.sentences, start=1):
        begin, end = sentence.target_range
        after = answer.text[end:] if number == len(answer.sentences) else ""
        before, reached = answer.text[reached:begin], end
        yield SentenceReport(
            sentence.source_range, sentence.target_range, before, sentence.text, after, sentence.confidence
        )


class BridgedText:
    """Translation of a text whose sentences are translated one by one, each by two models."""

    def __init__(self, text: str, direction: Direction) -> None:
        """Begin the translation of `text`.

        `direction` goes from the language of `text` to the requested target language; the bridge language between them
        is not part of it.
        """
        self._text = text
        self._direction = direction
        self._parts: list[TextPart] = []
        self._translations: list[Answer] = []
        self._read = self._written = 0  # number of characters of the text and of the translation so far

    def add(self, first: SentenceReport, second: Answer) -> SentenceReport:
        """Append a sentence and return a report with the translation into the target language.

        Args:
            first: the first model's report on the sentence, with the translation into the bridge language.
            second: the second model's answer for this translation.
        """
        begin, end = first.source_range
        last = self._parts[-1:]
        new = [TextPart(self._text[self._read : begin], kept=True), TextPart(self._text[begin:end], kept=False)]
        new = [part for part in new if part.text]
        written = [translation.text for translation in self._translations[-1:]]
        joined = self._joined([*last, *new], [*written, second.text])
        before = joined[len("".join(written)) : len(joined) - len(second.text)]
        self._parts += new
        self._translations.append(second)
        after = self._text[end:] if first.after else ""  # `first.after` may have another length
        if after:
            self._parts.append(TextPart(after, kept=True))
        target = self._written + len(before), self._written + len(before) + len(second.text)
        self._read, self._written = end, target[1]
        confidence = joint_confidence(first.confidence, second.confidence)
        return SentenceReport(first.source_range, target, before, second.text, after, confidence)

    def finish(self, first: Answer) -> Answer:
        """Return the answer for the whole text, or `first`, the first model's answer, if no sentence has been added."""
        if not self._translations:
            return first
        ranks = max(len(translation.alternatives) for translation in self._translations)
        text, *others = (
            self._joined(self._parts, [text_of_rank(translation, rank) for translation in self._translations])
            for rank in range(ranks + 1)
        )
        texts = [translation.text for translation in self._translations]
        laid_out = segment.lay_out(self._parts, texts, self._direction.source, self._direction.target)
        targets = segment.sentence_ranges(list(laid_out))
        sentences = LongList(
            _bridged_sentence(sentence, second, begin)
            for sentence, second, (begin, _) in zip(first.sentences, self._translations, targets, strict=True)
            if second.sentences
        )
        models = tuple(dict.fromkeys(name for answer in (first, *self._translations) for name in answer.models))
        return replace(first, text=text, models=models, alternatives=other_texts(text, others), sentences=sentences)

    def _joined(self, parts: Sequence[TextPart], translations: Sequence[str]) -> str:
        return segment.join_parts(parts, translations, self._direction.source, self._direction.target)


def _bridged_sentence(first: SentenceTranslation, second: Answer, begin: int) -> SentenceTranslation:
    """Return the translation of a sentence that two models translated one after the other.

    Args:
        first: the translation of the sentence into the bridge language.
        second: the second model's answer for this translation.
        begin: offset of `second.text` in the translation of the whole text.
    """
    inner = second.sentences[0].target_range[0], second.sentences[-1].target_range[1]
    tail = len(second.text) - inner[1]
    best = second.sentences[0].alternatives[0]
    texts = [text[inner[0] : len(text) - tail] for text in (second.text, *second.alternatives)]
    bridge = first.target_range[0]
    links = [((a + bridge, b + bridge), (c + begin, d + begin)) for (a, b), (c, d) in alignment_of(second)]
    return replace(
        translated_again(first, second.sentences),
        alternatives=tuple(replace(best, text=text) for text in texts),
        target_range=(begin + inner[0], begin + inner[1]),
        links=compose_links(first.links, links),
    )


def compose_links(first: Sequence[Link], second: Sequence[Link]) -> tuple[Link, ...]:
    """Combine `first`, the links from source to bridge text, and `second`, the links from bridge text to target.

    Return the links from source to target: one for each link of `first` and each link of `second` whose ranges in the
    bridge text overlap.
    """
    onward = sorted(second)
    begins = [begin for (begin, _), _ in onward]
    ends = list(accumulate((end for (_, end), _ in onward), max))  # running maximum
    links = {
        (source, target)
        for source, bridge in first
        for onward_bridge, target in onward[bisect_right(ends, bridge[0]) : bisect_left(begins, bridge[1])]
        if bridge[0] < onward_bridge[1]
    }
    return tuple(sorted(links))
