"""Placement of the marks of a source text, such as inline tags, in its translation.

A mark around words encloses the target words that are aligned to these words, as one range. An empty mark precedes the
target word that is aligned to the next source word. Nested marks stay nested, and no marks cross. A mark without
aligned words is placed between its neighbours, or at the same relative position. Punctuation is inside a mark of the
translation only if it is inside the mark of the source: the comma of `<b>here</b>,` stays outside.

A unit is a word or a punctuation character. Units and marks are identified by their indices. In all functions,
`allowed` contains the target units that a mark may enclose: all units, or the units that its parent encloses. `unused`
contains the units of `allowed` that no mark with the same parent encloses yet.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import inf

from mt.text.alignment import Link, Range, find_words
from mt.text.markup.marks import Mark, MarkedPiece, Segment, TranslatedSegment, children_of, interleave
from mt.text.markup.units import MAX_RUN, UnitAlignment, in_proportion

_REQUEST = re.compile(r"[a-zäöüß]{2}n \Z")
_ADDRESSED = re.compile(r"(?i)\b(?:you|vous|they|them|she|her|ils|elles?)\b")
_ARTICLE = re.compile(r"an?|and|d(?:as|e[mnrs]|ie)|eine?[mnrs]?|et|l(?:a|es?)|o[ru]|oder|the|und|une?")
MAX_WORK = 500_000  # marks * (characters + marks); above this, marks are placed by relative position, in linear time


def place_marks(segment: Segment, translated: TranslatedSegment) -> list[MarkedPiece]:
    """Split a translation into pieces, with the marks of the source between them. Each mark occurs exactly once."""
    source, marks, target = segment.text, segment.marks, translated.text
    if not marks:
        return [MarkedPiece(target)]
    if len(marks) * (len(source) + len(target) + len(marks)) > MAX_WORK:
        return interleave(target, marks, in_proportion(source, marks, target))
    cuts = {place for mark in marks for place in (mark.begin, mark.end)}
    links = [*translated.alignment, *_copies(segment, target)]
    placement = _Placement(marks, UnitAlignment(source, target, links, cuts), translated.alignment)
    placement.place_all()
    places = [placement.places[number] for number in range(len(marks))]
    return interleave(target, marks, list(_in_order(places)) if segment.ordered else places)


def _copies(segment: Segment, target: str) -> Iterator[Link]:
    """Yield a link from each kept mark to its only copy, which may be a part of a compound: `Acme Pro-Benutzer`."""
    for begin, end in segment.kept:
        copies = find_words(segment.text[begin:end], target)
        if len(copies) == 1:
            yield (begin, end), copies[0]


class _Placement:
    """Placement of marks in a translation.

    `places` maps a placed mark to its character range in the target, and `spans` maps a placed non-empty mark to its
    target units.
    """

    def __init__(self, marks: Sequence[Mark], units: UnitAlignment, links: Sequence[Link] = ()) -> None:
        self.marks, self.units, self.links = list(marks), units, dict(links)
        self.places: dict[int, Range] = {}
        self.spans: dict[int, range] = {}

    def place_all(self) -> None:
        for parent, children in sorted(children_of(self.marks).items()):  # parents have smaller numbers
            self._place_spans(parent, [number for number in children if not self.marks[number].empty])
            for number in children:
                if self.marks[number].empty:
                    at = self.empty_place(number)
                    self.places[number] = (at, at)

    def allowed(self, parent: int) -> range:
        """Return the target units that the children of mark `parent` may enclose: all units if `parent` is -1."""
        return range(len(self.units.right)) if parent < 0 else self.spans[parent]

    def outer(self, mark: Mark) -> Range:
        """Return the character range of the parent of `mark` in the source, or the range of the whole source."""
        if mark.parent < 0:
            return 0, len(self.units.source)
        return self.marks[mark.parent].begin, self.marks[mark.parent].end

    def _place_spans(self, parent: int, numbers: Sequence[int]) -> None:
        """Place the non-empty marks `numbers`, which are the children of mark `parent`.

        First, kept marks with a copy are placed, then marks with aligned words by their scores, and last all others.
        """
        allowed = self.allowed(parent)
        unused = set(allowed)
        scores = {n: best[0] for n in numbers if (best := self.translated(self.marks[n], allowed, unused))}
        last = [number for number in numbers if number not in scores]
        for number in sorted(scores, key=lambda n: -scores[n]):
            mark = self.marks[number]
            if (best := self.translated(mark, allowed, unused)) is None:
                last.append(number)
            else:
                span = best[1] if best[0] == inf else self._with_punctuation(mark, best[1], allowed, unused)
                self._assign(number, span, unused)
        for number in last:
            span = self.place_by_position(self.marks[number], allowed, unused)
            self._assign(number, self._with_punctuation(self.marks[number], span, allowed, unused), unused)

    def _assign(self, number: int, span: range, unused: set[int]) -> None:
        self.spans[number] = span
        self.places[number] = self.units.characters(span)
        if not span and self.units.translated_stem(self.marks[number].begin, range(span.start)) == span.start - 1:
            self.places[number] = (self.units.right[span.start - 1].end,) * 2
        unused.difference_update(span)

    def translated(self, mark: Mark, allowed: range, unused: set[int]) -> tuple[float, range] | None:
        """Return (score, units) of the translation of a mark in `unused`.

        The score is infinite for a copy, and for a range of several words that is linked as a whole.
        """
        words = mark.words(self.units.source)
        whole = self.links.get(words) if any(map(str.isspace, self.units.source[slice(*words)])) else None
        linked = whole and range(*(bisect_left(self.units.right, at, key=lambda unit: unit.begin) for at in whole))
        copy = linked if linked and unused.issuperset(linked) else self._copy(mark, allowed, unused)
        return (inf, copy) if copy else self._best(mark, allowed, unused)

    def _copy(self, mark: Mark, allowed: range, unused: set[int]) -> range | None:
        """Return the target units with the same text as a mark that is kept or a name. None: `unused` has no such copy.

        If there are several copies, choose the one whose relative position is most similar to that of the mark.
        """
        text = self.units.source[mark.begin : mark.end].strip()
        is_copied = mark.kept or (self._is_name(mark) and text in self.units.target)
        if not is_copied or not text or not allowed:
            return None
        begins = {self.units.right[j].begin: j for j in allowed}
        ends = {self.units.right[j].end: j + 1 for j in allowed}
        copies = [
            range(begins[place], ends[place + len(text)])
            for place in _occurrences(_lower(text), self._lower_target)
            if place in begins and place + len(text) in ends
        ]
        expected = self._expected(mark)
        return min(
            (span for span in copies if unused.issuperset(span)),
            key=lambda span: abs(self.units.right[span.start].begin - expected),
            default=None,
        )

    def _is_name(self, mark: Mark) -> bool:
        """Return whether a mark encloses a capital or a number, as in the name of a button, and no other mark."""
        text = self.units.source[mark.begin : mark.end]
        return not mark.kept and len(text) > 2 and not text[0].islower() and mark not in self._parents

    @cached_property
    def _parents(self) -> frozenset[Mark]:
        return frozenset(self.marks[mark.parent] for mark in self.marks if mark.parent >= 0)

    @cached_property
    def _lower_target(self) -> str:
        return _lower(self.units.target)

    def _expected(self, mark: Mark) -> float:
        return mark.begin / max(1, len(self.units.source)) * len(self.units.target)

    def _best(self, mark: Mark, allowed: range, unused: set[int]) -> tuple[float, range] | None:
        """Return (score, range) of the consecutive units in `unused` that best translate the words of a mark.

        Return None if no unit in `unused` is aligned to the mark. The score of a range is the sum of its units' scores:
        +1 if all source words aligned to it are in the mark, -1 if none is, and 0 if it is not aligned. Of ranges with
        the best score, the longest is chosen: it may include one other word between two translations.
        """
        covered = self.units.covered(mark.begin, mark.end)
        inside = [j for j in self.units.aligned(covered, allowed) if j in unused]
        if not inside:
            return None
        inside_units = set(inside)
        weights: dict[int, float] = {}
        best = (-2.0, 0, inside[0])  # (score, number of units, first unit)
        lowest, start, total = 0.0, -1, 0.0  # `lowest` is the smallest prefix sum before a possible first unit
        for j in range(inside[0], inside[-1] + 1):
            if j not in unused:
                start = -1
                continue
            back = self.units.back[j]
            weights[j] = sum(1 if i in covered else -1 for i in back) / max(1, len(back))
            if j in inside_units and (start < 0 or total < lowest):
                lowest, start = total, j
            total += weights[j]
            if j in inside_units:
                best = max(best, (total - lowest, j + 1 - start, start))
        good = [j for j in range(best[2], best[2] + best[1]) if weights[j] > 0] or [best[2], best[2] + best[1] - 1]
        first = good[0] + (len(good) > 1 and self._is_subject(mark, good[0]))
        first = self._label_start(mark, range(first, good[-1] + 1))
        return best[0], self._within_quotes(mark, self._without_articles(covered, range(first, good[-1] + 1)))

    def _without_articles(self, covered: range, span: range) -> range:
        """Return a span without the article beside the mark: attention finds `la <i>jeune</i>` in `the young`."""
        left, right = self.units.left, self.units.right
        for source, target in ((covered.start - 1, span.start), (covered.stop, span.stop - 1)):
            if len(span) < 2 or source not in range(len(left)) or self.units.towards[source]:
                continue
            places = (self.units.source, left[source]), (self.units.target, right[target])
            if all(_ARTICLE.fullmatch(text, unit.begin, unit.end) for text, unit in places):
                span = range(span.start + (target == span.start), span.stop - (target != span.start))
        return span

    def _label_start(self, mark: Mark, span: range) -> int:
        """Return the first unit of a span, or that of its first capital if the mark is a label: `sur <b>Entrée</b>`."""
        if not (
            self.units.source[mark.begin : mark.begin + 1].isupper()
            and len(self.units.covered(mark.begin, mark.end)) == 1
        ):
            return span.start
        begins = (self.units.target[self.units.right[j].begin] for j in span)
        return next((j for j, letter in zip(span, begins, strict=True) if not letter.islower()), span.start)

    def _is_subject(self, mark: Mark, unit: int) -> bool:
        """Return whether a target unit is that of a German request, as in `Lesen Sie <b>das Buch</b>`."""
        right, target = self.units.right, self.units.target
        begin, end = right[unit].begin, right[unit].end
        is_request = target[begin:end] == "Sie" and _REQUEST.search(target, 0, begin)
        return bool(is_request) and _ADDRESSED.search(self.units.source, mark.begin, mark.end) is None

    def _within_quotes(self, mark: Mark, span: range) -> range:
        """Return the units of a span before a quotation mark, which a mark without one does not enclose."""
        if mark.end - mark.begin > MAX_RUN or '"' in self.units.kinds(mark.begin, mark.end):
            return span
        return range(span.start, next((j for j in span if self.units.kind(j) == '"'), span.stop))

    def place_by_position(self, mark: Mark, allowed: range, unused: set[int]) -> range:
        """Return target units for a mark without aligned words, at the relative position of the mark.

        It is relative to the nearest aligned words beside the mark. The range of a kept mark is empty, so that its text
        replaces no word. The ending of a number follows the number.
        """
        right = self.units.right
        words = self.units.words(mark.begin, mark.end)
        if not words:
            return self._place_punctuation(mark, allowed, unused)
        among = self.units.words(*self.outer(mark))
        first, last = among.index(words[0]), among.index(words[-1])
        options = [j for j in allowed if right[j].word]
        if (stem := self.units.translated_stem(mark.begin, allowed)) is not None:  # and no ending
            return range(stem + 1, stem + 1)
        left, low, after, high = self._anchors(among, first, last, allowed)
        between = [j for j in options if low < j < high and not self.units.back[j]]
        if unused.intersection(between) or mark.kept:
            first, last, count = first - left - 1, last - left - 1, after - left - 1
        else:
            between, count = options, len(among)
        scale = len(between) / count
        begin = min(round(first * scale), len(between) - 1)
        if mark.kept or not unused.intersection(between):
            at = between[begin] if between else min(high, allowed.stop)
            return range(at, at)
        chosen = [j for j in between[begin : max(begin + 1, round((last + 1) * scale))] if j in unused]
        chosen = chosen or [min(unused.intersection(between), key=lambda j: abs(j - between[begin]))]
        ends = (a + 1 for a, b in pairwise(chosen) if not unused.issuperset(range(a, b)))
        return range(chosen[0], next(ends, chosen[-1] + 1))

    def _anchors(self, among: Sequence[int], first: int, last: int, allowed: range) -> tuple[int, int, int, int]:
        """Return (before, low, after, high) for the nearest aligned words before and after a mark.

        `among` contains source words, and the words of the mark are `among[first]` to `among[last]`. `before` and
        `after` are the indices in `among` of the nearest aligned words, or -1 and `len(among)`. `low` is the last unit
        in `allowed` that is aligned to the word before, `high` the first that is aligned to the word after, or the unit
        beside `allowed`. If `low` would not be less than `high`, the result is that without any aligned word.
        """
        before = next((k for k in range(first - 1, -1, -1) if self.units.aligned(among[k : k + 1], allowed)), -1)
        after = next(
            (k for k in range(last + 1, len(among)) if self.units.aligned(among[k : k + 1], allowed)), len(among)
        )
        low = self.units.aligned(among[before : before + 1], allowed)[-1] if before >= 0 else allowed.start - 1
        high = self.units.aligned(among[after : after + 1], allowed)[0] if after < len(among) else allowed.stop
        return (before, low, after, high) if low < high else (-1, allowed.start - 1, len(among), allowed.stop)

    def _place_punctuation(self, mark: Mark, allowed: range, unused: set[int]) -> range:
        """Return target units for a mark around punctuation only.

        They are equivalent punctuation in `unused`, near the relative position; none if the mark is kept.
        """
        kinds = self.units.kinds(mark.begin, mark.end)
        same = {j for j in allowed if j in unused and self.units.kind(j) in kinds}
        expected = self._expected(mark)
        if not same or mark.kept:
            at = next((j for j in allowed if self.units.right[j].begin >= expected), allowed.stop)
            return range(at, at)
        begin = min(same, key=lambda j: abs(self.units.right[j].begin - expected))
        end = begin + 1
        while end in same:
            end += 1
        return range(begin, end)

    def _with_punctuation(self, mark: Mark, span: range, allowed: range, unused: set[int]) -> range:
        """Extend `span` by the adjacent punctuation that is equivalent to the punctuation at the ends of `mark`."""
        words = self.units.words(mark.begin, mark.end)
        if not words or not span:
            return span
        leading = self.units.kinds(mark.begin, self.units.left[words[0]].begin)
        trailing = self.units.kinds(self.units.left[words[-1]].end, mark.end)
        return range(
            self.units.farthest_punctuation(span.start, -1, leading, allowed, unused),
            self.units.farthest_punctuation(span.stop - 1, 1, trailing, allowed, unused) + 1,
        )

    def empty_place(self, number: int) -> int:
        """Return the offset in the target at which the empty mark `number` is placed.

        A glued mark is not placed after a space.
        """
        mark = self.marks[number]
        begin, end = self.outer(mark)
        preceding, following = self.units.words(begin, mark.begin), self.units.words(mark.begin, end)
        options = [self._before(number, following), self._after(number, preceding, bool(following))]
        if mark.glued or not following:
            options.reverse()
        place = next((option for option in options if option is not None), None)
        if place is not None and mark.glued:
            inside = self.places[mark.parent][0] if mark.parent >= 0 else 0
            return max(inside, len(self.units.target[:place].rstrip()))
        if place is not None:
            return place
        allowed = self.allowed(mark.parent)
        words = [j for j in allowed if self.units.right[j].word]
        at = round(len(preceding) / max(1, len(preceding) + len(following)) * len(words))
        if mark.glued and at > 0:
            return self.units.right[words[at - 1]].end
        return self.units.right[words[at]].begin if at < len(words) else self.units.characters(allowed)[1]

    def _before(self, number: int, following: Sequence[int]) -> int | None:
        """Return the target offset of an empty mark, directly before the translation of the next source word.

        This word is `following[0]`. The offset is also before a mark that begins with it, and before the translation of
        the punctuation between the empty mark and it. Return None if there is no such word, or if it is not aligned.
        """
        if not following:
            return None
        mark, word = self.marks[number], self.units.left[following[0]]
        for other in range(number + 1, len(self.marks)):
            if self.marks[other].begin > word.begin:
                break
            if other in self.spans and self.marks[other].parent == mark.parent:
                return self.places[other][0]
        allowed = self.allowed(mark.parent)
        target_units = self.units.aligned(following[:1], allowed)
        if not target_units:
            return None
        kinds = self.units.kinds(mark.begin, word.begin)
        at = self.units.farthest_punctuation(target_units[0], -1, kinds, allowed, allowed)
        return self._between_spaces(mark.begin, self.units.right[at].begin)

    def _between_spaces(self, source_place: int, place: int) -> int:
        """Return `place` - 1 if `place` follows two spaces and the source has a space at `source_place`, else `place`.

        So a picture between two spaces stays between two spaces.
        """
        spaced = self.units.source[source_place : source_place + 1].isspace()
        return place - 1 if spaced and place > 1 and self.units.target[place - 2 : place].isspace() else place

    def _after(self, number: int, preceding: Sequence[int], followed: bool) -> int | None:
        """Return the target offset of an empty mark, after the translation of the source word before the mark.

        This word is `preceding[-1]`. The offset is also after the translation of the punctuation between it and the
        mark and, if the mark is glued, after a mark that ends with it. If no source word follows (`followed` is false),
        a word without alignment counts as aligned to the last target word. Return None if there is no aligned word.
        """
        if not preceding:
            return None
        mark, word = self.marks[number], self.units.left[preceding[-1]]
        for other in range(number - 1, -1, -1):
            if other in self.spans and self.marks[other].parent == mark.parent and mark.glued:
                if self.marks[other].end >= word.end:
                    return self.places[other][1]
                break
        allowed = self.allowed(mark.parent)
        target_units = self.units.aligned(preceding[-1:], allowed)
        if not target_units and followed:
            return None
        at = target_units[-1] if target_units else max((j for j in allowed if self.units.right[j].word), default=-1)
        if at < 0:
            return None
        at = self.units.farthest_punctuation(at, 1, self.units.kinds(word.end, mark.begin), allowed, allowed)
        if mark.glued or not followed or at + 1 not in allowed:
            return self.units.right[at].end
        return self.units.right[at + 1].begin


def _lower(text: str) -> str:
    """Return `text` in lower case, with the same length. A character that would become two characters is unchanged."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


def _occurrences(part: str, text: str) -> Iterator[int]:
    """Yield the offsets of the non-overlapping occurrences of `part` in `text`, in linear time."""
    place = -len(part)
    while (place := text.find(part, place + len(part))) >= 0:
        yield place


def _in_order(places: Sequence[Range]) -> Iterator[Range]:
    """Yield the ranges, each moved behind those before it."""
    last = 0
    for begin, end in places:
        begin = max(last, begin)
        last = max(begin, end)
        yield begin, last
