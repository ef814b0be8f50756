"""Numbers in a translation: the notation of the target language, and repairs of what models do with numbers."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.normalise import GROUP_SPACES
from mt.text.protect import SpanKind, find_spans
from mt.text.span_patterns import ISO_4217, MONEY
from mt.text.symbols import ONE_UNIT

NO_BREAK_SPACE = "\u00a0"
NUMBER = rf"\d+(?:[.,’'{GROUP_SPACES}]\d+){{0,9}}"  # not possessive: see mt.text.span_patterns
NOT_DIGIT = re.compile(r"\D+")

_SEPARATED = re.compile(
    rf"(?<![\w:/])(?<![^\W\d_]-)(?<![\d][.,’'])\d+(?:[.,’'{GROUP_SPACES}]\d+){{1,9}}(?![\d:_]|[.,]\d|\.\w)"
)
_RANGE = r"(?: ?[-–—] ?| [^\W\d_]{1,3} )"  # 2.5 - 3.5 kg, 2.5 to 3.5 kg
_MONEY_BEFORE = re.compile(rf"(?:[{MONEY}]|\b{ISO_4217})[ \u00a0]?(?:\d+[.,]\d+{_RANGE})?$")
_REST = rf"(?:{_RANGE}\d+[.,]\d+)?[ \u00a0\u202f]?"
_MONEY_AFTER = re.compile(rf"{_REST}(?:[{MONEY}]|{ISO_4217}(?!\w)|[Ee]uros?\b)")
_UNIT_AFTER = re.compile(rf"{_REST}(?:[%‰]|°[CF]?(?!\w)|(?=\w\w|(?<=\s)[a-z]){ONE_UNIT}(?![\w'’-])|cm\b)|[ -]inch")
_CODE_BEFORE = re.compile(r"[\[{]$|\w\($")  # f(1,000), but not a town (10,000 people)
_DASH = re.compile("[-–—]")
_DIGIT = re.compile(r"\d")
_SIGN = re.compile("[$£¥\u20a0-\u20cf]")  # not of cents: 50¢ are 0.50 $
_ONE = "\ufffc"  # stands for a span whose digits stay
_TIME = re.compile(r"(?<![\w:.,])(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b", re.IGNORECASE)
_TIME_RANGE = re.compile(  # 2 to 4 pm: both are in the afternoon
    r"\d ?(?:[-–—]|to|and|until|till) ?(?:1[0-2]|0?[1-9])(?:[:.]\d\d)? ?[ap]\.?m\b", re.IGNORECASE
)
_PART_OF_DAY = re.compile(
    r"\b[ap]\.?m\b|morgen|mittag|abend|nacht|früh|matin|midi|soir|nuit|ochtend|avond|middag",
    re.IGNORECASE,
)
_WITH_24_HOURS = frozenset({"de", "fr", "nl"})  # languages of _PART_OF_DAY
_SPACED_RANGE = re.compile(r"(?<![\d.,:])(\d{1,9})( [-–—] )(\d{1,9})(?![\d:]|[.,]\d)")
_DAMAGED_RANGE = re.compile(r"(?<![\d:])(\d{1,9})(?::| ?-- ?)(\d{1,9})(?![\d:])")
_NUMBER_AND_NOUN = re.compile(r"((?:^|(?<!\S)[a-zäöüß]{1,40} )(\d{1,9}))-(?=[A-ZÄÖÜ][a-zäöüß]+(?![\w-]))")
_GROUPED = re.compile(  # 1 234,50 and 1 234 € and 1 234 567, but not 12 345: two numbers may follow each other
    r"(?<![\w.,])\d{1,3}(?: \d{3}){1,5}(?:(?=[.,]\d\d?(?!\d))|(?= ?[€$£¥%])|(?= (?:EUR|USD|CHF|GBP|[Ee]uros?)\b))"
    r"|(?<![\w.,])\d{1,3}(?: \d{3}){2,5}(?!\w)"
)
_HOURS = re.compile(r"(?<![\d.,])([01]?\d|2[0-4])\.(?=[0-5]\d Uhr\b)")  # 15.30 Uhr


class _Marks(NamedTuple):
    """Marks of a language: that of decimals, and that between the groups of digits."""

    decimal: str
    group: str


_MARKS = {
    language: marks
    for marks, languages in (
        (_Marks(",", "."), "az bs ca da de el es eu gl hr id is it lb mk nl pt ro sl sq sr tr vi"),
        (_Marks(",", NO_BREAK_SPACE), "be bg cs et fi fr hu hy ka kk lt lv nb nn no pl ru sk sv uk"),
        (_Marks(".", ","), "bn cy en ga he hi ja ko ms mt ta te th tl ur yue zh"),
    )
    for language in languages.split()
}
_OTHER_MARKS = frozenset({"de-CH", "de-LI", "en-ZA", "es-419", "es-MX", "es-US", "fr-CH", "it-CH"})


def join_numbers(text: str, kept: Sequence[Range] = ()) -> str:
    """Join the groups of a number by no-break spaces, and hours and minutes by a colon, as in `15:30 Uhr`.

    Code, addresses and the ranges `kept` stay. The length of the text does not change.
    """
    patterns = [pattern for pattern in (_HOURS, _GROUPED) if pattern.search(text)]
    if not patterns:
        return text
    spans = [span for span in find_spans(text, kept) if span.kind is not SpanKind.NUMBER]
    ends = [span.end for span in spans]

    def joined(match: re.Match[str]) -> str:
        number = bisect_right(ends, match.start())
        if number < len(spans) and spans[number].begin < match.end():
            return match[0]
        return match[0].replace(".", ":") if match.re is _HOURS else match[0].replace(" ", NO_BREAK_SPACE)

    for pattern in patterns:
        text = pattern.sub(joined, text)
    return text


def mend_numbers(
    source: str, translation: str, languages: tuple[str, str], kept: Sequence[Range] = (), *, only_money: bool = False
) -> str:
    """Undo what models do with numbers, and write them as the target language does.

    `5:10` for `5 - 10` and `3-Dateien` for `3 files` are mended. A time with "pm" that the translation has lost becomes
    a time of 24 hours. Another sign of money than that of the source, as in `$12` for `12 €`, is replaced. `languages`
    are source and target. Code, addresses and the ranges `kept` of the source stay. With `only_money`, amounts of money
    are all that is written otherwise.
    """
    if not (_DIGIT.search(translation) or _SIGN.search(translation)):
        return translation
    texts = {span.text for span in find_spans(source, kept) if span.kind is not SpanKind.NUMBER}
    texts = {text for text in texts if _DIGIT.search(text) or _SIGN.search(text)}
    stay: list[str] = []
    if texts:
        longest_first = sorted(texts, key=len, reverse=True)
        spans = re.compile(rf"(?<!\d)(?:{'|'.join(map(re.escape, longest_first))})(?!\d)|{_ONE}")
        stay = spans.findall(translation)
        source, translation = spans.sub(_ONE, source), spans.sub(_ONE, translation)
    if not only_money:
        translation = _mend(source, translation, languages)
    translation = _localise(source, translation, languages, only_money)
    texts_in_order = iter(stay)
    return re.sub(_ONE, lambda match: next(texts_in_order), translation) if stay else translation


def _mend(source: str, translation: str, languages: tuple[str, str]) -> str:
    if (written := set(_SIGN.findall(translation))) and written.isdisjoint(signs := set(_SIGN.findall(source))):
        translation = _SIGN.sub(signs.pop(), translation) if len(signs) == 1 else translation
    if _DASH.search(source) or "-" in translation:
        translation = _with_ranges(source, translation)
    return _with_hours_of_day(source, translation, languages)


def _with_ranges(source: str, translation: str) -> str:
    ranges = {(first, last): f"{first}{dash}{last}" for first, dash, last in _SPACED_RANGE.findall(source)}
    ranges = {pair: text for pair, text in ranges.items() if int(pair[0]) < int(pair[1])}  # 3 - 1 is a score
    for pair in _DAMAGED_RANGE.findall(source):
        ranges.pop(pair, None)

    def with_space(match: re.Match[str]) -> str:
        return f"{match[1]} " if f"{match[2]} " in source and f"{match[2]}-" not in source else match[0]

    if ranges:
        translation = _DAMAGED_RANGE.sub(lambda match: ranges.get((match[1], match[2]), match[0]), translation)
    return _NUMBER_AND_NOUN.sub(with_space, translation)


def _localise(source: str, translation: str, languages: tuple[str, str], only_money: bool) -> str:
    """Return a translation in which the amounts of the source have the marks of the target language.

    The notation of a number that may have another meaning, such as a version, stays that of the model: a number is
    converted if money or a unit is beside it, if it has groups and decimals, or if it is a number of thousands.
    """
    if not _SEPARATED.search(source):
        return translation
    before, after = (None if tag in _OTHER_MARKS else _MARKS.get(primary_language(tag)) for tag in languages)
    if before is None or after is None:
        return translation
    notations: dict[tuple[str, ...], str | None] = {}
    for match in _SEPARATED.finditer(source):
        parts = tuple(NOT_DIGIT.split(match[0]))
        notation = _notation(match, before, after, only_money)
        if notations.setdefault(parts, notation) != notation:  # for example a version and a price
            notations[parts] = None
    return _SEPARATED.sub(lambda match: notations.get(tuple(NOT_DIGIT.split(match[0]))) or match[0], translation)


def _notation(match: re.Match[str], before: _Marks, after: _Marks, only_money: bool) -> str | None:
    """Return a number of the source as the target language writes it, or None if it may be no number."""
    number, text = match[0], match.string
    *groups, decimals = number.split(before.decimal) if before.decimal in number else (number, "")
    whole = NOT_DIGIT.split(groups[0])
    grouped = len(whole) > 1
    if len(groups) > 1 or (grouped and (len(whole[0]) > 3 or any(len(group) != 3 for group in whole[1:]))):
        return None
    if (not decimals.isdecimal() and decimals) or (grouped and whole[0].startswith("0")):
        return None
    if not _is_amount(match, only_money):
        surely = grouped and (decimals or whole[-1] == "000")
        if only_money or not surely or _CODE_BEFORE.search(text[max(0, match.start() - 2) : match.start()]):
            return None
    space = re.search(f"[{GROUP_SPACES}]", number)  # of the language, or of the International System
    space = space if after.group == NO_BREAK_SPACE or before.group != NO_BREAK_SPACE else None
    return (space[0] if space else after.group).join(whole) + (after.decimal + decimals if decimals else "")


def _is_amount(match: re.Match[str], only_money: bool) -> bool:
    """Return whether money or, unless `only_money`, a unit is beside a number.

    A unit of one capital letter may be a label.
    """
    text, begin, end = match.string, match.start(), match.end()
    unit = _UNIT_AFTER.match(text, end)
    if text[end : end + 1].isalpha() and not unit:
        return False
    if _MONEY_AFTER.match(text, end) or _MONEY_BEFORE.search(text, max(0, begin - 20), begin):
        return True
    return unit is not None and not only_money


def _with_hours_of_day(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Add 12 to the hours of times with "pm" in an English source, if the translation tells no part of the day.

    The translation stays if it is unclear which of its numbers is the hour.
    """
    times = _TIME.findall(source) if "m" in source or "M" in source else []
    source_language, language = map(primary_language, languages)
    if not times or source_language != "en" or language not in _WITH_24_HOURS or _PART_OF_DAY.search(translation):
        return translation
    if _TIME_RANGE.search(source):
        return translation
    numbers, written = re.findall(r"\d+", source), re.findall(r"\d+", translation)
    of_day = {hour: str(int(hour) % 12 + (12 if half in "pP" else 0)) for hour, _, half in times}
    changed = {hour: other for hour, other in of_day.items() if other != hour}
    if any(numbers.count(hour) > 1 or written.count(hour) > 1 or other in written for hour, other in changed.items()):
        return translation
    for hour, minute, _ in times:
        follows = rf"(?:[:.]| ?h ?| heures ){minute}(?!\d)" if minute else r"(?: ?h\b|[:.]00| (?:Uhr|heures?|uur)\b)"
        translation = re.sub(rf"(?<![\d:.,]){hour}(?={follows})", of_day[hour], translation, count=1)
    return translation
