"""Detection of failed translations: repetitive ones, ones much shorter than their source, and ones that omit words."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

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
LEAST_PEAK = 0.1
"""Largest attention to a source piece below which the piece may not be translated; the difference is its deficit."""
LEAST_DEFICIT, LEAST_OMITTED = 0.1, 9
"""Minimum of the deficits of all pieces of words that a translation omits, together, and of the width of the words."""
ROUNDING = 0.99  # of sums of deficits, at most
_WORDS = r"(?:[A-Z]+\d+|[^\W\d_]+(?: [^\W\d_]+){0,7}?)"
_TWICE = re.compile(
    rf"(?<!\w)({_WORDS})(?:[ /-](?<!\D-)\1)+(?!\w)|(?<=, )({_WORDS})(?:,? (?:and|und|et)|,) \2(?=,| and| und| et|\W*$)"
)
_REPEATED = re.compile(rf"(?<!\w)({_WORDS})\W{{1,3}}\1(?!\w)")
_LETTERS, _AND = re.compile(r"[^\W\d_]+"), ("and", "und", "et")
_MAY_BE_TWICE = frozenset(("das", "dem", "den", "der", "die", "had", "ihr", "in", "nous", "sie", "that", "vous"))
_WIDE = re.compile(f"[{WIDE}]")
_WORD = re.compile(rf"[{WIDE}]|[^\W{WIDE}]+")
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
    """Return whether pieces occur so often that `is_repetitive` may be true: a fast test.

    A unit in a row, or one of SCATTERED_UNIT pieces, has two neighbouring pieces that occur three times.
    """
    return len(pieces) - len(set(pieces)) >= REPEATS - 1 and len(pieces) - len(set(pairwise(pieces))) >= REPEATS - 1


def is_too_short(source: str, target: str) -> bool:
    """Return whether the width of a translation is less than LEAST_RATIO times the width of its source."""
    if len(target) > len(source):
        return False
    source_width = text_width(source)
    return source_width >= LEAST_WIDTH and text_width(target) < LEAST_RATIO * source_width


def completeness(source: str, target: str, log_probabilities: Sequence[float]) -> float:
    """Return (width of a translation relative to its source) + (mean of the log-probabilities of its pieces).

    Models are less sure of the words that follow an omission. The value is meant for comparisons.
    """
    mean = sum(log_probabilities) / max(1, len(log_probabilities))
    return text_width(target) / max(1.0, text_width(source)) + mean


def doubled_words(source: str, target: str) -> list[Range]:
    """Return the ranges of a translation with words that are written again: directly, or as the next item of a list.

    Return [] if the source has any words twice, too. Words that good sentences have twice (`die die`) are left out.
    """
    if not _has_word_twice(target):
        return []
    twice = [match for match in _TWICE.finditer(target) if match[1] not in _MAY_BE_TWICE]
    if not twice or _REPEATED.search(source):
        return []
    return [(match.end(match.lastindex or 0), match.end()) for match in twice]


def _has_word_twice(text: str) -> bool:
    """Return whether `doubled_words` may find any, apart from phrases that end with a word that is in them twice."""
    words, last = [word for word in _LETTERS.findall(text) if word not in _AND], dict[str, int]()
    if len(set(words)) == len(words):
        return False
    for place, word in enumerate(words, 1):
        length = place - last.get(word, -place)
        if 2 * length <= place and words[place - length : place] == words[place - 2 * length : place - length]:
            return True
        last[word] = place
    return False


def omitted_words(source: str, attention: PieceAttention) -> list[Range]:
    """Return the ranges of neighbouring words of a source that its translation omits: those with little attention."""
    places = attention.source
    peaks = np.asarray(attention.weights).reshape(-1, len(places)).max(0, initial=0.0)
    missing = LEAST_PEAK - peaks
    if missing[missing > 0].sum() < ROUNDING * LEAST_DEFICIT:
        return []  # most translations: no words together can lack as much
    deficits = [0.0, *np.cumsum(missing).tolist()]  # of all pieces before
    omitted, begin, end, total, largest = list[Range](), 0, 0, 0.0, 0.0
    for first, last in [*(word.span() for word in _WORD.finditer(source)), (len(source), -1)]:
        begin = begin if total > 0.0 else first
        total += deficits[bisect_left(places, last)] - deficits[bisect_left(places, first)] if last > 0 else -np.inf
        if total > largest:
            largest, end = total, last
        if total <= 0.0:
            if largest >= LEAST_DEFICIT and text_width(source[begin:end]) >= LEAST_OMITTED:
                omitted.append((begin, end))
            total = largest = 0.0
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
