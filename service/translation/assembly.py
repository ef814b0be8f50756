"""Answers from what the models give: of one leg, of two, and of a text from its sentences."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from mt.engine.results import SentenceTranslation, Translation
from mt.text import segment
from mt.text.markup import Link, Range
from mt.text.segment import Piece
from service.languages import Direction
from service.translation.jobs import Answer, Sentence


def unchanged(text: str, source: str) -> Answer:
    """For a text in which there is nothing to translate."""
    return Answer(text, source, confidence=1.0)


def answered(translation: Translation, direction: Direction) -> Answer:
    """What a model found, without what no client is told."""
    return Answer(
        text=translation.text,
        source=direction.source,
        alternatives=_others(translation.text, (each.text for each in translation.alternatives)),
        confidence=translation.confidence if translation.sentences else 1.0,
        sentences=tuple(map(_sentence, translation.sentences)),
    )


def _sentence(found: SentenceTranslation) -> Sentence:
    return Sentence(
        source=found.source_range,
        target=found.target_range,
        confidence=found.confidence,
        alternatives=_others(found.text, (each.text for each in found.alternatives)),
        alignment=tuple(found.links),
        attention=found.attention,
    )


def _others(text: str, found: Iterable[str]) -> tuple[str, ...]:
    """Those that read otherwise, each once."""
    return tuple(other for other in dict.fromkeys(found) if other != text)


def chained(first: Answer, second: Answer, bridge: str) -> Answer:
    """Of one sentence, from its way into a bridge language and on from there.

    Its confidence is the product, as if the two went wrong independently; its alternatives are those of the second leg.
    There is no attention: the second model has never seen the source.
    """
    sentences: tuple[Sentence, ...] = ()
    confidence = _product(first.confidence, second.confidence)
    if first.sentences and second.sentences:
        source = first.sentences[0].source[0], first.sentences[-1].source[1]
        target = second.sentences[0].target[0], second.sentences[-1].target[1]
        begin, end = target[0], len(second.text) - target[1]
        alternatives = tuple(text[begin : len(text) - end] for text in second.alternatives)
        alignment = _composed(*(links(answer) for answer in (first, second)))
        sentences = (Sentence(source, target, confidence, alternatives, alignment),)
    return replace(second, source=first.source, bridge=bridge, confidence=confidence, sentences=sentences)


def ranked(answer: Answer, rank: int) -> str:
    """The translation, which is 0, or an alternative, or the last that there is."""
    return (answer.text, *answer.alternatives)[min(rank, len(answer.alternatives))]


def links(answer: Answer) -> tuple[Link, ...]:
    """The alignment of all sentences."""
    return tuple(link for sentence in answer.sentences for link in sentence.alignment)


def moved(kept: Sequence[Range], text: str, translation: str) -> tuple[Range, ...]:
    """Where in a translation the ranges of a text stand that came back as they were."""
    found: list[Range] = []
    places: dict[str, int] = {}
    for begin, end in kept:
        piece = text[begin:end]
        place = translation.find(piece, places.get(piece, 0))
        if place >= 0 and not any(place < b and a < place + len(piece) for a, b in found):
            found.append((place, place + len(piece)))
            places[piece] = place + len(piece)
    return tuple(sorted(found))


class Assembly:
    """Puts a text together from its pieces, in order, as the engine does; each addition says how the text goes on."""

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target
        self._kept: list[Piece] = []  # since the last addition
        self._last: tuple[Piece, str] | None = None  # the piece that was written last
        self._length = [0, 0]  # of source and translation
        self._parts: list[tuple[str, Answer]] = []  # what stands before a translation, and that
        self._sentences: list[Sentence] = []

    @property
    def read(self) -> int:
        """Characters of the source so far, up to the last addition."""
        return self._length[0]

    def keep(self, piece: Piece) -> None:
        self._kept.append(piece)

    def add(self, text: str, answer: Answer) -> str:
        """The translation of the next piece, with what stands before it."""
        before, self._kept = self._kept, []
        new = _pieces(answer)
        window = [*([self._last[0]] if self._last else []), *before, *(piece for piece, _ in new)]
        written = [self._last[1]] if self._last and not self._last[0].kept else []
        written += [words for piece, words in new if not piece.kept]
        joined = segment.join(window, written, self._source, self._target)
        delta = joined[len(self._last[1]) if self._last else 0 :]
        gap = delta[: len(delta) - len(answer.text)]
        self._parts.append((gap, answer))
        self._length[0] += sum(len(piece.text) for piece in before)
        self._length[1] += len(gap)
        self._sentences += (shifted(each, *self._length) for each in answer.sentences)
        self._length[0] += len(text)
        self._length[1] += len(answer.text)
        self._last = new[-1]
        return delta

    def finish(self) -> tuple[str, Answer]:
        """What stands at the end, and the whole."""
        tail = "".join(piece.text for piece in self._kept)
        answers = [answer for _, answer in self._parts]
        ranks = max((len(answer.alternatives) for answer in answers), default=0)
        text, *others = (self._whole(rank) + tail for rank in range(ranks + 1))
        return tail, Answer(
            text=text,
            source=self._source,
            bridge=next((answer.bridge for answer in answers if answer.bridge), ""),
            alternatives=_others(text, others),
            confidence=weighted(self._sentences),
            sentences=tuple(self._sentences),
        )

    def _whole(self, rank: int) -> str:
        return "".join(gap + ranked(answer, rank) for gap, answer in self._parts)


def weighted(sentences: Iterable[Sentence]) -> float | None:
    """The mean confidence of sentences by the characters of their sources, as mt has it; 1 if there are none."""
    found = [(each.confidence, each.source[1] - each.source[0]) for each in sentences]
    known = [(confidence, size) for confidence, size in found if confidence is not None]
    if not known:
        return None if found else 1.0
    return sum(confidence * size for confidence, size in known) / sum(size for _, size in known)


def shifted(sentence: Sentence, source: int, target: int) -> Sentence:
    """A sentence whose text stands this far into a longer one, and so does its translation."""

    def moved_by(range: Range, distance: int) -> Range:
        return range[0] + distance, range[1] + distance

    return replace(
        sentence,
        source=moved_by(sentence.source, source),
        target=moved_by(sentence.target, target),
        alignment=tuple((moved_by(here, source), moved_by(there, target)) for here, there in sentence.alignment),
    )


def _pieces(answer: Answer) -> list[tuple[Piece, str]]:
    """A translated sentence as pieces, and what is written for each: the engine keeps, say, the number of a list."""
    if not answer.sentences:
        return [(Piece(answer.text, kept=True), answer.text)]
    begin, end = answer.sentences[0].target[0], answer.sentences[-1].target[1]
    found = [(answer.text[:begin], True), (answer.text[begin:end], False), (answer.text[end:], True)]
    return [(Piece(text, kept), text) for text, kept in found if text or not kept]


def _product(*confidences: float | None) -> float | None:
    found = 1.0
    for confidence in confidences:
        if confidence is None:
            return None
        found *= confidence
    return found


def _composed(first: Sequence[Link], second: Sequence[Link]) -> tuple[Link, ...]:
    """Links from a source to a target, through what both link to in the bridge."""
    onward = sorted(second)
    begins = [begin for (begin, _), _ in onward]
    ends = list(accumulate((end for (_, end), _ in onward), max))  # the last one so far
    found = {
        (here, there)
        for here, between in first
        for again, there in onward[bisect_right(ends, between[0]) : bisect_left(begins, between[1])]
        if between[0] < again[1]
    }
    return tuple(sorted(found))
