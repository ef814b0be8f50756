"""What stands in a text that is not text, such as inline tags, and how it is written once its places are known."""

from collections.abc import Sequence
from dataclasses import dataclass

from mt.text.markup.units import Link, Range


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands at, or around, `text[begin:end]`; `parent` is the number of the mark it lies in, -1 for none.

    `kept`: the range is carried across as it is. `glued`: an empty mark that belongs to the word before it. `spaced`:
    an empty mark in whose place the text has a space that the source had not.
    """

    begin: int
    end: int
    parent: int = -1
    kept: bool = False
    glued: bool = False
    spaced: bool = False

    @property
    def empty(self) -> bool:
        return self.begin == self.end


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate. Its marks come in the order of the source, parents first.

    `ordered`: the marks keep that order, whatever the words do, for they do not pair; then all are empty or kept.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    ordered: bool = False

    @property
    def kept(self) -> tuple[Range, ...]:
        """The characters that are best not translated: they come back as they are."""
        return tuple((mark.begin, mark.end) for mark in self.marks if mark.kept)


@dataclass(frozen=True, slots=True)
class Translated:
    """The translation of a segment; `alignment` may be empty, and need not cover everything."""

    text: str
    alignment: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Translated text, or the opening or the closing of a mark. What is empty or kept is opened only."""

    text: str = ""
    opens: int = -1
    closes: int = -1


def link_words(
    source: str, target: str, words: tuple[Sequence[str], Sequence[str]], pairs: Sequence[tuple[int, int]]
) -> tuple[Link, ...]:
    """An alignment of words (of the source, of the target), counted from 0, as character ranges of both texts.

    Words are looked for one after another; one that is not found, as an aligner may have changed it, has no links.
    """
    left, right = _ranges(source, words[0]), _ranges(target, words[1])
    found = ((left[i], right[j]) for i, j in pairs)
    return tuple((here, there) for here, there in found if here and there)


def _ranges(text: str, words: Sequence[str]) -> list[Range | None]:
    found: list[Range | None] = []
    place = 0
    for word in words:
        begin = text.find(word, place) if word else -1
        found.append(None if begin < 0 else (begin, begin + len(word)))
        place = place if begin < 0 else begin + len(word)
    return found


def emit(target: str, marks: Sequence[Mark], places: Sequence[Range]) -> list[Piece]:
    """The pieces, from places that do not cross; an empty mark that lies in another's range is written within it."""
    children: dict[int, list[int]] = {}
    for number, mark in enumerate(marks):
        children.setdefault(mark.parent, []).append(number)
    pieces: list[Piece] = []
    cursor = 0
    stack = [(-1, _sorted(children.get(-1, []), marks, places, children))]
    while stack:
        number, waiting = stack[-1]
        goal = len(target) if number < 0 else places[number][1]
        child = waiting.pop() if waiting else None
        goal = goal if child is None else places[child][0]
        if goal > cursor:
            pieces.append(Piece(target[cursor:goal]))
            cursor = goal
        if child is None:
            stack.pop()
            if number >= 0:
                pieces.append(Piece(closes=number))
        elif marks[child].kept or marks[child].empty:
            _write_whole(pieces, child, marks[child], target, places[child])
            cursor = max(cursor, places[child][1])
        else:
            pieces.append(Piece(opens=child))
            stack.append((child, _sorted(children.get(child, []), marks, places, children)))
    return pieces


def _sorted(
    numbers: Sequence[int], marks: Sequence[Mark], places: Sequence[Range], children: dict[int, list[int]]
) -> list[int]:
    """Siblings as they stand in the target, last first; an empty one within a range becomes its child."""
    order = sorted(numbers, key=lambda n: (places[n][0], places[n][0] < places[n][1], n))
    found: list[int] = []
    open_until, outer = 0, -1
    for number in order:
        begin, end = places[number]
        if begin == end and begin < open_until:
            children.setdefault(outer, []).append(number)
            continue
        found.append(number)
        if end > begin and not marks[number].kept:
            open_until, outer = end, number
    return found[::-1]


def _write_whole(pieces: list[Piece], number: int, mark: Mark, target: str, place: Range) -> None:
    """A mark that is empty or kept. What is kept and displaces nothing is set off by a space."""
    displaced = place[0] < place[1]
    before, after = target[max(0, place[0] - 1) : place[0]], target[place[0] : place[0] + 1]
    if mark.spaced and pieces and pieces[-1].text.endswith(" "):
        pieces[-1] = Piece(pieces[-1].text[:-1])
    if mark.kept and not displaced and before and not before.isspace():
        pieces.append(Piece(" "))
    pieces.append(Piece(opens=number))
    if mark.kept and not displaced and after and not after.isspace():
        pieces.append(Piece(" "))
