"""Units of a source and its translation, and the alignment of words. A unit is a word or a punctuation character."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from mt.text.alignment import OBJECTS, Link, Range
from mt.text.markup.copies import with_copies
from mt.text.markup.marks import Mark

_TOKEN = re.compile(r"\S+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff65"
    f"{OBJECTS}]"
)
_NUMBER = re.compile(r"\d+")
_STEM = re.compile(r"\d+|[IVXLC]+|Mm?|[DNn]|St")  # of an ordinal number, a title or another short form
_ENDING = re.compile(r"(?:st|[nr]d|th|er|res?|(?:i?[èe]m)?es?|m?es?|l?les?|[dor]s?|gr)(?!\w)")
_PLACEHOLDER = re.compile(r"\{{1,3}[^{}\n]{1,100}\}{1,3}|\$t\([^()\n]{1,99}\)")
_PUNCTUATION = frozenset(".,;:!?…'\"·¡¿、。，；：！？،؛؟।|¦•→")
_QUOTES = frozenset("\"'„“”«»‹›‚‘’「」『』")
_ALIKE = {"。": ".", "、": ",", "…": ".", "–": "-", "—": "-", "،": ",", "؛": ";", "؟": "?", "।": "."}


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A word, or a punctuation character, at `text[begin:end]`."""

    begin: int
    end: int
    word: bool


def find_units(text: str, cuts: Collection[int] = ()) -> list[TextUnit]:
    """Return the units of a text. Words are cut at the offsets `cuts`.

    In scripts without spaces between words, each character is a word.
    """
    places = sorted(cuts)
    units: list[TextUnit] = []
    for token in _TOKEN.finditer(text):
        begin, end = token.span()
        borders = {begin, end, *places[bisect_right(places, begin) : bisect_left(places, end)]}
        for unspaced in _UNSPACED.finditer(text, begin, end):
            borders |= set(unspaced.span())
        ordered = sorted(at for at in borders if at in (begin, end) or unicodedata.category(text[at])[0] != "M")
        for left, right in pairwise(ordered):
            units += _split_punctuation(text, left, right)
    return units


def _units_of_target(text: str, cuts: Collection[int]) -> list[TextUnit]:
    """Return the units of a text with one unit for each placeholder, inside which no mark begins."""
    placeholders = [match.span() for match in _PLACEHOLDER.finditer(text)]
    units = find_units(text, {*cuts, *(place for placeholder in placeholders for place in placeholder)})
    begins, ends = [unit.begin for unit in units], [unit.end for unit in units]
    for placeholder in reversed(placeholders):
        inside = _overlapping(begins, ends, placeholder)
        if len(inside) > 1:
            units[inside.start : inside.stop] = [TextUnit(begins[inside[0]], ends[inside[-1]], word=True)]
    return units


MAX_RUN = 50  # punctuation characters beside a word that are examined for one mark, for linear time
MAX_PAIRS = 400  # pairs of units in one link; in a link of more units, only some of the pairs are aligned


def punctuation_kind(character: str) -> str:
    """Return a string that is the same for equivalent punctuation of all languages, or "" for other characters."""
    if character in _QUOTES:
        return '"'
    category = unicodedata.category(character)
    if category in ("Ps", "Pe", "Pi", "Pf"):
        return category
    if character in _PUNCTUATION or category == "Pd":
        return _ALIKE.get(character) or unicodedata.normalize("NFKC", character)
    return ""


class UnitAlignment:
    """Alignment of the units of a source and a target.

    `left` are the units of the source, and `right` those of the target. `towards[i]` contains the target units that are
    aligned to source unit i, and `back[j]` the source units that are aligned to target unit j.
    """

    def __init__(self, source: str, target: str, alignment: Sequence[Link], cuts: Collection[int]) -> None:
        """Find the units of both texts and align them. Words of the source are cut at the offsets `cuts`.

        Words that were evidently copied are aligned to their copies (`with_copies`).
        """
        self.source, self.target = source, target
        places = [[(unit.begin, unit.end) for unit in find_units(text) if unit.word] for text in (source, target)]
        links = with_copies(source, target, alignment, places)
        links = [part for link in links for part in _parts(source, target, link, sorted(cuts))]
        self.left = find_units(source, {place for link in links for place in link[0]} | set(cuts))
        self.right = _units_of_target(target, {place for link in links for place in link[1]})
        self.towards: list[set[int]] = [set() for _ in self.left]
        self.back: list[set[int]] = [set() for _ in self.right]
        sides = [([unit.begin for unit in side], [unit.end for unit in side]) for side in (self.left, self.right)]
        self._begins, self._ends = sides[0]
        for source_range, target_range in links:
            source_units = [i for i in _overlapping(*sides[0], source_range) if self.left[i].word]
            target_units = [j for j in _overlapping(*sides[1], target_range) if self.right[j].word]
            for i, j in _pairs(source_units, target_units):
                self.towards[i].add(j)
                self.back[j].add(i)

    def translated_stem(self, begin: int, allowed: range) -> int | None:
        """Return the last target unit in `allowed` for the stem of a short form whose ending begins at offset `begin`.

        The ending is that of `5<sup>th</sup>` or `M<sup>me</sup>`. None: there is no ending, or no aligned stem.
        """
        stems = self.covered(begin - 1, begin) if begin else ()
        is_stem = stems and _STEM.fullmatch(self.source, self.left[stems[0]].begin, begin)
        aligned = self.aligned(stems, allowed) if is_stem and _ENDING.match(self.source, begin) else ()
        return aligned[-1] if aligned else None

    def covered(self, begin: int, end: int) -> range:
        """Return the source units that overlap the character range from `begin` to `end`."""
        return _overlapping(self._begins, self._ends, (begin, end))

    def words(self, begin: int, end: int) -> list[int]:
        """Return the source words that overlap the character range from `begin` to `end`."""
        return [i for i in self.covered(begin, end) if self.left[i].word]

    def aligned(self, source_units: Collection[int], allowed: range) -> list[int]:
        """Return the target units in `allowed` that are aligned to any of `source_units`, in order."""
        return sorted({j for i in source_units for j in self.towards[i] if j in allowed})

    def characters(self, span: range) -> Range:
        """Return the character range of the target units in `span`. It is empty if `span` is empty."""
        if not span:
            at = self.right[span.start].begin if span.start < len(self.right) else len(self.target)
            return at, at
        return self.right[span.start].begin, self.right[span.stop - 1].end

    def kind(self, unit: int) -> str:
        """Return the `punctuation_kind` of target unit `unit`, or "" for a word."""
        right = self.right[unit]
        return "" if right.word else punctuation_kind(self.target[right.begin])

    def kinds(self, begin: int, end: int) -> set[str]:
        """Return the kinds of punctuation between two source offsets. At most MAX_RUN characters are examined."""
        return {punctuation_kind(character) for character in self.source[begin : min(end, begin + MAX_RUN)]} - {""}

    def farthest_punctuation(
        self, unit: int, step: int, kinds: set[str], allowed: range, unused: set[int] | range
    ) -> int:
        """Walk from `unit` over the punctuation beside it. Return the last unit found whose kind is in `kinds`.

        Punctuation of other kinds is skipped. If no unit is found, return `unit`. `step` is 1 or -1. The walk ends at
        the first word, at the first unit outside of `allowed` or `unused`, and after MAX_RUN units.
        """
        reached = unit
        for at in range(unit + step, unit + step * (MAX_RUN + 1), step):
            if at not in allowed or at not in unused or self.right[at].word:
                break
            reached = at if self.kind(at) in kinds else reached
        return reached


def _pairs(source_units: Sequence[int], target_units: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield all pairs of a unit of `source_units` and a unit of `target_units`.

    If there are more than MAX_PAIRS pairs, yield only pairs of units at the same relative position.
    """
    if len(source_units) * len(target_units) <= MAX_PAIRS:
        yield from product(source_units, target_units)
        return
    longest = max(len(source_units), len(target_units))
    for k in range(longest):
        yield source_units[k * len(source_units) // longest], target_units[k * len(target_units) // longest]


def _split_punctuation(text: str, begin: int, end: int) -> Iterator[TextUnit]:
    first, last = begin, end
    while first < last and punctuation_kind(text[first]):
        first += 1
    while last > first and punctuation_kind(text[last - 1]):
        last -= 1
    yield from (TextUnit(place, place + 1, word=False) for place in range(begin, first))
    if first < last:
        yield TextUnit(first, last, word=True)
    yield from (TextUnit(place, place + 1, word=False) for place in range(last, end))


def _overlapping(begins: Sequence[int], ends: Sequence[int], place: Range) -> range:
    begin, end = place
    return range(bisect_right(ends, begin), bisect_left(begins, end)) if begin < end else range(0)


def _parts(source: str, target: str, link: Link, cuts: Sequence[int]) -> list[Link]:
    """Split the link of a word that is cut at the offsets `cuts` into one link for each part of the word.

    Return `[link]` if the source range is not one word that is cut, or the target range has no copy of it. The stem and
    the ending of a short form, such as `5th` and `Mme`, need no copy (`_parts_with_ending`).
    """
    (a, b), (c, d) = link
    words = [unit for unit in find_units(source[a:b]) if unit.word]
    inside = cuts[bisect_right(cuts, a) : bisect_left(cuts, b)]
    if not inside or len(words) != 1:
        return [link]
    begin, end = a + words[0].begin, a + words[0].end
    stem = _STEM.fullmatch(source, begin, inside[0]) if len(inside) == 1 else None
    if stem and (stem[0].isdecimal() or _ENDING.fullmatch(source, stem.end(), end)):
        return _parts_with_ending(target, link, stem)
    copy = target.find(source[begin:end], c, d)
    borders = [begin, *(cut for cut in inside if begin < cut < end), end]
    if copy < 0 or len(borders) == 2:
        return [link]
    shift = copy - begin
    return [((left, right), (left + shift, right + shift)) for left, right in pairwise(borders)]


def _parts_with_ending(target: str, link: Link, stem: re.Match[str]) -> list[Link]:
    """Return the links of the stem and of the ending of a word, such as `5th`, of which `link` is the link.

    The ending has a link only if the target has a number with an ending there: `5e`, but not `5.` or `Mrs`.
    """
    (_, end), (c, d) = link
    number = _NUMBER.match(target, c, d)
    if stem[0].isdecimal() and (number[0] != stem[0] if number else stem[0] in target):
        return []
    if not number:
        return [(stem.span(), (c, d))]
    endings = [((stem.end(), end), (number.end(), d))] if number.end() < d else []
    return [(stem.span(), number.span()), *endings]


def in_proportion(source: str, marks: Sequence[Mark], target: str) -> list[Range]:
    """Return the target range of each mark, at the same relative position as in the source.

    The ends of the ranges are at the borders of words.
    """
    words = [unit for unit in find_units(target) if unit.word]

    def place(at: int, closing: bool) -> int:
        number = round(at / max(1, len(source)) * len(words))
        if closing:
            return words[number - 1].end if number else (words[0].begin if words else 0)
        return words[number].begin if number < len(words) else (words[-1].end if words else 0)

    places = []
    for mark in marks:
        begin = place(mark.begin, closing=False)
        places.append((begin, begin if mark.kept or mark.empty else max(begin, place(mark.end, closing=True))))
    return places
