"""Detects failed translations: repetitive translations, and translations that are much shorter than their source.

Of 75,000 reference translations (Multi30k en-de and de-en, manuals en-de and en-zh, laws en-fr), the functions call
none repetitive and one too short. Of 2,014 translations of Multi30k's val and test_2016_flickr by a model of 3+3
layers, they call two repetitive.
"""

from collections import Counter
from collections.abc import Sequence

from mt.text.alignment import is_wide

LONGEST_UNIT = 12  # most pieces of a unit that is repeated in a row
REPEATS = 4  # fewest repetitions in a row of a single piece; a longer unit needs one repetition less
SCATTERED_UNIT = 4  # pieces of a unit that is repeated anywhere in the translation
SCATTERED = 4  # fewest occurrences of such a unit; all together must make up half of the translation

LEAST_RATIO = 1 / 3
"""Least width of a translation divided by the width of its source.

One reference translation in 2,000 has a ratio below 0.37 in laws en-fr, and below 0.40 to 0.77 in Multi30k (en with de,
fr, cs) and manuals (en-de, en-zh). Each corpus has 5,000 to 15,000 pairs of 40 letters or more.
"""
LEAST_WIDTH = 60  # translations of sources below this width are never too short
_WIDE = (
    2.5  # letters that a character without spaces around it stands for; the median of en-zh is 0.33 characters a letter
)


def is_repetitive(source: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether the pieces of a translation are repeated much more often than the pieces of its source."""
    if len(target) - len(set(target)) < REPEATS - 1:
        return False
    repeats, scattered = _repeats(target), _scattered(target)
    if repeats < REPEATS and scattered < SCATTERED:
        return False
    return repeats >= max(REPEATS, _repeats(source) + 2) or scattered >= max(SCATTERED, 2 * _scattered(source))


def is_too_short(source: str, target: str) -> bool:
    """Return whether the width of a translation is less than LEAST_RATIO times the width of its source."""
    if len(target) > len(source):
        return False
    source_width = text_width(source)
    return source_width >= LEAST_WIDTH and text_width(target) < LEAST_RATIO * source_width


def text_width(text: str) -> float:
    """Return the length of a text in alphabetic letters; a wide character, such as in Chinese, counts _WIDE letters."""
    return len(text) if text.isascii() else sum(_WIDE if is_wide(character) else 1 for character in text)


def _repeats(pieces: Sequence[str]) -> int:
    """Return the largest number of repetitions in a row of any unit, plus one if the unit has several pieces.

    Units without letters are ignored, because digits, dots and lines are often repeated on purpose.
    """
    most = 0
    for unit in range(1, min(LONGEST_UNIT, len(pieces) // 2) + 1):
        run = longest = place = 0
        for at in range(unit, len(pieces)):
            run = run + 1 if pieces[at] == pieces[at - unit] else 0
            if run > longest:
                longest, place = run, at
        count = longest // unit + 1
        if count > 1 and any(map(str.isalpha, "".join(pieces[place - unit + 1 : place + 1]))):
            most = max(most, count + (unit > 1))
    return most


def _scattered(pieces: Sequence[str]) -> int:
    """Return how often the most common unit of SCATTERED_UNIT pieces occurs, or 0 if it fills less than half."""
    units = Counter(tuple(pieces[at : at + SCATTERED_UNIT]) for at in range(len(pieces) - SCATTERED_UNIT + 1))
    most = max((count for unit, count in units.items() if any(map(str.isalpha, "".join(unit)))), default=0)
    return most if 2 * most * SCATTERED_UNIT >= len(pieces) else 0
