"""Numbers in a translation: the notation of the target language, and repairs of what models do with numbers."""

import re
from typing import NamedTuple

from mt.languages import primary_language
from mt.text.normalise import GROUP_SPACES
from mt.text.span_patterns import ISO_4217, MONEY
from mt.text.symbols import ONE_UNIT

NO_BREAK_SPACE = "\u00a0"
NUMBER = rf"\d+(?:[.,’'{GROUP_SPACES}]\d+){{0,9}}"  # not possessive: see mt.text.span_patterns
NOT_DIGIT = re.compile(r"\D+")

_SEPARATED = re.compile(rf"(?<![\w:])(?<![\d][.,’'])\d+(?:[.,’'{GROUP_SPACES}]\d+){{1,9}}(?![\d:_]|[.,]\d)")
_MONEY_BEFORE = re.compile(rf"(?:[{MONEY}]|\b{ISO_4217})[ \u00a0]?$")
_MONEY_AFTER = re.compile(rf"[ \u00a0\u202f]?(?:[{MONEY}]|{ISO_4217}(?!\w)|[Ee]uros?\b)")
_UNIT_AFTER = re.compile(rf"[ \u00a0\u202f]?(?:[%‰]|°[CF]?(?!\w)|{ONE_UNIT}(?![\w'’-])|cm\b)|[ -]inch")
_DASH = re.compile("[-–—]")
_DIGIT = re.compile(r"\d")
_SIGN = re.compile(rf"[{MONEY}]")
_TIME = re.compile(r"(?<![\w:.,])(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b", re.IGNORECASE)
_PART_OF_DAY = re.compile(
    r"\b[ap]\.?m\b|morgen|mittag|abend|nacht|früh|matin|midi|soir|nuit|avond|middag|sera|pomeriggio|notte|noche|tarde",
    re.IGNORECASE,
)
_SPACED_RANGE = re.compile(r"(?<![\d.,:])(\d{1,9})( [-–—] )(\d{1,9})(?![\d:]|[.,]\d)")
_DAMAGED_RANGE = re.compile(r"(?<![\d:])(\d{1,9})(?::| ?-- ?)(\d{1,9})(?![\d:])")
_NUMBER_AND_NOUN = re.compile(r"((?:^|(?<!\S)[a-zäöüß]{1,40} )(\d{1,9}))-(?=[A-ZÄÖÜ][a-zäöüß]+(?![\w-]))")


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


def mend_numbers(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Undo what models do with numbers, and write them as the target language does.

    `5:10` for `5 - 10` and `3-Dateien` for `3 files` are mended. A time with "pm" that the translation has lost becomes
    a time of 24 hours. Another sign of money than that of the source, as in `$12` for `12 €`, is replaced. `languages`
    are source and target.
    """
    if (written := set(_SIGN.findall(translation))) and written.isdisjoint(signs := set(_SIGN.findall(source))):
        translation = _SIGN.sub(signs.pop(), translation) if len(signs) == 1 else translation
    if not _DIGIT.search(translation):
        return translation
    if _DASH.search(source) or "-" in translation:
        translation = _with_ranges(source, translation)
    return localise_numbers(source, _with_hours_of_day(source, translation, languages[1]), languages)


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


def localise_numbers(source: str, translation: str, languages: tuple[str, str], *, only_money: bool = False) -> str:
    """Return a translation in which the numbers of the source have the marks of the target language.

    The notation of a number that has another meaning, such as a version, stays that of the model: a number is converted
    if its marks allow one reading in the source language, or if money or a unit is beside it.
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
    if not decimals.isdecimal() and decimals:
        return None
    money = _MONEY_BEFORE.search(text, max(0, match.start() - 5), match.start()) or _MONEY_AFTER.match(
        text, match.end()
    )
    if text[match.end() : match.end() + 1].isalpha() and not _UNIT_AFTER.match(text, match.end()):
        return None
    is_amount = money is not None or (not only_money and _UNIT_AFTER.match(text, match.end()) is not None)
    if not is_amount and (only_money or (before.decimal == "." != after.decimal and not grouped)):
        return None
    if not money and len(whole) == 4 and max(map(int, whole)) < 256:  # an address of the Internet
        return None
    space = re.search(f"[{GROUP_SPACES}]", number)  # of the language, or of the International System
    space = space if after.group == NO_BREAK_SPACE or before.group != NO_BREAK_SPACE else None
    return (space[0] if space else after.group).join(whole) + (after.decimal + decimals if decimals else "")


def _with_hours_of_day(source: str, translation: str, language: str) -> str:
    """Add 12 to the hours of times with "pm" in the source, unless the translation tells the part of the day."""
    times = _TIME.findall(source) if "m" in source or "M" in source else []
    if not times or _MARKS.get(primary_language(language), _Marks(".", "")).decimal == ".":
        return translation
    if _PART_OF_DAY.search(translation) or len({(hour, minute) for hour, minute, _ in times}) < len(times):
        return translation
    for hour, minute, half in times:
        of_day = int(hour) % 12 + (12 if half in "pP" else 0)
        follows = rf"(?:[:.]| ?h ?| heures ){minute}(?!\d)" if minute else r"(?: ?h\b|[:.]00| (?:Uhr|heures?|uur)\b)"
        pattern = rf"(?<![\d:.,]){hour}(?={follows})"
        translation = re.sub(pattern, str(of_day), translation, count=1)
    return translation
