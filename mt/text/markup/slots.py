"""The inline items of one text, made a segment: plain text, and marks at its characters."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from typing import Generic, TypeVar

from mt.text.markup.marks import Mark, Segment

PartType = TypeVar("PartType")
Decode = Callable[[str], Iterator[tuple[str, str | None]]]
"""Text in pieces: (source, what it stands for)."""

_SPACES = re.compile(r"[ \t\n\f\r]+")


class ItemKind(Enum):
    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    EMPTY = "empty"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Item(Generic[PartType]):
    """`text` is a TEXT's source, or what a reader sees of what is KEPT. An OPEN and its CLOSE have the same `key`.

    `breaks`: something empty that sets words apart, as white space does.
    """

    kind: ItemKind
    parts: tuple[PartType, ...]
    text: str = ""
    key: int = -1
    breaks: bool = False

    @property
    def worded(self) -> bool:
        return self.kind is ItemKind.KEPT or (self.kind is ItemKind.TEXT and not self.text.isspace())


@dataclass(frozen=True, slots=True)
class Built(Generic[PartType]):
    """A segment, and the source of each of its marks; `forms` is how the source writes characters that it escapes."""

    segment: Segment
    openings: tuple[tuple[PartType, ...], ...]
    closings: tuple[PartType | None, ...]
    forms: dict[str, str]


def around(text: str, space: str | None = None) -> tuple[str, str, str]:
    """A text as the white space before it, itself, and the white space after it."""
    left = text.lstrip(space)
    body = left.rstrip(space)
    return text[: len(text) - len(left)], body, left[len(body) :]


def trim(items: Sequence[Item[PartType]]) -> tuple[int, int]:
    """From where to where items are needed to place marks: without what lies outside all words, or around them all."""
    partner = _partners(items)
    worded = [0, *accumulate(item.worded for item in items)]
    begin, end = 0, len(items)
    before = (-1, -1)
    while begin < end and (begin, end) != before:
        before = (begin, end)
        other = partner[begin]
        if _is_loose(items[begin], other, begin, end):
            begin += 1
        elif other == end - 1:
            begin, end = begin + 1, end - 1
        elif begin < other and worded[other] == worded[begin]:
            begin = other + 1
        if begin < end:
            other = partner[end - 1]
            if _is_loose(items[end - 1], other, begin, end):
                end -= 1
            elif begin <= other < end - 1 and worded[end] == worded[other]:
                end = other
    return begin, end


def writes_nothing(items: Sequence[Item[PartType]], decode: Decode) -> bool:
    """Whether there is neither letter nor digit to translate."""
    texts = (item.text for item in items if item.kind is ItemKind.TEXT)
    return not any(any(map(str.isalnum, meaning or "")) for text in texts for _, meaning in decode(text))


def build(items: Sequence[Item[PartType]], decode: Decode, collapse: bool) -> Built[PartType]:
    """The segment of trimmed items. Where a tag lacks its partner, all become empty marks and keep their order."""
    items = _without_empty_pairs(items)
    partner = _partners(items)
    tags = [n for n, item in enumerate(items) if item.kind in (ItemKind.OPEN, ItemKind.CLOSE)]
    ordered = any(partner[n] < 0 for n in tags)
    return _Builder[PartType](decode, collapse, ordered).build(items)


def _partners(items: Sequence[Item[PartType]]) -> list[int]:
    """For each item the number of that which closes or opens what it does; -1 for none."""
    partner = [-1] * len(items)
    opened: dict[int, int] = {}
    for number, item in enumerate(items):
        if item.kind is ItemKind.OPEN and item.key >= 0:
            opened[item.key] = number
        elif item.kind is ItemKind.CLOSE and item.key in opened:
            partner[number] = opened.pop(item.key)
            partner[partner[number]] = number
    return partner


def _is_loose(item: Item[PartType], partner: int, begin: int, end: int) -> bool:
    """Whether an item at the edge belongs to no word: white space, something empty, a tag without partner."""
    if item.kind in (ItemKind.OPEN, ItemKind.CLOSE):
        return not begin <= partner < end
    return not item.worded


def _without_empty_pairs(items: Sequence[Item[PartType]]) -> list[Item[PartType]]:
    """Tags with no word between them are one empty item."""
    partner = _partners(items)
    worded = [0, *accumulate(item.worded for item in items)]
    found: list[Item[PartType]] = []
    number = 0
    while number < len(items):
        other = partner[number]
        if items[number].kind is ItemKind.OPEN and other > 0 and worded[number] == worded[other]:
            inside = items[number : other + 1]
            parts = tuple(part for item in inside for part in item.parts)
            breaks = any(item.breaks or item.kind is ItemKind.TEXT for item in inside)
            found.append(Item(ItemKind.EMPTY, parts, breaks=breaks))
            number = other + 1
        else:
            found.append(items[number])
            number += 1
    return found


class _Builder(Generic[PartType]):
    """Text and marks, item by item."""

    def __init__(self, decode: Decode, collapse: bool, ordered: bool) -> None:
        self.decode, self.collapse, self.ordered = decode, collapse, ordered
        self.texts: list[str] = []
        self.length = 0
        self.marks: list[Mark] = []
        self.openings: list[tuple[PartType, ...]] = []
        self.closings: list[PartType | None] = []
        self.forms: dict[str, str] = {}
        self.open: list[int] = []  # marks

    def build(self, items: Sequence[Item[PartType]]) -> Built[PartType]:
        for number, item in enumerate(items):
            if item.kind is ItemKind.TEXT:
                follows_empty = number > 0 and items[number - 1].kind is ItemKind.EMPTY
                self._text(item, follows_empty)
            elif item.kind is ItemKind.CLOSE and not self.ordered:
                mark = self.open.pop()
                self.marks[mark] = replace(self.marks[mark], end=self.length)
                self.closings[mark] = item.parts[0]
            elif item.kind is ItemKind.OPEN and not self.ordered:
                self._mark(item, Mark(self.length, self.length))
                self.open.append(len(self.marks) - 1)
            elif item.kind is ItemKind.KEPT:
                self._mark(item, Mark(self.length, self.length + len(item.text), kept=True))
                self._append(item.text)
            else:
                self._empty(item)
        text = "".join(self.texts)
        marks = tuple(self._glued(mark, text) for mark in self.marks)
        return Built(Segment(text, marks, self.ordered), tuple(self.openings), tuple(self.closings), self.forms)

    def _mark(self, item: Item[PartType], mark: Mark) -> None:
        self.marks.append(replace(mark, parent=self.open[-1] if self.open else -1))
        self.openings.append(item.parts)
        self.closings.append(None)

    def _append(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.length += len(text)

    def _empty(self, item: Item[PartType]) -> None:
        spaced = item.breaks and bool(self.texts) and not self.texts[-1][-1].isspace()
        if spaced:
            self._append(" ")
        self._mark(item, Mark(self.length, self.length, glued=item.kind is ItemKind.CLOSE, spaced=spaced))

    def _text(self, item: Item[PartType], follows_empty: bool) -> None:
        for source, meaning in self.decode(item.text):
            text = meaning or ""
            whole = source.endswith(";") or source.startswith("\\")  # a reference without its end would swallow letters
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
        """An empty mark right after a word, and not right before another, belongs to the one before."""
        if not mark.empty or mark.glued or mark.begin == 0 or text[mark.begin - 1].isspace():
            return mark
        return replace(mark, glued=not text[mark.begin : mark.begin + 1].isalnum())
