"""A source and its translation as words and punctuation marks, and which of them translate each other."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

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

        Words that stand on both sides once, and were surely carried across, are aligned to each other, part by part.
        A word without a partner takes one from a neighbour that has several: aligners that look for the source of each
        target word give articles and prepositions to the noun.
        """
        self.source, self.target = source, target
        links = _with_copies(source, target, alignment)
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
        words = [i for i, unit in enumerate(self.left) if unit.word]
        self._rank = [0, *accumulate(unit.word for unit in self.right)]  # words before each unit
        for before, after in pairwise(reversed(words)):
            self._share(after, before, first=True)
        for before, after in pairwise(words):
            self._share(after, before, first=False)

    def _share(self, lonely: int, neighbour: int, first: bool) -> None:
        """Gives a source word without a partner the first, or the last, of its neighbour's that stand in a row."""
        if self.towards[lonely] or len(self.towards[neighbour]) < 2:
            return
        own = {self._rank[j]: j for j in self.towards[neighbour] if self.back[j] == {neighbour}}
        step = 1 if first else -1
        edges = [own[k] for k in sorted(own, reverse=not first) if k + step in own and k - step not in own]
        if edges:
            self.towards[neighbour].remove(edges[0])
            self.towards[lonely] = {edges[0]}
            self.back[edges[0]] = {lonely}

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


def _with_copies(source: str, target: str, alignment: Sequence[Link]) -> list[Link]:
    """An alignment with links between words that stand once on both sides.

    Numbers, addresses and the like overrule the alignment; other words only fill its gaps, if they are so long, or
    written in such a way, that they are not the same by chance.
    """
    places = [{text[u.begin : u.end]: (u.begin, u.end) for u in units(text) if u.word} for text in (source, target)]
    counts = [Counter(text[u.begin : u.end] for u in units(text) if u.word) for text in (source, target)]
    shared = [word for word in places[0] if counts[0][word] == counts[1][word] == 1]
    taken = (bytearray(len(source)), bytearray(len(target)))
    links = [(places[0][word], places[1][word]) for word in shared if not word.isalpha()]
    for link in links:
        _take(taken, link)
    kept = [link for link in alignment if not _is_taken(taken, link)]
    for link in kept:
        _take(taken, link)
    telling = (word for word in shared if word.isalpha() and (len(word) > 3 or not word.islower()))
    gaps = ((places[0][word], places[1][word]) for word in telling)
    return [*kept, *links, *(link for link in gaps if not _is_taken(taken, link))]


def _take(taken: tuple[bytearray, bytearray], link: Link) -> None:
    for side, (begin, end) in zip(taken, link, strict=True):
        side[begin:end] = b"\1" * (min(end, len(side)) - min(begin, len(side)))


def _is_taken(taken: tuple[bytearray, bytearray], link: Link) -> bool:
    return any(any(side[begin:end]) for side, (begin, end) in zip(taken, link, strict=True))


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
