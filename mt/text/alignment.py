"""Alignment of a translation to its source by the attention of a model."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Range = tuple[int, int]
# A character range of a source and the character range of its translation
Link = tuple[Range, Range]
# Characters of the scripts that have no spaces between words, as the inside of a character class of `re`
WIDE = "\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
# Characters that stand for the empty elements of markup that are words, as the inside of a character class of `re`
OBJECTS = "\U000f0000-\U000f0fff"
_OBJECTS = re.compile(f" ?[{OBJECTS}]")

_UNIT = re.compile(rf"[{WIDE}]|(?![{WIDE}])\w(?:[^\s{WIDE}]*(?![{WIDE}])\w)?|[^\w\s{WIDE}]+")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_IS_WIDE = re.compile(f"[{WIDE}]")
# Punctuation that follows a word without a space
CLOSING = frozenset(".,;:!?)]}»”’…。、，；：！？）")
_OPENING = frozenset("([{«„“‘¿¡（")


def without_objects(text: str) -> str:
    """Return a text without the characters of OBJECTS and the spaces before them, as a person should see it."""
    return text if text.isascii() else _OBJECTS.sub("", text).strip()


def has_text(text: str) -> bool:
    return any(map(str.isalnum, text))


def is_wide(character: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return _IS_WIDE.match(character) is not None


def is_in_word(character: str) -> bool:
    """Return whether a character is a letter or digit of a script with spaces between words."""
    return character.isalnum() and not is_wide(character)


@dataclass(frozen=True)
class PieceAttention:
    """Attention between the S pieces of a source text and the T pieces of its translation.

    `source` [S] and `target` [T] hold the character offset at which each piece begins; `weights` is [T][S].
    """

    source: Sequence[int]
    target: Sequence[int]
    weights: ArrayLike


class UnitLinks:
    """Link weights between the units of source and target.

    A unit is a word, a run of punctuation, or one character of a script without spaces between words.
    """

    def __init__(self, source: str, target: str, attention: PieceAttention, undivided: Sequence[Range] = ()) -> None:
        """Find the units, and compute link weights from the attention between the pieces of the units.

        Each range of the target in `undivided`, which are sorted, is one unit.
        """
        self.source, self.target = source, target
        self.left, self.right = _units(source), _units(target, undivided)
        self._begins, self._ends = [begin for begin, _ in self.left], [end for _, end in self.left]
        self._weights = self._by_units(attention)
        self._sums = np.zeros((len(self.right), len(self.left) + 1))
        np.cumsum(self._weights, 1, out=self._sums[:, 1:])

    def gap(self, place: int) -> int:
        """Return the gap of the target at which to insert a text that was removed from the source at offset `place`.

        Gap g is the position after the first g target units. A link crosses the gap if its source unit is before
        `place` and its target unit after the gap, or vice versa. The chosen gap minimizes c - b - a: c is the sum of
        the weights of all crossing links, b and a are those of the links between the units before `place` and the gap,
        and after them. Gaps at which `_may_part` is false are skipped.
        """
        before, units = bisect_right(self._ends, place), len(self.right)
        if before == 0 or not units:
            return 0
        if before == len(self.left):
            return units
        follows = self.source[self.left[before][0]]
        across = self._sums[:, -1] - 2 * self._sums[:, before]  # change if one more target unit is before the gap
        crossed = np.full(units + 1, self._sums[:, before].sum())  # gap 0 is before all target units
        crossed[1:] += across.cumsum()
        near = np.zeros(units + 1)
        near[1:] += self._weights[:, before - 1]
        near[:-1] += self._weights[:, before]
        best_first = np.argsort(crossed - near, kind="stable").tolist()
        return next((at for at in best_first if self._may_insert(at, follows)), 0)

    def weights_from(self, source: Range) -> list[float]:
        """Return, for each target unit, the sum of the weights of its links to the source units in `source`.

        A source unit counts if it overlaps the character range `source`.
        """
        first, last = bisect_right(self._ends, source[0]), bisect_left(self._begins, source[1])
        sums: list[float] = self._weights[:, first:last].sum(1).tolist()
        return sums

    def translation_of(self, first: int, last: int) -> Range | None:
        """Return the range of the target that translates the source units from `first` to `last - 1`.

        Return None if no target unit translates them, or if more than a third of the target units in the range
        translate other source units.
        """
        if first >= last or not len(self.right):
            return None
        strongest = self._weights.argmax(1)
        units = np.flatnonzero((strongest >= first) & (strongest < last)).tolist()
        if not units or 3 * len(units) < 2 * (units[-1] - units[0] + 1):
            return None
        return self.right[units[0]][0], self.right[units[-1]][1]

    def strongest(self, right: int, among: Sequence[int]) -> int | None:
        """Return the source unit in `among` with the largest link weight to target unit `right`.

        Return None if all these weights are 0, or if `among` is empty.
        """
        row = self._weights[right, among]
        best = int(row.argmax()) if among else 0
        return among[best] if among and row[best] > 0 else None

    def _may_insert(self, at: int, follows: str) -> bool:
        """Return whether text may be inserted before target unit `at`.

        `follows` is the source character after the removed text. No text is inserted before a unit that begins with a
        character in CLOSING, unless the unit is the last one, or `follows` is in CLOSING, too. No text is inserted
        after the punctuation that ends the translation, or after an opening bracket or quotation mark.
        """
        last = len(self.right) - 1
        closes = [number <= last and self.target[self.right[number][0]] in CLOSING for number in (at, last)]
        if closes[0] and at < last and follows not in CLOSING:
            return False
        if at > last and closes[1] and last:
            return False
        return not (at and self.target[self.right[at - 1][1] - 1] in _OPENING)

    def _by_units(self, attention: PieceAttention) -> NDArray[np.float64]:
        """Return the link weights [target unit][source unit]. The weights of a target unit sum to 1, or are all 0."""
        rows = np.zeros((len(self.right), len(self.left)))
        if rows.size:
            lefts = np.array(_units_of(attention.source, self.left, self.source))
            rights = np.array(_units_of(attention.target, self.right, self.target))
            np.add.at(rows, (rights[:, None], lefts), np.asarray(attention.weights, np.float64))
        totals = rows.sum(1, keepdims=True)
        np.divide(rows, totals, out=rows, where=totals != 0)
        return rows


def _units(text: str, undivided: Sequence[Range] = ()) -> list[Range]:
    between = ranges_between(undivided, len(text))
    return sorted([*undivided, *(unit.span() for limits in between for unit in _UNIT.finditer(text, *limits))])


def ranges_between(ranges: Sequence[Range], length: int) -> Iterator[Range]:
    """Yield the range before, between and after sorted `ranges` of a text of `length` characters."""
    edges = [0, *(place for begin_and_end in ranges for place in begin_and_end), length]
    return zip(edges[::2], edges[1::2], strict=True)


def shift(place: Range, offset: int) -> Range:
    return place[0] + offset, place[1] + offset


def find_words(words: str, text: str) -> list[Range]:
    """Return the ranges of a text, from word to word, that are equal to `words`. Empty words do not occur."""
    return [match.span() for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text)] if words else []


def with_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with edits (begin, end, new text), which must be in order and without overlaps."""
    parts, done = list[str](), 0
    for begin, end, new in edits:
        parts += [text[done:begin], new]
        done = end
    return "".join([*parts, text[done:]])


def _units_of(begins: Sequence[int], units: Sequence[Range], text: str) -> list[int]:
    """Return, for each piece, the index of the unit to which the piece belongs.

    This is the unit that contains the first character of the piece, or the next unit if the piece begins between two
    units. A piece that covers punctuation and a word belongs to the word. If there are no units, the list is empty.
    """
    if not units:
        return []
    ends = [end for _, end in units]
    numbers: list[int] = []
    for begin, stop in pairwise([*begins, len(text)]):
        unit = min(bisect_right(ends, begin), len(units) - 1)
        word = unit
        while word + 1 < len(units) and units[word + 1][0] < stop and not text[units[word][0]].isalnum():
            word += 1
        numbers.append(word if text[units[word][0]].isalnum() else unit)
    return numbers


def link_words(source: str, target: str, attention: PieceAttention, known: Sequence[Link] = ()) -> list[Link]:
    """Link each target word to the source word with the largest weight, and punctuation to punctuation.

    The links are sorted by target range. They include the links of `known`. A unit that overlaps a known link gets no
    other link. In scripts without spaces, a piece counts as a word.
    """
    units = UnitLinks(source, target, attention)
    lefts, rights = (
        _free(_merge_units(ranges, _units_of(begins, ranges, text), text), [link[side] for link in known])
        for side, (ranges, begins, text) in enumerate(
            [(units.left, attention.source, source), (units.right, attention.target, target)]
        )
    )
    kinds: dict[bool, list[int]] = {True: [], False: []}  # source units: words, and others
    for left, (begin, _) in lefts.items():
        kinds[source[begin].isalnum()].append(left)
    links = list(known)
    for right, target_range in rights.items():
        strongest = units.strongest(right, kinds[target[target_range[0]].isalnum()])
        if strongest is not None:
            links.append((lefts[strongest], target_range))
    return sorted(links, key=lambda link: (link[1], link[0]))


def _merge_units(units: Sequence[Range], numbers: Sequence[int], text: str) -> dict[int, Range]:
    """Map the index of each unit that has a piece to the range of the unit.

    `numbers` contains, for each piece, the index of the unit of the piece. A unit without a piece is omitted. In a
    script without spaces, its range is added to the range of the unit directly before it.
    """
    begins = set(numbers)
    merged: dict[int, Range] = {}
    last = None
    for number, (begin, end) in enumerate(units):
        if number in begins:
            last = number
            merged[number] = (begin, end)
        elif last is not None and is_wide(text[begin]) and merged[last][1] == begin:
            merged[last] = (merged[last][0], end)
    return merged


def _free(units: dict[int, Range], taken: Sequence[Range]) -> dict[int, Range]:
    return {n: (begin, end) for n, (begin, end) in units.items() if not any(begin < e and end > b for b, e in taken)}


def insertion(links: UnitLinks, gap: int, text: str, spaces_around: tuple[bool, bool]) -> tuple[Range, str]:
    """Return the edit (range to replace, replacement) that puts `text` into a gap of the translation.

    `gap` is a result of `UnitLinks.gap`. The two values of `spaces_around` tell whether white space separates `text`
    from the word before and from the word after.
    """
    target = links.target
    begin = links.right[gap - 1][1] if gap else 0
    end = links.right[gap][0] if gap < len(links.right) else len(target)
    if gap == 0:
        return (0, 0), text + (" " if spaces_around[1] and target else "")
    if gap == len(links.right):
        return (len(target), len(target)), (" " if spaces_around[0] else "") + text
    closes = target[end] in CLOSING
    if begin == end:
        return (begin, end), (" " if spaces_around[0] else "") + text + (" " if spaces_around[1] and not closes else "")
    if not spaces_around[0]:
        return (begin, begin), text
    if not spaces_around[1] or closes:
        return (end, end), text + (" " if spaces_around[1] else "")
    return (begin, begin), " " + text


def piece_offsets(pieces: Sequence[str], mark: str) -> list[int]:
    """Return the character offset of each SentencePiece piece in the text that the pieces encode.

    `mark` is the character for a space in pieces; a space before the first piece is not part of the text. A character
    that several byte pieces encode begins at the first of them.
    """
    begins, place = [], 0
    for number, piece in enumerate(pieces):
        if piece[0] == "<" and (byte := _BYTE.fullmatch(piece)):
            begins.append(place)
            place += not 0x80 <= int(byte[1], 16) < 0xC0
        else:
            space = piece.startswith(mark)
            begins.append(place + (space and number > 0))
            place += len(piece) - (space and number == 0)
    return begins


def with_marks(links: Sequence[Link], sources: Sequence[Range], targets: Sequence[Range]) -> tuple[Link, ...]:
    """Return links with one link for each range of `sources`: to that of `targets` to which most words are linked.

    Other links from or to the ranges are left out. If two ranges have most words in the same one, or all ranges touch,
    order decides. All links stay if there are no ranges of both texts.
    """
    if not (sources and targets):
        return tuple(links)
    places = [(_number_of(left, sources), _number_of(right, targets)) for left, right in links]
    votes = Counter(place for place in places if min(place) >= 0)
    chosen = {source: target for (source, target), _ in reversed(votes.most_common())}
    are_lines = all(before[1] == after[0] for before, after in pairwise(sources))
    if are_lines or sorted(chosen.values()) != list(range(len(targets))):
        chosen = {number: number for number in range(len(targets))}
    others = (link for link, place in zip(links, places, strict=True) if max(place) < 0)
    return *((sources[source], targets[target]) for source, target in chosen.items()), *others


def _number_of(place: Range, ranges: Sequence[Range]) -> int:
    """Return the number of the range in which a place begins, or -1."""
    number = bisect_right(ranges, place[0], key=lambda one: one[0]) - 1
    return number if number >= 0 and place[0] < ranges[number][1] else -1


def split_ranges(ranges: Sequence[Range], parts: Sequence[str]) -> list[tuple[Range, ...]]:
    """Divide ranges of a text among the consecutive parts of the text.

    Return, for each part, its ranges, as offsets from its beginning. A range that extends over several is divided.
    """
    if not ranges:
        return [()] * len(parts)
    ranges_of: list[list[Range]] = [[] for _ in parts]
    ends = list(accumulate(map(len, parts)))
    for begin, end in ranges:
        for number in range(bisect_right(ends, begin), len(parts)):
            offset = ends[number] - len(parts[number])
            if offset >= end:
                break
            overlap = max(begin, offset) - offset, min(end, ends[number]) - offset
            if overlap[0] < overlap[1]:
                ranges_of[number].append(overlap)
    return list(map(tuple, ranges_of))
