"""What in a translation comes from what in its source, as far as the attention of a model tells."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

Range = tuple[int, int]
Link = tuple[Range, Range]
"""Characters of a source and of its translation that translate each other."""

WIDE = "\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
"""For a set in a regular expression: characters of scripts that put no space between words."""

_UNIT = re.compile(rf"[{WIDE}]|(?![{WIDE}])\w(?:[^\s{WIDE}]*(?![{WIDE}])\w)?|[^\w\s{WIDE}]+")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_IS_WIDE = re.compile(f"[{WIDE}]")
CLOSING = frozenset(".,;:!?)]}»”’…。、，；：！？）")
"""Marks that stand at the word before them."""

_OPENING = frozenset("([{«„“‘¿¡（")


def is_wide(character: str) -> bool:
    """Whether a character is of a script that puts no space between words."""
    return _IS_WIDE.match(character) is not None


@dataclass(frozen=True)
class Attention:
    """Of a source of S pieces and a translation of T: where each begins, in characters, and rows [T][S] of weights."""

    source: Sequence[int]
    target: Sequence[int]
    weights: Sequence[Sequence[float]]


class Links:
    """The units of both texts, which are words, marks, and characters of scripts without spaces, and how they match."""

    def __init__(self, source: str, target: str, attention: Attention | None = None) -> None:
        """Without attention, what stands at one part of the source goes to the same part of the translation."""
        self.target = target
        self.left, self.right = ([found.span() for found in _UNIT.finditer(text)] for text in (source, target))
        self._source = source
        self._weights = self._in_proportion() if attention is None else self._by_units(attention)
        self._sums = [[0.0, *accumulate(row)] for row in self._weights]

    def gap(self, place: int) -> int:
        """The number of units of the translation before what stood at this character of the source.

        It is where the fewest links cross, and best between two units that are linked to its neighbours: the soft
        crossings of all others, less the weight of its own two neighbours.
        """
        before, units = sum(end <= place for _, end in self.left), len(self.right)
        if before == 0 or not units:
            return 0
        if before == len(self.left):
            return units
        follows = self._source[self.left[before][0]]
        crossed = sum(self._sums[unit][before] for unit in range(units))  # all lie behind the gap
        best, chosen = float("inf"), 0
        for at in range(units + 1):
            if at:
                sums = self._sums[at - 1]
                crossed += sums[-1] - 2 * sums[before]
            near = self._weights[at - 1][before - 1] if at else 0.0
            near += self._weights[at][before] if at < units else 0.0
            if crossed - near < best and self._may_part(at, follows):
                best, chosen = crossed - near, at
        return chosen

    def weights_from(self, source: Range) -> list[float]:
        """How much each unit of the translation leans on a range of the source."""
        units = [number for number, (begin, end) in enumerate(self.left) if begin < source[1] and end > source[0]]
        return [sum(row[unit] for unit in units) for row in self._weights]

    def strongest(self, right: int, among: Sequence[int]) -> int | None:
        """Of these units of the source, the one that a unit of the translation leans on most, if it does on any."""
        row = self._weights[right]
        best = max(among, key=lambda left: row[left], default=None)
        return best if best is not None and row[best] > 0 else None

    def _may_part(self, at: int, follows: str) -> bool:
        """No mark is parted from the word that it belongs to, unless the source has such a mark there.

        What stands before the end of the source stands before the mark that ends the translation.
        """
        last = len(self.right) - 1
        closes = [number <= last and self.target[self.right[number][0]] in CLOSING for number in (at, last)]
        if closes[0] and at < last and follows not in CLOSING:
            return False
        if at > last and closes[1] and last:
            return False
        return not (at and self.target[self.right[at - 1][1] - 1] in _OPENING)

    def _in_proportion(self) -> list[list[float]]:
        rows = []
        for number in range(len(self.right)):
            row = [0.0] * len(self.left)
            if row:
                row[number * len(row) // len(self.right)] = 1.0
            rows.append(row)
        return rows

    def _by_units(self, attention: Attention) -> list[list[float]]:
        """A unit receives what its pieces receive together, and gives what its pieces give on average."""
        lefts, rights = (
            _units_of(attention.source, self.left, self._source),
            _units_of(attention.target, self.right, self.target),
        )
        rows = [[0.0] * len(self.left) for _ in self.right]
        for right, weights in zip(rights, attention.weights, strict=True):
            if right is not None:
                row = rows[right]
                for left, weight in zip(lefts, weights, strict=True):
                    if left is not None:
                        row[left] += weight
        return [[weight / total for weight in row] if (total := sum(row)) else row for row in rows]


def _units_of(begins: Sequence[int], units: Sequence[Range], text: str) -> list[int | None]:
    """The unit that each piece lies in, or the next one; of several, a word rather than the bracket before it."""
    if not units:
        return [None] * len(begins)
    ends = [end for _, end in units]
    found: list[int | None] = []
    for begin, stop in pairwise([*begins, len(text)]):
        unit = min(bisect_right(ends, begin), len(units) - 1)
        word = unit
        while word + 1 < len(units) and units[word + 1][0] < stop and not text[units[word][0]].isalnum():
            word += 1
        found.append(word if text[units[word][0]].isalnum() else unit)
    return found


def word_links(source: str, target: str, attention: Attention, known: Sequence[Link] = ()) -> list[Link]:
    """Each word of a translation with the one of the source that it leans on most, and marks with marks; in order.

    What overlaps a known link has no other. In scripts without spaces, a word is what is one piece.
    """
    links = Links(source, target, attention)
    lefts, rights = (
        _free(_wholes(units, _units_of(begins, units, text), text), [link[side] for link in known])
        for side, (units, begins, text) in enumerate(
            [(links.left, attention.source, source), (links.right, attention.target, target)]
        )
    )
    found = list(known)
    for right, there in rights.items():
        word = target[there[0]].isalnum()
        among = [left for left, here in lefts.items() if source[here[0]].isalnum() == word]
        left = links.strongest(right, among)
        if left is not None:
            found.append((lefts[left], there))
    return sorted(found, key=lambda link: (link[1], link[0]))


def _wholes(units: Sequence[Range], begun: Sequence[int | None], text: str) -> dict[int, Range]:
    """The units that pieces begin in, each with the characters after it in which none does."""
    begins = set(begun)
    found: dict[int, Range] = {}
    last = None
    for number, (begin, end) in enumerate(units):
        if number in begins:
            last = number
            found[number] = (begin, end)
        elif last is not None and is_wide(text[begin]) and found[last][1] == begin:
            found[last] = (found[last][0], end)
    return found


def _free(units: dict[int, Range], taken: Sequence[Range]) -> dict[int, Range]:
    return {n: (begin, end) for n, (begin, end) in units.items() if not any(begin < e and end > b for b, e in taken)}


def insert(links: Links, gap: int, text: str, spaced: tuple[bool, bool]) -> tuple[Range, str]:
    """What to write, and instead of which characters, so that `text` stands in a gap of the translation.

    `spaced` says on which sides there is to be white space, where there is a word to be kept off.
    """
    target = links.target
    begin = links.right[gap - 1][1] if gap else 0
    end = links.right[gap][0] if gap < len(links.right) else len(target)
    if gap == 0:
        return (0, 0), text + (" " if spaced[1] and target else "")
    if gap == len(links.right):
        return (len(target), len(target)), (" " if spaced[0] else "") + text
    closes = target[end] in CLOSING
    if begin == end:
        return (begin, end), (" " if spaced[0] else "") + text + (" " if spaced[1] and not closes else "")
    if not spaced[0]:
        return (begin, begin), text
    if not spaced[1] or closes:
        return (end, end), text + (" " if spaced[1] else "")
    return (begin, begin), " " + text


def begins_of(pieces: Sequence[str], mark: str) -> list[int]:
    """Where each SentencePiece piece begins in the text of them all, the space that `mark` stands for not counted.

    A character that is spelt in bytes begins with the first of them.
    """
    begins, place = [], 0
    for number, piece in enumerate(pieces):
        if byte := _BYTE.fullmatch(piece):
            begins.append(place)
            place += not 0x80 <= int(byte[1], 16) < 0xC0
        else:
            space = piece.startswith(mark)
            begins.append(place + (space and number > 0))
            place += len(piece) - (space and number == 0)
    return begins
