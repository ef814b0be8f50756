"""A source and its translation as words and punctuation marks, and which of them translate each other."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Range = tuple[int, int]
Link = tuple[Range, Range]
"""Character ranges of source and target that translate each other."""

_TOKEN = re.compile(r"\S+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff65]"
)
_PUNCTUATION = frozenset(".,;:!?…'\"·¡¿、。，；：！？،؛؟।")
_QUOTES = frozenset("\"'„“”«»‹›‚‘’「」『』")
_ALIKE = {"。": ".", "、": ",", "…": ".", "–": "-", "—": "-", "،": ",", "؛": ";", "؟": "?", "।": "."}


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, or a single mark of punctuation, at `text[begin:end]`."""

    begin: int
    end: int
    word: bool


def units(text: str, cuts: Collection[int] = ()) -> list[Unit]:
    """The units of a text; words are cut at given characters too, and in scripts without spaces at each character."""
    places = sorted(cuts)
    found: list[Unit] = []
    for token in _TOKEN.finditer(text):
        begin, end = token.span()
        borders = {begin, end, *places[bisect_right(places, begin) : bisect_left(places, end)]}
        for unspaced in _UNSPACED.finditer(text, begin, end):
            borders |= set(unspaced.span())
        ordered = sorted(at for at in borders if at in (begin, end) or unicodedata.category(text[at])[0] != "M")
        for left, right in pairwise(ordered):
            found += _stripped(text, left, right)
    return found


def punctuation_kind(character: str) -> str:
    """What marks of punctuation have in common that do the same in different languages; empty for other characters."""
    if character in _QUOTES:
        return '"'
    category = unicodedata.category(character)
    if category in ("Ps", "Pe", "Pi", "Pf"):
        return category
    if character in _PUNCTUATION or category == "Pd":
        return _ALIKE.get(character) or unicodedata.normalize("NFKC", character)
    return ""


class Matching:
    """Units of both sides: `towards[i]` are the target units that source unit i is aligned to, `back` the other way."""

    def __init__(self, source: str, target: str, alignment: Sequence[Link], cuts: Collection[int]) -> None:
        """`cuts` are characters of the source at which its words are cut.

        Words that the alignment leaves out and that stand on both sides, once, are aligned to each other; and a word
        that was carried across as it is, is aligned part by part.
        """
        self.source, self.target = source, target
        links = [*alignment, *_copied(source, target, alignment)]
        links = [part for link in links for part in _parts(source, target, link, sorted(cuts))]
        self.left = units(source, {place for link in links for place in link[0]} | set(cuts))
        self.right = units(target, {place for link in links for place in link[1]})
        self.towards: list[set[int]] = [set() for _ in self.left]
        self.back: list[set[int]] = [set() for _ in self.right]
        sides = [([unit.begin for unit in side], [unit.end for unit in side]) for side in (self.left, self.right)]
        self._begins, self._ends = sides[0]
        for here, there in links:
            lefts = [i for i in _overlapping(*sides[0], here) if self.left[i].word]
            rights = [j for j in _overlapping(*sides[1], there) if self.right[j].word]
            for i in lefts:
                self.towards[i].update(rights)
            for j in rights:
                self.back[j].update(lefts)

    def covered(self, begin: int, end: int) -> range:
        """The source units within characters."""
        return _overlapping(self._begins, self._ends, (begin, end))

    def words(self, begin: int, end: int) -> list[int]:
        """Those of them that are words."""
        return [i for i in self.covered(begin, end) if self.left[i].word]

    def aligned(self, source_units: Collection[int], room: range) -> list[int]:
        """The target units of a room that some source units are aligned to, in order."""
        return sorted({j for i in source_units for j in self.towards[i] if j in room})

    def characters(self, span: range) -> Range:
        """Target units as characters."""
        if not span:
            at = self.right[span.start].begin if span.start < len(self.right) else len(self.target)
            return at, at
        return self.right[span.start].begin, self.right[span.stop - 1].end

    def kind(self, unit: int) -> str:
        """Of punctuation in the target; empty for a word."""
        found = self.right[unit]
        return "" if found.word else punctuation_kind(self.target[found.begin])

    def kinds(self, begin: int, end: int) -> set[str]:
        """Of punctuation in the source, between characters."""
        return {punctuation_kind(character) for character in self.source[begin:end]} - {""}


def _stripped(text: str, begin: int, end: int) -> Iterator[Unit]:
    """A word without the punctuation around it, and that."""
    first, last = begin, end
    while first < last and punctuation_kind(text[first]):
        first += 1
    while last > first and punctuation_kind(text[last - 1]):
        last -= 1
    yield from (Unit(place, place + 1, word=False) for place in range(begin, first))
    if first < last:
        yield Unit(first, last, word=True)
    yield from (Unit(place, place + 1, word=False) for place in range(last, end))


def _overlapping(begins: Sequence[int], ends: Sequence[int], place: Range) -> range:
    """The numbers of ranges, given in order, that overlap one."""
    begin, end = place
    return range(bisect_right(ends, begin), bisect_left(begins, end)) if begin < end else range(0)


def _copied(source: str, target: str, alignment: Sequence[Link]) -> Iterator[Link]:
    """Links between words that are the same on both sides; short words in lower case are so by chance."""
    sides = [[unit for unit in units(text) if unit.word] for text in (source, target)]
    bare = [
        [unit for unit, taken in zip(side, _taken(side, [link[number] for link in alignment]), strict=True) if not taken]
        for number, side in enumerate(sides)
    ]
    counts = [
        Counter(text[u.begin : u.end] for u in side) for text, side in zip((source, target), sides, strict=True)
    ]
    where = {target[unit.begin : unit.end]: unit for unit in bare[1]}
    for unit in bare[0]:
        word = source[unit.begin : unit.end]
        if counts[0][word] == counts[1][word] == 1 and word in where and (len(word) > 3 or not word.islower()):
            yield (unit.begin, unit.end), (where[word].begin, where[word].end)


def _taken(side: Sequence[Unit], ranges: Sequence[Range]) -> list[bool]:
    """Whether each unit overlaps one of the ranges."""
    found = [False] * len(side)
    begins, ends = [unit.begin for unit in side], [unit.end for unit in side]
    for each in ranges:
        for i in _overlapping(begins, ends, each):
            found[i] = True
    return found


def _parts(source: str, target: str, link: Link, cuts: Sequence[int]) -> list[Link]:
    """A link of a word that was carried across, cut where the word is cut; or the link."""
    (a, b), (c, d) = link
    words = [unit for unit in units(source[a:b]) if unit.word]
    inside = cuts[bisect_right(cuts, a) : bisect_left(cuts, b)]
    if not inside or len(words) != 1:
        return [link]
    begin, end = a + words[0].begin, a + words[0].end
    there = target.find(source[begin:end], c, d)
    borders = [begin, *(cut for cut in inside if begin < cut < end), end]
    if there < 0 or len(borders) == 2:
        return [link]
    shift = there - begin
    return [((left, right), (left + shift, right + shift)) for left, right in pairwise(borders)]
