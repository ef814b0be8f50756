"""Detection of failed translations: repetitive ones, ones much shorter than their source, and ones without a clause."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np

from mt.text.alignment import WIDE, PieceAttention, Range

# A unit is a sequence of pieces that is repeated in a translation.
LONGEST_UNIT = 12  # maximum number of pieces of a unit that is repeated in a row
REPEATS = 4  # minimum number of consecutive occurrences of a unit of one piece; one less for a longer unit
SCATTERED_UNIT = 4  # number of pieces of a unit that is counted anywhere in the translation, not only in a row
SCATTERED = 4  # minimum number of occurrences of such a unit; together they must be half of the translation

LEAST_RATIO = 1 / 3
"""Minimum of (width of a translation) / (width of its source); a translation below it is too short."""
LEAST_WIDTH = 60  # sources below this width are not checked
LEAST_PIECES = 3  # clauses of fewer pieces are not checked
LEAST_SHARE, LEAST_PEAK = 0.4, 0.17
"""Minimum attention to a clause that was translated. One of the two is enough.

LEAST_SHARE: target pieces that attend most to a piece of the clause, per piece of the clause. LEAST_PEAK: mean, over
the pieces of the clause, of the largest attention to the piece.
"""
LEAST_COMPLETE = 0.64
"""Minimum of (width relative to the source) + (mean log-probability of a piece) of a translation with all clauses."""
_WIDE = re.compile(f"[{WIDE}]")
_WIDTH = 2.5  # width, in letters, of a character of a script without spaces; the median of en-zh is 3


def is_repetitive(source: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether the pieces of a translation are repeated much more often than the pieces of its source."""
    if not may_repeat(target):
        return False
    repeats, scattered = _repeats(target), _most_common_count(target)
    if repeats < REPEATS and scattered < SCATTERED:
        return False
    return repeats >= max(REPEATS, _repeats(source) + 2) or scattered >= max(SCATTERED, 2 * _most_common_count(source))


def may_repeat(pieces: Sequence[str]) -> bool:
    """Return whether pieces occur so often that `is_repetitive` may be true: a fast test."""
    return len(pieces) - len(set(pieces)) >= REPEATS - 1


def is_too_short(source: str, target: str) -> bool:
    """Return whether the width of a translation is less than LEAST_RATIO times the width of its source."""
    if len(target) > len(source):
        return False
    source_width = text_width(source)
    return source_width >= LEAST_WIDTH and text_width(target) < LEAST_RATIO * source_width


def may_omit(source: str, target: str, log_probabilities: Sequence[float]) -> bool:
    """Return whether a translation may omit a clause, because it is short or the model was not sure (LEAST_COMPLETE).

    `log_probabilities` are those of the pieces of the translation.
    """
    mean = sum(log_probabilities) / max(1, len(log_probabilities))
    return text_width(target) < (LEAST_COMPLETE - mean) * text_width(source)


def omitted_clauses(clauses: Sequence[Range], attention: PieceAttention) -> list[Range]:
    """Return the clauses that a translation omits: those to which it pays little attention.

    `clauses` are ranges of the source of `attention`.
    """
    weights = np.asarray(attention.weights)  # [T, S]
    if not weights.size:
        return list(clauses)
    strongest, peaks = weights.argmax(1), weights.max(0)
    omitted = []
    for begin, end in clauses:
        first, last = bisect_left(attention.source, begin), bisect_left(attention.source, end)
        if last - first >= LEAST_PIECES:
            share = np.count_nonzero((strongest >= first) & (strongest < last)) / (last - first)
            if share < LEAST_SHARE and peaks[first:last].mean() < LEAST_PEAK:
                omitted.append((begin, end))
    return omitted


def text_width(text: str) -> float:
    """Return the number of characters of a text, where a wide character, such as a Chinese one, counts as _WIDTH."""
    return len(text) if text.isascii() else len(text) + (_WIDTH - 1) * len(_WIDE.findall(text))


def _repeats(pieces: Sequence[str]) -> int:
    """Return the largest number of consecutive occurrences of a unit, plus 1 if the unit has several pieces.

    A unit is a sequence of up to LONGEST_UNIT pieces. Units without letters are ignored, because digits, dots and lines
    are often repeated on purpose.
    """
    largest = 0
    for unit in range(1, min(LONGEST_UNIT, len(pieces) // 2) + 1):
        run = longest = place = 0
        for at in range(unit, len(pieces)):
            run = run + 1 if pieces[at] == pieces[at - unit] else 0
            if run > longest:
                longest, place = run, at
        count = longest // unit + 1
        if count > 1 and any(map(str.isalpha, "".join(pieces[place - unit + 1 : place + 1]))):
            largest = max(largest, count + (unit > 1))
    return largest


def _most_common_count(pieces: Sequence[str]) -> int:
    """Return the number of occurrences of the most common unit of SCATTERED_UNIT pieces.

    Return 0 if these occurrences have less than half of all pieces. Units without letters are ignored.
    """
    units = Counter(tuple(pieces[at : at + SCATTERED_UNIT]) for at in range(len(pieces) - SCATTERED_UNIT + 1))
    highest = max((count for unit, count in units.items() if any(map(str.isalpha, "".join(unit)))), default=0)
    return highest if 2 * highest * SCATTERED_UNIT >= len(pieces) else 0
