"""Where marks of a source text, such as inline tags, stand in its translation.

A mark that encloses words encloses the target words that are aligned to them, as one range; one that is empty stands
before the target word aligned to the word after it. Nested marks stay nested and none cross. What is not aligned is
placed between its neighbours or in proportion. Punctuation goes with a mark only where the source had it so:
`<b>here</b>,` keeps its comma outside.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from mt.text.markup.marks import Mark, Piece, Segment, Translated, emit
from mt.text.markup.units import Matching, Range, units

MAX_WORK = 4_000_000  # marks times characters; beyond it, marks are placed in proportion to their place in the source


def arrange(segment: Segment, translated: Translated) -> list[Piece]:
    """A translation with the marks of its source in it, each exactly once."""
    source, marks, target = segment.text, segment.marks, translated.text
    if not marks:
        return [Piece(target)]
    if len(marks) * (len(source) + len(target) + len(marks)) > MAX_WORK:
        return emit(target, marks, _in_proportion(source, marks, target))
    cuts = {place for mark in marks for place in (mark.begin, mark.end)}
    board = _Board(marks, Matching(source, target, translated.alignment, cuts))
    if segment.ordered:
        return emit(target, marks, _in_order(board))
    board.place_all()
    return emit(target, board.marks, [board.places[number] for number in range(len(marks))])


class _Board:
    """The places given so far, as target units (`spans`, of marks that enclose something) and as characters."""

    def __init__(self, marks: Sequence[Mark], matching: Matching) -> None:
        self.marks, self.matching = list(marks), matching
        self.places: dict[int, Range] = {}
        self.spans: dict[int, range] = {}

    def place_all(self) -> None:
        children: dict[int, list[int]] = {}
        for number, mark in enumerate(self.marks):
            children.setdefault(mark.parent, []).append(number)
        level = [-1]
        while level:
            for parent in level:
                self._place_spans(parent, [n for n in children[parent] if not self.marks[n].empty])
                for number in children[parent]:
                    if self.marks[number].empty:
                        at = self.empty_place(number)
                        self.places[number] = (at, at)
            level = [number for parent in level for number in children[parent] if number in children]

    def room(self, parent: int) -> range:
        """The target units in which the children of a mark may stand."""
        return range(len(self.matching.right)) if parent < 0 else self.spans[parent]

    def outer(self, mark: Mark) -> Range:
        """The characters of the source in which a mark lies."""
        if mark.parent < 0:
            return 0, len(self.matching.source)
        return self.marks[mark.parent].begin, self.marks[mark.parent].end

    def _place_spans(self, parent: int, numbers: Sequence[int]) -> None:
        """Siblings that enclose something: the one that is surest of its words chooses first."""
        room = self.room(parent)
        free = set(room)
        copies = {number: self._copy(self.marks[number], room, free) for number in numbers}
        wishes = {number: self._best(self.marks[number], room, free) for number in numbers}
        sure = [number for number in numbers if copies[number]]
        sure += sorted((n for n in numbers if wishes[n] and not copies[n]), key=lambda n: -(wishes[n] or (0.0,))[0])
        waiting = [number for number in numbers if not copies[number] and not wishes[number]]
        for number in sure:
            copy = self._copy(self.marks[number], room, free)
            wish = self._best(self.marks[number], room, free)
            if copy or wish:
                span = copy or self._with_punctuation(self.marks[number], wish[1], room, free)  # type: ignore[index]
                self._settle(number, span, free)
            else:
                waiting.append(number)
        for number in waiting:
            mark = self.marks[number]
            sibling = self._taken_by(mark, numbers)
            if sibling is not None:  # two words have become one
                self.marks[number] = replace(mark, parent=sibling)
                self._settle(number, self.spans[sibling], free)
            else:
                self._settle(number, self._with_punctuation(mark, self._guess(mark, room, free), room, free), free)

    def _settle(self, number: int, span: range, free: set[int]) -> None:
        self.spans[number] = span
        self.places[number] = self.matching.characters(span)
        free.difference_update(span)

    def _copy(self, mark: Mark, room: range, free: set[int]) -> range | None:
        """Where a text that is kept stands in the target, nearest to where it is expected."""
        text = self.matching.source[mark.begin : mark.end].strip()
        if not mark.kept or not text or not room:
            return None
        begins = {self.matching.right[j].begin: j for j in room}
        ends = {self.matching.right[j].end: j + 1 for j in room}
        found = [
            range(begins[match.start()], ends[match.end()])
            for match in re.finditer(re.escape(text), self.matching.target, re.IGNORECASE)
            if match.start() in begins and match.end() in ends
        ]
        expected = self._expected(mark)
        return min(
            (span for span in found if free.issuperset(span)),
            key=lambda span: abs(self.matching.right[span.start].begin - expected),
            default=None,
        )

    def _expected(self, mark: Mark) -> float:
        """The character of the target at which a mark would begin if words kept their order."""
        return mark.begin / max(1, len(self.matching.source)) * len(self.matching.target)

    def _best(self, mark: Mark, room: range, free: set[int]) -> tuple[float, range] | None:
        """The range of free target units that has most of a mark's words and fewest of others, and its score.

        A unit counts +1 if all that it is aligned to lies in the mark, -1 if nothing does, 0 if it is not aligned. Of
        ranges that are equally good, the longest: one stranger between two words of a mark is no reason to part them.
        """
        covered = self.matching.covered(mark.begin, mark.end)
        inside = [j for j in self.matching.aligned(covered, room) if j in free]
        if not inside:
            return None
        mine = set(inside)
        weights: dict[int, float] = {}
        best = (-2.0, 0, inside[0])  # score, units, first
        lowest, start, total = 0.0, -1, 0.0  # the lowest sum before a possible beginning
        for j in range(inside[0], inside[-1] + 1):
            if j not in free:
                start = -1
                continue
            back = self.matching.back[j]
            weights[j] = sum(1 if i in covered else -1 for i in back) / max(1, len(back))
            if j in mine and (start < 0 or total < lowest):
                lowest, start = total, j
            total += weights[j]
            if j in mine:
                best = max(best, (total - lowest, j + 1 - start, start))
        good = [j for j in range(best[2], best[2] + best[1]) if weights[j] > 0] or [best[2], best[2] + best[1] - 1]
        return best[0], range(good[0], good[-1] + 1)

    def _taken_by(self, mark: Mark, siblings: Sequence[int]) -> int | None:
        """The sibling that has taken the words of a mark."""
        covered = self.matching.covered(mark.begin, mark.end)
        takers = (n for n in siblings if n in self.spans and not self.marks[n].kept)
        return (
            next((n for n in takers if self.matching.aligned(covered, self.spans[n])), None) if not mark.kept else None
        )

    def _guess(self, mark: Mark, room: range, free: set[int]) -> range:
        """Units for a mark none of whose words is aligned: between the nearest that are, in proportion.

        What is kept displaces nothing by a guess, so its range is empty.
        """
        right = self.matching.right
        words = self.matching.words(mark.begin, mark.end)
        if not words:
            return self._guess_punctuation(mark, room, free)
        among = self.matching.words(*self.outer(mark))
        first, last = among.index(words[0]), among.index(words[-1])
        options = [j for j in room if right[j].word]
        left, low, after, high = self._anchors(among, first, last, room)
        between = [j for j in options if low < j < high and not self.matching.back[j]]
        if free.intersection(between) or mark.kept:
            first, last, count = first - left - 1, last - left - 1, after - left - 1
        else:
            between, count = options, len(among)
        scale = len(between) / count
        begin = min(round(first * scale), len(between) - 1)
        if mark.kept or not free.intersection(between):
            at = between[begin] if between else min(high, room.stop)
            return range(at, at)
        chosen = [j for j in between[begin : max(begin + 1, round((last + 1) * scale))] if j in free]
        chosen = chosen or [min(free.intersection(between), key=lambda j: abs(j - between[begin]))]
        ends = (a + 1 for a, b in pairwise(chosen) if not free.issuperset(range(a, b)))
        return range(chosen[0], next(ends, chosen[-1] + 1))

    def _anchors(self, among: Sequence[int], first: int, last: int, room: range) -> tuple[int, int, int, int]:
        """The nearest aligned words before and after some, each as its place in `among` and its target unit.

        The edges of the room where there is none, or where the two have changed places.
        """
        before = next((k for k in range(first - 1, -1, -1) if self.matching.aligned(among[k : k + 1], room)), -1)
        after = next(
            (k for k in range(last + 1, len(among)) if self.matching.aligned(among[k : k + 1], room)), len(among)
        )
        low = self.matching.aligned(among[before : before + 1], room)[-1] if before >= 0 else room.start - 1
        high = self.matching.aligned(among[after : after + 1], room)[0] if after < len(among) else room.stop
        return (before, low, after, high) if low < high else (-1, room.start - 1, len(among), room.stop)

    def _guess_punctuation(self, mark: Mark, room: range, free: set[int]) -> range:
        """For a mark around punctuation alone: the same in the target, or an empty range."""
        kinds = self.matching.kinds(mark.begin, mark.end)
        same = [j for j in room if j in free and self.matching.kind(j) in kinds]
        expected = self._expected(mark)
        if not same or mark.kept:
            at = next((j for j in room if self.matching.right[j].begin >= expected), room.stop)
            return range(at, at)
        begin = min(same, key=lambda j: abs(self.matching.right[j].begin - expected))
        end = begin + 1
        while end in same:
            end += 1
        return range(begin, end)

    def _with_punctuation(self, mark: Mark, span: range, room: range, free: set[int]) -> range:
        """A range with the punctuation at its edges that the source has within the mark."""
        words = self.matching.words(mark.begin, mark.end)
        if not words or not span:
            return span
        leading = self.matching.kinds(mark.begin, self.matching.left[words[0]].begin)
        trailing = self.matching.kinds(self.matching.left[words[-1]].end, mark.end)
        return range(
            self._reach(span.start, -1, leading, room, free), self._reach(span.stop - 1, 1, trailing, room, free) + 1
        )

    def _reach(self, unit: int, step: int, kinds: set[str], room: range, free: set[int] | range) -> int:
        """How far from a unit its punctuation goes: to the last of some kinds, with nothing but punctuation between."""
        reached, unit = unit, unit + step
        while unit in room and unit in free and not self.matching.right[unit].word:
            reached = unit if self.matching.kind(unit) in kinds else reached
            unit += step
        return reached

    def empty_place(self, number: int) -> int:
        """The character of the target at which an empty mark stands."""
        mark = self.marks[number]
        begin, end = self.outer(mark)
        preceding, following = self.matching.words(begin, mark.begin), self.matching.words(mark.begin, end)
        ways = [self._before(number, following), self._after(number, preceding, bool(following))]
        if mark.glued or not following:
            ways.reverse()
        found = next((way for way in ways if way is not None), None)
        if found is not None:
            return found
        room = self.room(mark.parent)
        options = [j for j in room if self.matching.right[j].word]
        at = round(len(preceding) / max(1, len(preceding) + len(following)) * len(options))
        if mark.glued and at > 0:
            return self.matching.right[options[at - 1]].end
        return self.matching.right[options[at]].begin if at < len(options) else self.matching.characters(room)[1]

    def _before(self, number: int, following: Sequence[int]) -> int | None:
        """Before the target of the next word, and of the punctuation and the mark that begin with it."""
        if not following:
            return None
        mark, word = self.marks[number], self.matching.left[following[0]]
        for other in range(number + 1, len(self.marks)):
            if self.marks[other].begin > word.begin:
                break
            if other in self.spans and self.marks[other].parent == mark.parent:
                return self.places[other][0]
        room = self.room(mark.parent)
        rights = self.matching.aligned(following[:1], room)
        if not rights:
            return None
        kinds = self.matching.kinds(mark.begin, word.begin)
        return self._with_space(mark.begin, self.matching.right[self._reach(rights[0], -1, kinds, room, room)].begin)

    def _with_space(self, here: int, there: int) -> int:
        """Between two spaces, where the source has the mark there and the target has two."""
        source, target = self.matching.source, self.matching.target
        between = source[here : here + 1].isspace() and target[max(0, there - 2) : there].isspace() and there > 1
        return there - 1 if between else there

    def _after(self, number: int, preceding: Sequence[int], followed: bool) -> int | None:
        """After the target of the word before, and of the punctuation and the mark that end with it."""
        if not preceding:
            return None
        mark, word = self.marks[number], self.matching.left[preceding[-1]]
        for other in range(number - 1, -1, -1):
            if other in self.spans and self.marks[other].parent == mark.parent and mark.glued:
                if self.marks[other].end >= word.end:
                    return self.places[other][1]
                break
        room = self.room(mark.parent)
        rights = self.matching.aligned(preceding[-1:], room)
        if not rights and followed:
            return None
        at = rights[-1] if rights else max((j for j in room if self.matching.right[j].word), default=-1)
        if at < 0:
            return None
        at = self._reach(at, 1, self.matching.kinds(word.end, mark.begin), room, room)
        if mark.glued or not followed or at + 1 not in room:
            return self.matching.right[at].end
        return self.matching.right[at + 1].begin


def _in_order(board: _Board) -> list[Range]:
    """Places that never go back, as each mark wishes otherwise."""
    found: list[Range] = []
    last = 0
    room = board.room(-1)
    for number, mark in enumerate(board.marks):
        if mark.empty:
            begin = end = board.empty_place(number)
        else:
            best = board._best(mark, room, set(room))
            span = board._copy(mark, room, set(room)) or (best[1] if best else board._guess(mark, room, set(room)))
            begin, end = board.matching.characters(span)
        begin = max(last, begin)
        last = max(begin, end)
        found.append((begin, last))
    return found


def _in_proportion(source: str, marks: Sequence[Mark], target: str) -> list[Range]:
    """Places between words, at the same part of the target as of the source."""
    words = [unit for unit in units(target) if unit.word]

    def place(at: int, closing: bool) -> int:
        number = round(at / max(1, len(source)) * len(words))
        if closing:
            return words[number - 1].end if number else (words[0].begin if words else 0)
        return words[number].begin if number < len(words) else (words[-1].end if words else 0)

    found = []
    for mark in marks:
        begin = place(mark.begin, closing=False)
        found.append((begin, begin if mark.kept or mark.empty else max(begin, place(mark.end, closing=True))))
    return found
