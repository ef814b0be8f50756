"""Removal of protected spans from a sentence, and insertion of removed spans and lost numbers into its translation.

The docstring of mt.text.protect describes the method.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mt.text.alignment import CLOSING, WIDE, PieceAttention, Range, UnitLinks, insertion, is_wide, ranges_between
from mt.text.protect import (
    HALF_HOUR,
    ProtectedSpan,
    SpanKind,
    find_spans,
    find_translated_spans,
    lost_spans,
    span_key,
    words_at,
)
from mt.text.stand_ins import StandIn

_LEAST_WEIGHT = 0.1  # minimum link weight of a target word that a number replaces
_AROUND = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "„": "“", "“": "”", "«": "»", "‹": "›", "‘": "’"}
_WHOLE_TIME = re.compile(rf"{HALF_HOUR.pattern}|(?<!\w)\d\d? h \d\d\b")  # which another number replaces
_JOINED_WORD = re.compile(rf"(?:[^\W{WIDE}]|['’-])+")


@dataclass(frozen=True, slots=True)
class RemovedSpan:
    """A span that was removed from a sentence. `at` is the offset in the remaining text at which the span was."""

    at: int
    text: str
    spaced_before: bool  # whether white space preceded the span
    spaced_after: bool
    tight: bool  # whether the span needs no white space next to a letter


@dataclass(frozen=True, slots=True)
class StrippedText:
    """A sentence from which spans were removed, and the removed spans in order."""

    text: str
    removed: tuple[RemovedSpan, ...] = ()


def remove_spans(sentence: str, spans: Sequence[ProtectedSpan]) -> StrippedText:
    """Remove spans from a sentence, together with the brackets around them and the words that contain them."""
    if not spans:
        return StrippedText(sentence.rstrip())
    text, end = "", 0
    removed: list[RemovedSpan] = []
    for begin, stop, tight in _removal_ranges(sentence, spans):
        text += sentence[end:begin]
        before = not text or text[-1].isspace()
        after = stop == len(sentence) or sentence[stop].isspace()
        if sentence[stop : stop + 1] in CLOSING:
            text = text.rstrip()
        removed.append(RemovedSpan(len(text), sentence[begin:stop], before, after, tight))
        end = stop
        while before and end < len(sentence) and sentence[end].isspace():  # keep only the white space before the span
            end += 1
    stripped = (text + sentence[end:]).rstrip()
    return StrippedText(stripped, tuple(replace(span, at=min(span.at, len(stripped))) for span in removed))


def restore_spans(
    stripped: StrippedText,
    spans: Sequence[ProtectedSpan],
    translation: str,
    attention: PieceAttention,
    stand_ins: Sequence[StandIn] = (),
) -> str:
    """Insert the removed spans, in the order of the source, and the missing numbers into the translation.

    The result contains each span as often as the source sentence; numbers and KEPT spans may occur more often.
    `translation` is that of `stripped.text`, and `attention` is between the pieces of the two. `spans` are all spans of
    the source sentence. `stand_ins` are words of `stripped.text` and of the translation that stand for spans.
    """
    wanted = {span.text for span in spans if span.kind is not SpanKind.NUMBER}
    undivided = [
        (span.begin, span.end)
        for span in find_spans(translation)
        if span.text in wanted or not any(map(str.isdigit, translation[max(0, span.begin - 1) : span.end]))  # as in 0.C
    ]
    links = UnitLinks(stripped.text, translation, attention, undivided)
    edits = list(_number_edits(links, stripped.text, wanted))
    groups: dict[int, list[RemovedSpan]] = {}  # removed spans by the gap of the translation to insert them in
    gap = 0
    for span in stripped.removed:
        gap = max(gap, links.gap(span.at))  # keeps the order of spans: arguments such as %s are positional
        groups.setdefault(gap, []).append(span)
    for gap, group in groups.items():
        joined = replace(group[0], text=" ".join(span.text for span in group), spaced_after=group[-1].spaced_after)
        edits.append(insertion(links, gap, joined.text, _spaces(links, gap, joined)))
    parts: list[str] = []
    place = 0
    for (begin, end), text in sorted(edits, key=lambda edit: edit[0]):
        glued = parts and begin == place and not (parts[-1][-1:].isspace() or text[:1].isspace())
        parts += [translation[place:begin], " " if glued else "", text]
        place = end
    completed = "".join([*parts, translation[place:]])
    for stand_in in stand_ins:
        completed = completed.replace(stand_in.word, stand_in.text)
    return add_missing_spans(completed, spans)


def add_missing_spans(translation: str, spans: Sequence[ProtectedSpan]) -> str:
    """Append missing spans to a translation, and remove surplus copies of spans. Return the new translation."""
    lost = lost_spans(spans, translation)
    if not lost:
        return translation
    wanted, keys = Counter(map(span_key, spans)), set(map(span_key, lost))
    present, surplus = Counter[str](), list[Range]()
    for span in find_translated_spans(translation, spans):
        present[span_key(span)] += 1
        if span_key(span) in keys and present[span_key(span)] > wanted[span_key(span)]:
            surplus.append((span.begin, span.end))
    added = []
    for span in lost:
        if present[span_key(span)] < wanted[span_key(span)]:
            present[span_key(span)] += 1
            added.append(span.text)
    kept = [translation[begin:end].strip() for begin, end in ranges_between(surplus, len(translation))]
    completed = " ".join([*filter(None, kept), *added]) if surplus else " ".join([translation, *added])
    if not lost_spans(spans, completed):
        return completed
    restored = [(span.begin, span.end) for span in find_translated_spans(completed, spans)]
    rest = " ".join(completed[begin:end] for begin, end in ranges_between(restored, len(completed))).split()
    return " ".join([*rest, *(span.text for span in spans)])


def _spaces(links: UnitLinks, gap: int, span: RemovedSpan) -> tuple[bool, bool]:
    """Return whether a span needs white space before it, and whether it needs white space after it.

    A side of the span needs white space if the source has white space there. A side also needs white space if a letter
    or digit of the translation is next to it, unless the span is tight or the script has no spaces.
    """
    before = links.target[links.right[gap - 1][1] - 1] if gap else " "
    after = links.target[links.right[gap][0]] if gap < len(links.right) else " "
    beside = [not span.tight and side.isalnum() and not is_wide(side) for side in (before, after)]
    return span.spaced_before or beside[0], span.spaced_after or beside[1]


def _number_edits(links: UnitLinks, source: str, wanted: set[str]) -> Iterator[tuple[Range, str]]:
    """Yield an edit (range, replacement) for each number that the translation lacks.

    It replaces the target word with the largest link weight to it that is none of the `wanted` spans. The weights of
    words with digits count twice. If all weights are small, the number is inserted instead.
    """
    spans = [span for span in find_spans(source) if span.kind is SpanKind.NUMBER]
    missing = lost_spans(spans, links.target)
    if not missing:
        return
    good = {span_key(span) for span in spans} - {span_key(span) for span in missing}
    others = [span for span in find_spans(links.target) if span.kind is SpanKind.NUMBER]
    copied = [span for span in others if span_key(span) in good]
    surplus = [(span.begin, span.end) for span in others if span_key(span) not in good]
    begins = [begin for begin, _ in links.right]
    taken = {
        number
        for span in copied
        for number in range(max(0, bisect_right(begins, span.begin) - 1), bisect_left(begins, span.end))
        if links.right[number][1] > span.begin
    }
    digits = [any(map(str.isdigit, links.target[begin:end])) for begin, end in links.right]
    times = [time.span() for time in _WHOLE_TIME.finditer(links.target)]
    replaced: list[Range] = []
    texts: list[str] = []
    for span in missing:
        weights = links.weights_from((span.begin, span.end))
        ranked = [
            (weight * (2 if digit else 1), -number)
            for number, (weight, digit) in enumerate(zip(weights, digits, strict=True))
            if number not in taken
            and links.target[slice(*links.right[number])] not in wanted
            and links.target[links.right[number][0]].isalnum()
        ]
        weight, place = max(ranked, default=(0.0, 0))
        if weight < _LEAST_WEIGHT:
            gap = links.gap(span.begin)
            yield insertion(links, gap, span.text, (True, True))
            continue
        taken.add(-place)
        begin, end = links.right[-place]
        inside = [other for other in others if other.begin < end and begin < other.end]
        tail = links.target[inside[0].end : end] if inside else ""
        if inside and not (tail and set(tail.strip(".")) <= set(span.text)):  # the tail is no damaged unit, as in "0.C"
            begin, end = inside[0].begin, inside[0].end  # with its unit or currency
        begin, end = next((time for time in times if time[0] < end and begin < time[1]), (begin, end))
        if len(surplus) > len(missing):
            begin, end = _with_neighbours((begin, end), surplus, links.target)
        taken.update(n for n, (first, last) in enumerate(links.right) if first < end and begin < last)
        replaced.append((begin, end))
        texts.append(span.text)
    yield from zip(sorted(replaced), texts, strict=True)  # in the order of the source


def _with_neighbours(place: Range, others: Sequence[Range], text: str) -> Range:
    """Return a range of a text and those of `others` beside it, which only white space separates, as in 1.234 567."""
    begin, end = place
    for other in reversed(others):
        begin = other[0] if other[1] <= begin and not text[other[1] : begin].strip() else begin
    for other in others:
        end = other[1] if other[0] >= end and not text[end : other[0]].strip() else end
    return begin, end


def _removal_ranges(sentence: str, spans: Sequence[ProtectedSpan]) -> list[tuple[int, int, bool]]:
    """Return (begin, end, tight) of each range to remove. A tight range needs no white space next to a letter."""
    ranges: list[tuple[int, int, bool]] = []
    words = words_at(sentence, _JOINED_WORD) if spans else ()
    word = -1, -1
    for span in spans:
        begin, end = span.begin, span.end
        tight = span.kind in (SpanKind.EMOJI, SpanKind.TAG)
        if not tight:
            begin, end = words[begin][0], words[end][1]
            if (begin, end) == word:
                continue
            word = begin, end
        last = ranges[-1][1] if ranges else 0
        while not tight and begin > last and end < len(sentence) and _AROUND.get(sentence[begin - 1]) == sentence[end]:
            begin, end = begin - 1, end + 1
        if ranges and (begin <= last or not sentence[last:begin].strip()):
            first, last, touches = ranges[-1]
            ranges[-1] = (min(first, begin), max(last, end), touches and tight)
        else:
            ranges.append((begin, end, tight))
    return ranges
