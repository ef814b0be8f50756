"""Copies of protected spans in a translation, without which a model reads a pair whose attention is wanted."""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from mt.text import protect
from mt.text.alignment import Link, Range
from mt.text.numbers import NOT_DIGIT
from mt.text.protect import SpanKind


def without_ranges(text: str, removed: Sequence[Range]) -> tuple[str, list[int]]:
    """Return a text without ranges, the offset in `text` of each of its characters, and the length of `text`.

    White space that is then at the beginning, or doubled, is removed, too.
    """
    gone = {place for begin, end in removed for place in range(begin, end)}
    places: list[int] = []
    for place, character in enumerate(text):
        redundant = character.isspace() and (not places or (places[-1] < place - 1 and text[places[-1]].isspace()))
        if not redundant and place not in gone:
            places.append(place)
    return "".join(text[place] for place in places), [*places, len(text)]


def find_copies(source: str, target: str) -> Iterator[tuple[SpanKind, Link]]:
    """Yield (kind, link) for each protected span that occurs in both texts; a number also as `20 $` for $20.

    Occurrence n of a span in the source is linked to occurrence n in the target.
    """
    copies: defaultdict[str, deque[Range]] = defaultdict(deque)
    spans = protect.find_spans(source)
    texts = {span.text for span in spans}
    for copy in protect.find_translated_spans(target, spans):
        rewritten = copy.kind is SpanKind.NUMBER and copy.text not in texts
        copies[NOT_DIGIT.sub("", copy.text) if rewritten else copy.text].append((copy.begin, copy.end))
    for span in spans:
        written = copies[span.text] or (span.kind is SpanKind.NUMBER and copies[NOT_DIGIT.sub("", span.text)])
        if written:
            yield span.kind, ((span.begin, span.end), written.popleft())
