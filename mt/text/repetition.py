"""Signs that a search went wrong: a translation that goes in circles, or one that ends long before its source does.

Of 75,000 references (Multi30k en-de and back, manuals en-de and en-zh, laws en-fr) none goes in circles and one is too
short. Of 2,014 translations of Multi30k's val and test_2016_flickr by a model of 3+3 layers two go in circles, and do.
"""

from collections import Counter
from collections.abc import Sequence

from mt.text.linking import is_wide

LONGEST_UNIT = 12  # pieces of what is repeated
REPEATS = 4  # one after another, of a unit of one piece; three of a longer one
SCATTERED_UNIT = 4  # pieces
SCATTERED = 4  # times anywhere in the translation, of which they are at least half

LEAST_RATIO = 1 / 3
"""Of the widths of a translation and its source. One in 2,000 references is below 0.37 in laws en-fr, 0.40 to 0.77 in
Multi30k (en to and from de, fr, cs) and manuals (en-de, en-zh); 5,000 to 15,000 pairs each, of 40 letters or more."""
LEAST_WIDTH = 60  # of a source whose translation can be called too short
_WIDE = 2.5  # letters that a character of a script without spaces stands for: the median of en-zh is 0.33


def looping(source: Sequence[str], target: Sequence[str]) -> bool:
    """Whether the pieces of a translation go in circles that those of its source do not go in."""
    if len(target) - len(set(target)) < REPEATS - 1:
        return False
    repeats, scattered = _repeats(target), _scattered(target)
    if repeats < REPEATS and scattered < SCATTERED:
        return False
    return repeats >= max(REPEATS, _repeats(source) + 2) or scattered >= max(SCATTERED, 2 * _scattered(source))


def too_short(source: str, target: str) -> bool:
    """Whether a translation is so much shorter than its source that a part of it must be missing."""
    if len(target) > len(source):
        return False
    asked = width(source)
    return asked >= LEAST_WIDTH and width(target) < LEAST_RATIO * asked


def width(text: str) -> float:
    """Its length in letters of an alphabet."""
    return len(text) if text.isascii() else sum(_WIDE if is_wide(character) else 1 for character in text)


def _repeats(pieces: Sequence[str]) -> int:
    """How often a unit comes one after another, at most; a unit of several pieces counts for one time more.

    What has no letter may be repeated: digits, dots and lines are.
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
    """How often the commonest few pieces in a row come, if that is often enough to count."""
    found = Counter(tuple(pieces[at : at + SCATTERED_UNIT]) for at in range(len(pieces) - SCATTERED_UNIT + 1))
    most = max((count for unit, count in found.items() if any(map(str.isalpha, "".join(unit)))), default=0)
    return most if 2 * most * SCATTERED_UNIT >= len(pieces) else 0
