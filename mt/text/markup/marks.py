"""Marks of a text, such as inline tags, and the insertion of marks into a translation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mt.text.alignment import Link, Range


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark around `text[begin:end]`. `parent` is the index of the innermost mark that encloses this mark, or -1.

    The range of a `kept` mark is not translated. A `glued` mark is empty and attached to the word before it. A `spaced`
    mark is empty and separates words, as <br> does; `text` has a space before the mark that the source does not have.
    White space follows an `apart` mark, which is empty, in the source.
    """

    begin: int
    end: int
    parent: int = -1
    kept: bool = False
    glued: bool = False
    spaced: bool = False
    apart: bool = False

    @property
    def empty(self) -> bool:
        return self.begin == self.end

    def words(self, text: str) -> Range:
        """Return the range of the mark in `text` without the white space at its ends."""
        inside = text[self.begin : self.end]
        begin = self.begin + len(inside) - len(inside.lstrip())
        return begin, max(begin, self.end - len(inside) + len(inside.rstrip()))


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate, with its marks in the order of the source, parents first.

    `ordered` is true if a start or end tag is missing. All marks are then empty or kept, and a translation keeps their
    order.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    ordered: bool = False

    @property
    def kept(self) -> tuple[Range, ...]:
        return tuple((mark.begin, mark.end) for mark in self.marks if mark.kept)

    @property
    def marked(self) -> tuple[Range, ...]:
        """The ranges of the words in marks that neither enclose another mark around words nor are enclosed by one.

        Those of a text with line breaks, and without such marks, are its lines.
        """
        spans = [(number, mark) for number, mark in enumerate(self.marks) if not (mark.empty or mark.kept)]
        outer = {mark.parent for _, mark in spans}
        ranges = [mark.words(self.text) for number, mark in spans if mark.parent < 0 and number not in outer]
        breaks = [mark.begin for mark in self.marks if mark.spaced and not self.ordered]
        if breaks and not spans:
            ranges = [*pairwise((0, *breaks, len(self.text)))]
        return tuple((begin, end) for begin, end in ranges if begin < end)


@dataclass(frozen=True, slots=True)
class TranslatedSegment:
    """The translation of a segment. `alignment` contains pairs of a source range and a target range of characters.

    The alignment may be empty or incomplete.
    """

    text: str
    alignment: tuple[Link, ...] = ()


Translations = Sequence[TranslatedSegment]
Render = Callable[[Translations], str]
Part = str | Render
"""A part of a text: source that is kept, or a function that renders it, given the translations of all segments."""


def render_parts(parts: Sequence[Part], translations: Translations) -> str:
    return "".join(part if isinstance(part, str) else part(translations) for part in parts)


def text_of(number: int, translations: Translations) -> str:
    return translations[number].text


def is_changed(segments: Sequence[Segment], translations: Translations) -> bool:
    """Return whether any translation differs from its segment."""
    return any(segment.text != new.text for segment, new in zip(segments, translations, strict=True))


@dataclass(frozen=True, slots=True)
class MarkedPiece:
    """A piece of a translation: a text, the beginning of a mark, or the end of a mark.

    `opens` and `closes` are the indices of the marks that begin and end here, or -1. Empty and kept marks have no end.
    """

    text: str = ""
    opens: int = -1
    closes: int = -1


def children_of(marks: Sequence[Mark]) -> dict[int, list[int]]:
    """Return the indices of the marks with each parent. The parent -1 stands for the whole text."""
    children: dict[int, list[int]] = {}
    for number, mark in enumerate(marks):
        children.setdefault(mark.parent, []).append(number)
    return children


def interleave(target: str, marks: Sequence[Mark], places: Sequence[Range]) -> list[MarkedPiece]:
    """Split the translation `target` into pieces, with the beginning and the end of each mark between them.

    `places[i]` is the range of `marks[i]` in `target`. Ranges must not cross.
    """
    children = children_of(marks)
    pieces: list[MarkedPiece] = []
    cursor = 0
    stack = [(-1, _sort_siblings(children.get(-1, []), marks, places, children))]
    while stack:
        number, waiting = stack[-1]
        goal = len(target) if number < 0 else places[number][1]
        child = waiting.pop() if waiting else None
        goal = goal if child is None else places[child][0]
        if goal > cursor:
            pieces.append(MarkedPiece(target[cursor:goal]))
            cursor = goal
        if child is None:
            stack.pop()
            if number >= 0:
                pieces.append(MarkedPiece(closes=number))
        elif marks[child].kept or marks[child].empty:
            _write_whole(pieces, child, marks[child], target, places[child])
            cursor = max(cursor, places[child][1])
        else:
            pieces.append(MarkedPiece(opens=child))
            stack.append((child, _sort_siblings(children.get(child, []), marks, places, children)))
    return pieces


def _sort_siblings(
    numbers: Sequence[int], marks: Sequence[Mark], places: Sequence[Range], children: dict[int, list[int]]
) -> list[int]:
    """Sort the marks `numbers`, which have the same parent, by their places in the target, the last one first.

    An empty mark within the range of another mark is left out, and is added to the `children` of that mark.
    """
    order = sorted(numbers, key=lambda n: (places[n][0], places[n][0] < places[n][1], n))
    siblings: list[int] = []
    open_until, outer = 0, -1
    for number in order:
        begin, end = places[number]
        if begin == end and begin < open_until:
            children.setdefault(outer, []).append(number)
            continue
        siblings.append(number)
        if end > begin and not marks[number].kept:
            open_until, outer = end, number
    return siblings[::-1]


def _write_whole(pieces: list[MarkedPiece], number: int, mark: Mark, target: str, place: Range) -> None:
    """Append the pieces of an empty or kept mark. `place` is the range of the mark in `target`.

    The space before a spaced mark is removed. If `place` is empty, spaces separate a kept mark from adjacent words.
    """
    replaces = place[0] < place[1]
    before, after = target[max(0, place[0] - 1) : place[0]], target[place[0] : place[0] + 1]
    if mark.spaced and pieces and pieces[-1].text.endswith(" "):
        pieces[-1] = MarkedPiece(pieces[-1].text[:-1])
    if mark.kept and not replaces and before and not before.isspace():
        pieces.append(MarkedPiece(" "))
    pieces.append(MarkedPiece(opens=number))
    if (mark.kept or mark.apart) and not replaces and after and not after.isspace():
        pieces.append(MarkedPiece(" "))
