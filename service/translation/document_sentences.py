"""Sentences of a translated document. A person can edit them; then they are joined to segments again.

A segment is a part of a document, such as a paragraph, that is translated as one text. Its translation is the
concatenation of `before`, `target` and `after` of its sentences, in order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, takewhile

from mt.text.markup import Link, Range, TranslatedSegment
from mt.text.markup.units import TextUnit, find_units
from service.translation.answers import reports_of
from service.translation.jobs import Answer

MAX_COMPARED = 200  # words; longer changed parts are not compared word by word, which would take quadratic time


@dataclass(frozen=True, slots=True)
class DocumentSentence:
    """A sentence of a document and its translation.

    `before` is the text between the previous sentence's translation and `target`. In the last sentence of a segment,
    `after` is the text that follows `target`. `links` is the word alignment: each link is a pair of character ranges,
    one in the segment's source text and one in `target`.
    """

    segment: int  # index in the document
    source: str
    target: str
    before: str = ""
    after: str = ""
    links: tuple[Link, ...] = ()
    confidence: float | None = None
    unfamiliar: bool = False
    match: float | None = None
    edited: bool = False

    def with_target(self, target: str) -> "DocumentSentence":
        """Return a copy with the translation `target`. It keeps the links of the words that both translations have."""
        links = tuple(moved_links(self.links, self.target, target))
        return replace(self, target=target, links=links, edited=True)


def sentences_of(segment: int, text: str, answer: Answer) -> list[DocumentSentence]:
    """Return the sentences of a translated segment. If the answer lists none, the whole segment is one sentence.

    `segment` is the index of the segment in the document, and `text` is its source text.
    """
    if not answer.sentences:
        return [DocumentSentence(segment, text, answer.text)]
    return [
        DocumentSentence(
            segment,
            sentence.source,
            report.text,
            report.before,
            report.after,
            tuple((source, (begin - place, end - place)) for source, (begin, end) in sentence.links),
            sentence.confidence,
            sentence.unfamiliar,
            sentence.match,
        )
        for sentence, report in zip(answer.sentences, reports_of(answer), strict=True)
        for place in [report.target_range[0]]
    ]


def joined_segments(sentences: Iterable[DocumentSentence]) -> list[TranslatedSegment]:
    """Join the sentences of each segment, and return the translated segments in order."""
    return [_joined(list(parts)) for _, parts in groupby(sentences, lambda sentence: sentence.segment)]


def _joined(sentences: Sequence[DocumentSentence]) -> TranslatedSegment:
    text = ""
    links: list[Link] = []
    for sentence in sentences:
        text += sentence.before
        place = len(text)
        links += [(source, (begin + place, end + place)) for source, (begin, end) in sentence.links]
        text += sentence.target + sentence.after
    return TranslatedSegment(text, tuple(links))


def moved_links(links: Iterable[Link], old: str, new: str) -> Iterator[Link]:
    """Convert links from a source text to its translation `old` into links to its translation `new`.

    The links of a word that `new` keeps move with the word. A single word that replaces one or more words gets their
    links. All other links are dropped.
    """
    left, right = find_units(old), find_units(new)
    begins, ends = [unit.begin for unit in left], [unit.end for unit in left]
    moved: dict[int, Range] = {}  # by number of a unit in `old`: its range in `new`
    for kind, i, i_end, j, j_end in _changes(_words(old, left), _words(new, right)):
        for number in range(i, i_end):
            if kind == "equal":
                unit = right[j + number - i]
                moved[number] = unit.begin, unit.end
            elif j_end - j == 1:
                moved[number] = right[j].begin, right[j].end
    for source, (begin, end) in links:
        units = range(bisect_right(ends, begin), bisect_left(begins, end))
        places = [moved[number] for number in units if number in moved]
        if places:
            yield source, (places[0][0], places[-1][1])


def _words(text: str, units: Iterable[TextUnit]) -> list[str]:
    return [text[unit.begin : unit.end] for unit in units]


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Compare two lists of words, and yield the same tuples as SequenceMatcher.get_opcodes, in linear time.

    If more than MAX_COMPARED words differ, they count as one replacement.
    """
    head = _equal_length(old, new)
    tail = _equal_length(old[head:][::-1], new[head:][::-1])
    i, j = len(old) - tail, len(new) - tail
    yield "equal", 0, head, 0, head
    if max(i, j) - head <= MAX_COMPARED:
        for kind, *ends in SequenceMatcher(None, old[head:i], new[head:j], autojunk=False).get_opcodes():
            first, last, begin, end = (head + place for place in ends)
            yield kind, first, last, begin, end
    else:
        yield "replace", head, i, head, j
    yield "equal", i, len(old), j, len(new)


def _equal_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many words at the beginning of `old` and `new` are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
