"""Days, hours and dates of a sentence: ranges such as `Mo–Fr` and `9–18 Uhr`, and dates with the name of a month.

Small models double, damage or lose them. A sentence is decoded again, with stand-ins for its ranges and dates, only if
its translation lacks one of them. Those that a translation copies are then written as the target language does.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache

from mt.languages import primary_language
from mt.text.alignment import Range, with_edits
from mt.text.protect import ProtectedSpan, SpanKind, find_spans, find_translated_spans
from mt.text.word_tables import read_tables

_TABLES = read_tables("schedules.toml")
_DAYS, _MONTHS = ({language: names.split() for language, names in _TABLES[kind].items()} for kind in ("days", "months"))
_LINKS = _TABLES["links"]
_DASH = " ?[-–—] ?"
_LINK = r"(?: ?[-–—] ?| (?:to|through(?: to)?|until|till|and|bis(?: zum)?|und|au|à|et|jusqu['’](?:au|à)) )"
_WRITTEN_DAYS = re.compile(_TABLES["written_days"])
_LINK_WORDS = " (?:bis|to|through|au|à) "
_ANY_LINK = re.compile(f"-|–|—|{_LINK_WORDS}")  # no set, so that `re` searches for its first letters
_HOUR_OF_RANGE = r"([01]?\d|2[0-4])(?::([0-5]\d))?"
_TIMES = re.compile(  # 9:00–18:00 and 9–18 Uhr
    r"(?<![\w:./@–-])(?=\d?\d:|[\d –—-]{3,9} Uhr\b|\d\d? bis \d\d? Uhr\b)"
    rf"{_HOUR_OF_RANGE}(?:{_DASH}| bis ){_HOUR_OF_RANGE}(?: Uhr\b)?(?![\w:/@–-]|\.\w)"
)
_DIGIT = re.compile(r"\d")
_OPENING = re.compile(r"\b(?:open(?:ing)?|hours|Uhr|geöffnet)\b|\d ?[ap]\.?m\b", re.IGNORECASE)


def _day_number(text: str, language: str) -> int:
    """Return the number in the week of a day, whole or abbreviated."""
    begin = text.strip().lower()[: _length(language)]
    return next(number for number, name in enumerate(_DAYS[language]) if name.lower().startswith(begin))


def _day_name(number: int, language: str, is_short: bool) -> str:
    name: str = _DAYS[language][number]
    return name[: _length(language)] + "." * (language == "fr") if is_short else name


def _length(language: str) -> int:
    return 2 if language == "de" else 3


def has_ranges(source: str, language: str) -> bool:
    """Return whether a source may have ranges: most sentences have none, and need no look for protected spans."""
    language = primary_language(language)
    return _ANY_LINK.search(source) is not None and bool(
        (_DIGIT.search(source) and _TIMES.search(source))
        or (language in _DAYS and _second_day(language).search(source) and _ranges(language).search(source))
    )


def lost_ranges(source: str, translation: str, languages: tuple[str, str], kept: Sequence[Range] = ()) -> list[Range]:
    """Return the ranges of days and times in a source that its translation lacks, without those in protected spans."""
    if not has_ranges(source, languages[0]):
        return []
    language, target = map(primary_language, languages)
    lost, covered = [], _places(find_spans(source, kept))
    for match, numbers in _days(source, language, covered):
        days = [_forms(target)[number] for number in numbers] if target in _DAYS else []
        # A copy is not lost: `mend_ranges` rewrites it.
        if not re.search(rf"{_LINK.join(days)}|{_any_link(match[0])}" if days else _WRITTEN_DAYS, translation):
            lost.append(match.span())
    for match in _times(source, covered):
        pairs = _clock_times(match)
        times = (rf"(?<!\d)0?{int(h)} ?(?:[:h] ?{m}|{'h' * (m == '00')})(?! ?\d)" for h, m in pairs)
        copied = _any_link(match[0])
        if (lost and target == "fr") or not re.search(rf"{_LINK.replace('-', '').join(times)}|{copied}", translation):
            lost.append(match.span())
    return lost


def mend_ranges(source: str, translation: str, languages: tuple[str, str], kept: Sequence[Range] = ()) -> str:
    """Return a translation in which the ranges of its source are those of the target language. Protected spans stay."""
    language, target = map(primary_language, languages)
    spans, written = find_spans(source, kept), {}
    covered = _places(spans)
    for match, numbers in _days(source, language, covered) if target in _DAYS else ():
        is_short = len(match[1].rstrip(".")) == _length(language)
        text = ("–" if is_short else _LINKS[target]).join(_day_name(number, target, is_short) for number in numbers)
        written[match[0]] = text.upper() if match[0].isupper() else text
    has_day = bool(written) or any(name.lower() in source.lower() for name in _DAYS.get(language, ()))
    opening = 0 if has_day else next((match.end() for match in _OPENING.finditer(source)), len(source) + 1)
    for match in _times(source, covered) if target != "de" else ():
        written[match[0]] = match[0].removesuffix(" Uhr")
        link = {"en": " to ", "fr": " à "}.get(target, "–") if " bis " in match[0] else "–"
        if None in match.group(2, 4) or link != "–":
            written[match[0]] = link.join(map(":".join, _clock_times(match)))
        if target == "fr" and opening <= match.end():  # no ratio
            written[match[0]] = link.join(f"{hour}h{minute}".removesuffix("00") for hour, minute in _clock_times(match))
    for text, new in written.items():
        pattern = rf"(?i)(?<![\w./@-]){_any_link(text)}{'[.]?' * new.endswith('.')}(?![\w/@-]|\.\w)"
        copies = _places(find_translated_spans(translation, spans))
        outside = (match for match in re.finditer(pattern, translation) if copies.isdisjoint(range(*match.span())))
        translation = with_edits(translation, ((*match.span(), new) for match in outside))
    return translation


def lost_dates(source: str, translation: str, languages: tuple[str, str]) -> list[Range]:
    """Return the ranges of the dates whose month or day of the week a translation lacks, or gives another day."""
    language, target = map(primary_language, languages)
    if not (dates := _dates(source, language) if target in _DAYS else []):
        return []
    invented = {month for _, (day, month, _) in _dates(translation, target) if day}
    invented -= {month for _, (day, month, _) in dates if day}
    right = _names("months", target, translation).keys() - invented
    days = _names("days", target, translation)
    lost = (date for date, (_, month, _) in dates if month not in right or _names("days", language, date[0]) - days)
    return [date.span() for date in lost if date[0] not in translation]


def has_names(text: str, language: str) -> bool:
    """Return whether a text in a language names a day or a month."""
    language = primary_language(language)
    return language in _DAYS and any(_names(kind, language, text) for kind in ("days", "months"))


def lost_days(source: str, translation: str, languages: tuple[str, str]) -> bool:
    """Return whether a translation lacks a day, or the month of a date, of its source."""
    language, target = map(primary_language, languages)
    if not {language, target} <= _DAYS.keys():
        return False
    return bool(_names("days", language, source) - _names("days", target, translation)) or bool(
        lost_dates(source, translation, languages)
    )


def mend_dates(source: str, translation: str, languages: tuple[str, str], kept: Sequence[Range] = ()) -> str:
    """Write the dates that a translation copies from its source, outside of the ranges `kept`, in its language."""
    language, target = map(primary_language, languages)
    for date, key in _dates(source, language) if target in _DAYS else ():
        if not any(begin < date.end() and date.start() < end for begin, end in kept):
            translation = translation.replace(date[0], write_date(date[0], *key, language, target))
    return translation


def _dates(text: str, language: str) -> list[tuple[re.Match[str], tuple[str, int, str]]]:
    """Return the dates that name a month, such as `lundi 1er mars 2010`, with their days, months and years."""
    if language not in _DAYS or not _DIGIT.search(text) or not _names("months", language, text):
        return []
    dates = ((one, one["first"] or one["last"] or "", one["year"] or "") for one in _date(language).finditer(text))
    return [(one, (day, min(_names("months", language, one[0])), year)) for one, day, year in dates if day or year]


def write_date(date: str, day: str, month: int, year: str, language: str, target: str) -> str:
    """Return a date in a target language, with the days of the week that `date`, in another language, names."""
    names = [_DAYS[target][number - 1] for number in _names("days", language, date)]
    name = _MONTHS[target][month - 1]
    if target == "en":
        return ", ".join([*names, f"{name} {day}{', ' * bool(day and year)}{year}".rstrip()])
    dot = "." if target == "de" else "er" * (day == "1")
    return (", " if target == "de" else " ").join([*names, f"{f'{day}{dot} ' * bool(day)}{name} {year}".rstrip()])


@cache
def _date(language: str) -> re.Pattern[str]:
    days, months = "|".join(_DAYS[language]), "|".join(_MONTHS[language])
    return re.compile(
        rf"(?<![\w.,/-])(?:(?:{days}),? )?(?:(?P<first>\d{{1,2}})(?:\.|er|st|[nr]d|th)? (?:of )?)?(?:{months})(?!\w)"
        r"(?: (?P<last>\d{1,2})(?:st|[nr]d|th)?(?![\w:-]|\.\d))?(?:,? (?P<year>[12]\d{3})(?![\w-]))?"
    )


def _names(kind: str, language: str, text: str) -> Counter[int]:
    names, pattern = _any_name(kind, language)
    if not any(map(text.lower().__contains__, names)):
        return Counter()  # a fast test
    return Counter([match.lastindex or 0 for match in pattern.finditer(text)])


@cache
def _any_name(kind: str, language: str) -> tuple[list[str], re.Pattern[str]]:
    names = _TABLES[kind][language].split()
    pattern = "|".join(f"({name})" for name in names)
    return [name.lower() for name in names], re.compile(rf"(?i)(?<!\w)(?:{pattern})s?(?!\w)")


@cache
def _forms(language: str) -> list[str]:
    """Return a pattern of each day, whole or abbreviated."""
    length = _length(language)
    return [rf"(?<!\w)(?i:{name[:length]}(?:{name[length:]}s?|\.)?)(?!\w)" for name in _DAYS[language]]


@cache
def _second_day(language: str) -> re.Pattern[str]:
    """Return a pattern of what all ranges of days contain, for a fast test."""
    short = "|".join(name[: _length(language)] for name in _DAYS[language])
    return re.compile(rf"(?:- ?|– ?|— ?|{_LINK_WORDS})(?i:{short})")


@cache
def _ranges(language: str) -> re.Pattern[str]:
    whole, short = "|".join(_DAYS[language]), "|".join(name[: _length(language)] for name in _DAYS[language])
    stops = r"(\.)?", r"(?(2)(?:\.(?!\s*\Z))?|(?:\.(?= ?[\d,:;)]))?)"  # the last stop ends the sentence
    first, second = (rf"(?:(?i:{whole})s?(?!\w)|(?i:{short})(?!\w){stop})" for stop in stops)
    return re.compile(rf"(?<![\w./@-])({first})({_DASH}|{_LINK_WORDS})({second})(?![\w/@-]|\.\w)")


def _days(source: str, language: str, covered: Set[int]) -> Iterator[tuple[re.Match[str], list[int]]]:
    """Yield the ranges of different days. An abbreviation is no word, such as `so`, and no code, such as `fr-FR`."""
    for match in _ranges(language).finditer(source) if language in _DAYS else ():
        numbers = [_day_number(day, language) for day in match.group(1, 4)]
        short = [day for day in match.group(1, 4) if len(day.rstrip(".")) == _length(language)]
        marked = all(map(str.istitle, short)) or all(map(str.isupper, short))
        marked |= language == "fr" and bool(match[2] or not match[3].strip().isalpha())
        marked |= len(short) == len(match[3]) == 1  # such as `mo–freitag` of a headline in lower case, or mon-fri 9:00
        marked |= all(map(str.islower, short)) and re.match(":? ?\\d", source[match.end() :]) is not None
        if marked and numbers[0] != numbers[1] and covered.isdisjoint(range(*match.span())):
            yield match, numbers


def _clock_times(match: re.Match[str]) -> list[tuple[str, str]]:
    """Return the hours and minutes of a match of `_TIMES`."""
    return [(str(int(hour)), minute or "00") for hour, minute in (match.group(1, 2), match.group(3, 4))]


def _times(source: str, covered: Set[int]) -> Iterator[re.Match[str]]:
    return (match for match in _TIMES.finditer(source) if covered.isdisjoint(range(*match.span())))


def _places(spans: Iterable[ProtectedSpan]) -> set[int]:
    """Return the places within spans that are no numbers."""
    return {place for span in spans if span.kind is not SpanKind.NUMBER for place in range(span.begin, span.end)}


def _any_link(text: str) -> str:
    """Return a pattern of a text with any dash or word between two times, and any word for `Uhr`."""
    pattern = re.sub("[-–—]", "[-–—]", re.escape(text).replace(r"\-", "-"))
    if pattern.endswith(r"\ Uhr"):
        pattern = pattern.removesuffix(r"\ Uhr") + "(?: (?:Uhr|o['’]clock|heures|h|[ap]m))?"
    return pattern.replace(r"\ bis\ ", " (?:bis|to|until|à|au) ")
