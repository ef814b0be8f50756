"""Links between what a source and its translation both have: numbers, names, dates, times and titles."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from mt.text.alignment import Link, Range
from mt.text.word_tables import read_tables

_ORDINAL = re.compile(r"(\d+)(?:st|[nr]d|th|er|re|(?:i?[èe]m)?es?)|([IVX]+)(?:er|re|(?:i?[èe]m)?e)")
_LONG_WORD = 5  # letters
_ROMAN = {"I": 1, "V": 5, "X": 10}
_UNIT_OF_TIME = r"(?:Uhr|h(?:eures?)?|o['’]clock|(?P<half>[ap])\.?m)(?!\w)"
_TIME = re.compile(  # 8h15, 9 Uhr, 5:30 p.m.
    rf"(?i)(?<![\d.,:])(?P<hour>\d\d?)(?:(?::| ?h ?)(?P<minute>[0-5]\d)(?![\d:])(?P<unit> ?{_UNIT_OF_TIME})?"
    rf"|(?P<only> ?{_UNIT_OF_TIME.replace('half', 'part')}))"
)
_SAME_WORDS = {
    word: words for words in read_tables("patterns.toml")["alike_words"] for word in words.split()
}  # often emphasised, and linked badly
_SAME_WORDS |= {word.capitalize(): words for word, words in _SAME_WORDS.items() if word.islower()}
_CALENDAR: dict[str, str] = {  # days and months
    name: " ".join(names)
    for kind in map(read_tables("schedules.toml").__getitem__, ("days", "months"))
    for names in zip(*map(str.split, kind.values()), strict=True)
    for name in names
}
_NUMERIC_DATE = re.compile(r"(?<![\w./-])\d{1,2}([./-])\d{1,2}\1(?P<year>\d{4})(?![\w/-])")
_DATE = re.compile(
    rf"(?<!\w)(?:\d{{1,2}}\S{{0,3}} )?(?:{'|'.join(_CALENDAR)})(?: \d{{1,2}}\w{{0,2}})?,? (?P<year>\d{{4}})(?!\w)"
)
_NEGATION = re.compile("|".join((r"\bno\b", *read_tables("negation.toml")["clear"].values())), re.IGNORECASE)


def is_misread(text: str) -> bool:
    """Return whether models misread a short text within marks: a date, a day, a month, a time or a negation.

    They know labels such as `Previous May`.
    """
    words = re.split(r"[\W_]+", _TIME.sub("0", text))
    is_known = (word in _CALENDAR or len(word) < _LONG_WORD or _ORDINAL.fullmatch(word) for word in words)
    in_digits = _TIME.search(text) or _NUMERIC_DATE.search(text)
    is_time = (in_digits is not None or not _CALENDAR.keys().isdisjoint(words)) and all(is_known)
    return is_time or _NEGATION.search(text) is not None


def with_copies(source: str, target: str, alignment: Sequence[Link], places: Sequence[Sequence[Range]]) -> list[Link]:
    """Return the alignment with additional links between equal words. Such a word occurs exactly once in each text.

    `places` contains the character ranges of the words of the source, and of those of the target.

    Words of a row of _ALIKE_WORDS are equal, and so are days and months in several languages, ordinal numbers with any
    ending, times, and dates (`_link_times`, `_link_dates`). Links to them are often wrong: `<b>not</b>` became
    `<b>die</b>`.

    The link of a time, a word with digits or punctuation, or a name replaces the links of `alignment` that overlap it,
    but a name is no part of a phrase that `alignment` links. Any other word is linked only if `alignment` has no link
    there, and if the length or case of the word makes a coincidence unlikely.
    """
    words = [
        [(_word_key(text[slice(*place)]), place) for place in side]
        for text, side in zip((source, target), places, strict=True)
    ]
    found, counts = list(map(dict, words)), [Counter(word for word, _ in side) for side in words]
    shared = [word for word in found[0] if counts[0][word] == counts[1][word] == 1]
    copies = {word: (found[0][word], found[1][word]) for word in shared}
    sure = [*_link_times(source, target), *_link_dates(source, target)]
    sure += _outside((link for word, link in copies.items() if not word.isalpha()), sure)
    names = [link for word, link in copies.items() if len(word) > 3 and word.isalpha() and word[0].isupper()]
    sure += _outside(names, [*sure, *(link for link in alignment if " " in source[slice(*link[0])])])
    kept = _outside(alignment, sure)
    distinctive = (link for word, link in copies.items() if word.isalpha() and (len(word) > 3 or not word.islower()))
    return [*kept, *sure, *_outside(distinctive, [*kept, *sure])]


def _word_key(word: str) -> str:
    """Return a string that is the same for equal words, such as `1st` and `1`, `XIXe` and `19th`, `Mai` and `May`."""
    if not (ordinal := _ORDINAL.fullmatch(word)):
        return _CALENDAR.get(word) or _SAME_WORDS.get(word, word)
    numerals = [*map(_ROMAN.__getitem__, ordinal[2] or ""), 0]
    return ordinal[1] or str(sum(-one if one < other else one for one, other in pairwise(numerals)))


def _link_times(source: str, target: str) -> list[Link]:
    """Return links between equal times, of which each text has one. Its digits and its unit, such as `Uhr`, are apart.

    If only one text has a unit, it belongs to the digits: German writes `8:15` for `8:15 am`.
    """
    sides = [[(_time_key(match), match) for match in _TIME.finditer(text)] for text in (source, target)]
    counts = [Counter(key for key, _ in side) for side in sides]
    others = dict(sides[1])
    links: list[Link] = []
    for key, match in sides[0]:
        if counts[0][key] == counts[1][key] == 1:
            (digits, unit), (new_digits, new_unit) = _digits_and_unit(match), _digits_and_unit(others[key])
            links += [(digits, new_digits)]
            links += [(unit or digits, new_unit or new_digits)] if unit or new_unit else []
    return links


def _link_dates(source: str, target: str) -> Iterator[Link]:
    """Yield a link between the only date in digits of a source and the only one of a target, which names its month."""
    numeric, named = list(_NUMERIC_DATE.finditer(source)), list(_DATE.finditer(target))
    if len(numeric) == len(named) == 1 and numeric[0]["year"] == named[0]["year"]:
        yield numeric[0].span(), named[0].span()


def _time_key(time: re.Match[str]) -> str:
    hour, half = int(time["hour"]), (time["half"] or time["part"] or "").lower()
    return f"{hour % 12 + 12 * (half == 'p') if half else hour}:{time['minute'] or '00'}"


def _digits_and_unit(time: re.Match[str]) -> tuple[Range, Range | None]:
    kind = "unit" if time["unit"] else "only"
    begin, end = time.span(kind) if time[kind] else (time.end(), time.end())
    return (time.start(), begin), ((begin, end) if begin < end else None)


def _outside(links: Iterable[Link], others: Sequence[Link]) -> list[Link]:
    """Return those of `links` that overlap none of `others` on either side."""
    taken = [bytearray(max((link[side][1] for link in others), default=0)) for side in (0, 1)]
    for side, (begin, end) in ((taken[side], link[side]) for link in others for side in (0, 1)):
        side[begin:end] = b"\1" * (end - begin)
    return [
        link for link in links if not any(any(side[slice(*place)]) for side, place in zip(taken, link, strict=True))
    ]
