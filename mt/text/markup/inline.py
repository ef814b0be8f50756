"""Conversion of the inline items of a text into a segment: plain text with marks at its characters."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from typing import Generic, TypeVar

from mt.text.markup.marks import Mark, Segment, TranslatedSegment
from mt.text.markup.placement import place_marks

PartType = TypeVar("PartType")
Decode = Callable[[str], Iterator[tuple[str, str | None]]]
"""A function that yields a text in pieces: (source, decoded text)."""

_SPACES = re.compile(r"[ \t\n\f\r]+")


class InlineKind(Enum):
    """The kind of an inline item."""

    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    EMPTY = "empty"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class InlineItem(Generic[PartType]):
    """An inline item: `text` is the source of a TEXT, or the visible text of a KEPT item.

    An OPEN and its CLOSE have the same `key`. `breaks`: an empty item that separates words, like white space.
    """

    kind: InlineKind
    parts: tuple[PartType, ...]
    text: str = ""
    key: int = -1
    breaks: bool = False

    @property
    def has_words(self) -> bool:
        return self.kind is InlineKind.KEPT or (self.kind is InlineKind.TEXT and not self.text.isspace())


@dataclass(frozen=True, slots=True)
class BuiltSegment(Generic[PartType]):
    """A segment, the source of its marks, and how the source writes the characters that it escapes (`forms`)."""

    segment: Segment
    openings: tuple[tuple[PartType, ...], ...]
    closings: tuple[PartType | None, ...]
    forms: dict[str, str]

    def render(self, translated: TranslatedSegment, write: Callable[[str], PartType]) -> list[PartType]:
        """Return the parts of the translation: `write` of its text, and the source of its marks."""
        parts: list[PartType] = []
        for piece in place_marks(self.segment, translated):
            if piece.opens >= 0:
                parts += self.openings[piece.opens]
            elif piece.closes < 0:
                parts.append(write(piece.text))
            elif (closing := self.closings[piece.closes]) is not None:
                parts.append(closing)
        return parts


@dataclass(frozen=True, slots=True)
class InlineText(Generic[PartType]):
    """The items of a text: those that its segment needs, and those before and after; `built` is None without words."""

    before: Sequence[InlineItem[PartType]]
    items: Sequence[InlineItem[PartType]]
    after: Sequence[InlineItem[PartType]]
    built: BuiltSegment[PartType] | None

    def sources(self) -> Iterator[list[PartType]]:
        """Yield the source of the items before, of the text, and of the items after."""
        return ([part for item in items for part in item.parts] for items in (self.before, self.items, self.after))


def read_inline(items: Sequence[InlineItem[PartType]], decode: Decode, collapse: bool) -> InlineText[PartType]:
    """Build the segment of a text without the items outside of all words, or around them all.

    If there is neither letter nor digit to translate, there is no segment. If a tag lacks its partner, all tags become
    empty marks and keep their order. `collapse`: white space counts as in HTML.
    """
    begin, end = trim_items(items)
    inner = items[begin:end]
    texts = (item.text for item in inner if item.kind is InlineKind.TEXT)
    built = None
    if any(any(map(str.isalnum, meaning or "")) for text in texts for _, meaning in decode(text)):
        merged = _merge_empty_pairs(inner)
        partner = _partners(merged)
        tags = [number for number, item in enumerate(merged) if item.kind in (InlineKind.OPEN, InlineKind.CLOSE)]
        built = _Builder[PartType](decode, collapse, any(partner[number] < 0 for number in tags)).build(merged)
    return InlineText(items[:begin], inner, items[end:], built)


def decode_nothing(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the text: a `Decode` for formats without escapes."""
    yield text, text


def split_whitespace(text: str, space: str | None = None) -> tuple[str, str, str]:
    """Return the white space before a text, the text, and the white space after it."""
    left = text.lstrip(space)
    body = left.rstrip(space)
    return text[: len(text) - len(left)], body, left[len(body) :]


def trim_items(items: Sequence[InlineItem[PartType]]) -> tuple[int, int]:
    """Return begin and end of the items that lie between words, without tags around all words."""
    partner = _partners(items)
    words = [0, *accumulate(item.has_words for item in items)]
    begin, end = 0, len(items)
    before = (-1, -1)
    while begin < end and (begin, end) != before:
        before = (begin, end)
        other = partner[begin]
        if _is_loose(items[begin], other, begin, end):
            begin += 1
        elif other == end - 1:
            begin, end = begin + 1, end - 1
        elif begin < other and words[other] == words[begin]:
            begin = other + 1
        if begin < end:
            other = partner[end - 1]
            if _is_loose(items[end - 1], other, begin, end):
                end -= 1
            elif begin <= other < end - 1 and words[end] == words[other]:
                end = other
    return begin, end


def _partners(items: Sequence[InlineItem[PartType]]) -> list[int]:
    """Return for each tag the number of its partner, and -1 for other items."""
    partner = [-1] * len(items)
    opened: dict[int, int] = {}
    for number, item in enumerate(items):
        if item.kind is InlineKind.OPEN and item.key >= 0:
            opened[item.key] = number
        elif item.kind is InlineKind.CLOSE and item.key in opened:
            partner[number] = opened.pop(item.key)
            partner[partner[number]] = number
    return partner


def _is_loose(item: InlineItem[PartType], partner: int, begin: int, end: int) -> bool:
    """Return whether an item at the edge belongs to no word: white space, an empty item, a tag without partner."""
    if item.kind in (InlineKind.OPEN, InlineKind.CLOSE):
        return not begin <= partner < end
    return not item.has_words


def _merge_empty_pairs(items: Sequence[InlineItem[PartType]]) -> list[InlineItem[PartType]]:
    partner = _partners(items)
    words = [0, *accumulate(item.has_words for item in items)]
    merged: list[InlineItem[PartType]] = []
    number = 0
    while number < len(items):
        other = partner[number]
        if items[number].kind is InlineKind.OPEN and other > 0 and words[number] == words[other]:
            inside = items[number : other + 1]
            parts = tuple(part for item in inside for part in item.parts)
            breaks = any(item.breaks or item.kind is InlineKind.TEXT for item in inside)
            merged.append(InlineItem(InlineKind.EMPTY, parts, breaks=breaks))
            number = other + 1
        else:
            merged.append(items[number])
            number += 1
    return merged


class _Builder(Generic[PartType]):
    """Builds a segment item by item."""

    def __init__(self, decode: Decode, collapse: bool, ordered: bool) -> None:
        self.decode, self.collapse, self.ordered = decode, collapse, ordered
        self.texts: list[str] = []
        self.length = 0
        self.marks: list[Mark] = []
        self.openings: list[tuple[PartType, ...]] = []
        self.closings: list[PartType | None] = []
        self.forms: dict[str, str] = {}
        self.open: list[int] = []  # numbers of marks

    def build(self, items: Sequence[InlineItem[PartType]]) -> BuiltSegment[PartType]:
        for number, item in enumerate(items):
            if item.kind is InlineKind.TEXT:
                follows_empty = number > 0 and items[number - 1].kind is InlineKind.EMPTY
                self._text(item, follows_empty)
            elif item.kind is InlineKind.CLOSE and not self.ordered:
                mark = self.open.pop()
                self.marks[mark] = replace(self.marks[mark], end=self.length)
                self.closings[mark] = item.parts[0]
            elif item.kind is InlineKind.OPEN and not self.ordered:
                self._mark(item, Mark(self.length, self.length))
                self.open.append(len(self.marks) - 1)
            elif item.kind is InlineKind.KEPT:
                self._mark(item, Mark(self.length, self.length + len(item.text), kept=True))
                self._append(item.text)
            else:
                self._empty(item)
        text = "".join(self.texts)
        marks = tuple(self._glued(mark, text) for mark in self.marks)
        return BuiltSegment(Segment(text, marks, self.ordered), tuple(self.openings), tuple(self.closings), self.forms)

    def _mark(self, item: InlineItem[PartType], mark: Mark) -> None:
        self.marks.append(replace(mark, parent=self.open[-1] if self.open else -1))
        self.openings.append(item.parts)
        self.closings.append(None)

    def _append(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.length += len(text)

    def _empty(self, item: InlineItem[PartType]) -> None:
        spaced = item.breaks and bool(self.texts) and not self.texts[-1][-1].isspace()
        if spaced:
            self._append(" ")
        self._mark(item, Mark(self.length, self.length, glued=item.kind is InlineKind.CLOSE, spaced=spaced))

    def _text(self, item: InlineItem[PartType], follows_empty: bool) -> None:
        for source, meaning in self.decode(item.text):
            text = meaning or ""
            whole = source.endswith(";") or source.startswith("\\")  # an unterminated one could absorb letters
            if source != text and len(text) == 1 and whole and not (text.isascii() and text.isalnum()):
                self.forms[text] = source
            if self.collapse:
                text = _SPACES.sub(" ", text)
                if text.startswith(" ") and (not self.texts or self.texts[-1].endswith(" ")):
                    text = text[1:]
                    if follows_empty and item.text.isspace():
                        self.openings[-1] = (*self.openings[-1], *item.parts)
            self._append(text)

    def _glued(self, mark: Mark, text: str) -> Mark:
        """Attach an empty mark to the word right before it, unless a word follows it directly."""
        if not mark.empty or mark.glued or mark.begin == 0 or text[mark.begin - 1].isspace():
            return mark
        return replace(mark, glued=not text[mark.begin : mark.begin + 1].isalnum())
