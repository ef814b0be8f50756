"""Days, hours and dates: lines such as `Mo.-Fr. 8-18 Uhr, So. geschlossen`, ranges within a sentence, and dates.

Small models double, damage or lose them. A line has nothing else, unlike `Wir haben Mo–Fr geöffnet`. It is translated
word by word, without a model. Another sentence is decoded again, with stand-ins for its ranges and dates, only if its
translation lacks one of them. Those that a translation copies are then written as the target language does.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import pairwise

from mt.languages import primary_language
from mt.text.alignment import Range, with_edits
from mt.text.protect import ProtectedSpan, SpanKind, find_spans, find_translated_spans
from mt.text.word_tables import read_tables

_TABLES = read_tables("schedules.toml")
_DAYS, _MONTHS = ({language: names.split() for language, names in _TABLES[kind].items()} for kind in ("days", "months"))
_LINKS, _WORDS, _PATTERNS = _TABLES["links"], _TABLES["lines"], _TABLES["line_patterns"]
_DASH = " ?[-–—] ?"
_ANY_HOUR = "(?:2[0-4]|1\\d|0?\\d)"
_HOUR = rf"(?:{_ANY_HOUR}[:.][0-5]\d|{_ANY_HOUR} ?h(?: ?[0-5]\d)?(?!\w)|{_ANY_HOUR}(?![\d:.]\d))"
_EXACT_HOUR = rf"{_ANY_HOUR}(?::[0-5]\d(?: Uhr)?|[:.][0-5]\d Uhr| Uhr)(?!\w)"
_FRENCH_HOUR = r"(?:1[3-9]|2[0-3]) ?h(?: ?[0-5]\d)?(?!\w)"
_KEPT = rf"(?:\d\d?{_DASH}\d\d?(?: ?h)?|\d\d? ?h(?: ?[0-5]\d)?)(?!\w)"  # maybe scores or durations: 3-1, 8 h
_TIME = re.compile(r"(\d\d?)(?:[:.h ]{1,3}(\d\d)(?!\d))?")
_DAY_OF_MONTH = r"(?:3[01]|[12]\d|0?[1-9])"
_OPENS, _NOON = 6, 12
_MOST_CHARACTERS = 200
_DAYS_OF_WEEK = ("day", "short")
_BEGINS = (*_DAYS_OF_WEEK, "sundays", "weekend", "weekdays", "holidays", "daily")
_FRANCS = re.compile(r"Fr\. [^:U]*")  # an amount of money, not a Friday
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


def translate_line(text: str, languages: tuple[str, str]) -> str | None:
    """Return the translation of a line of days and hours, or of a range of days of a month; None for another text."""
    source, target = map(primary_language, languages)
    begin = text.lstrip(" ")[:2].lower()
    if not (begin in _begins(source) or begin[:1].isdigit()):
        return None  # a fast test
    if len(text) > _MOST_CHARACTERS or not {source, target} <= _WORDS.keys():
        return None
    tokens, place, pattern = list[re.Match[str]](), 0, _token(source)
    while place < len(text):
        if not (match := pattern.match(text, place)):
            return None
        tokens.append(match)
        place = match.end()
    if not _is_line(tokens, source) or _FRANCS.fullmatch(text):
        return None
    return _written_line(tokens, source, target)


def _is_line(tokens: Sequence[re.Match[str]], language: str) -> bool:
    """Return whether tokens are a range of dates, or a day and more, and not words such as `so` and `mar`."""
    kinds = [match.lastgroup or "" for match in tokens]
    things = [kind for kind in kinds if kind not in ("and", "link", "mark")]
    if not things or kinds[0] not in _BEGINS:
        return things == ["dates"] == kinds[:1]
    days = [_day_number(match[0], language) if match.lastgroup in _DAYS_OF_WEEK else None for match in tokens]
    links = [number for number, kind in enumerate(kinds) if kind == "link"]
    pairs = [{days[number - 1], *days[number + 1 : number + 2]} for number in links]
    if len(things) < 2 or any(len(pair) < 2 or None in pair for pair in pairs):  # links are between two days
        return False
    if any(b - a == 2 for a, b in pairwise(links)):  # Mo-Di-Do
        return False
    short = [match["short"] for match in tokens if match["short"]]
    is_marked = all(day[0].isupper() for day in short) or (language == "fr" and all(day[-1] == "." for day in short))
    return is_marked or "times" in kinds


def _written_line(tokens: Sequence[re.Match[str]], source: str, target: str) -> str:
    """Return the translations of tokens, with spaces between them. All days are abbreviated if one of them is."""
    text, is_tight, is_short = "", True, any(match["short"] for match in tokens)
    kinds = ["", *(match.lastgroup or "" for match in tokens), ""]
    for number, match in enumerate(tokens):
        before, kind, after = kinds[number : number + 3]
        new = old = match[0].strip()
        if kind in _DAYS_OF_WEEK:
            new = _day(match, source, target, is_short, "link" in (before, after))
        elif kind == "link":
            new = "–" if is_short else _LINKS[target].strip()
        elif kind == "times":
            new = _written_times(old, source, target)
        elif kind == "dates":
            new = _written_days_of_month(old, source, target)
        elif kind not in ("kept", "mark"):
            new = _WORDS[target][kind]
        is_joined = new == "–" or match[0] == "/"
        is_tight |= is_joined or (kind == "mark" and old not in "(/" and not (target == "fr" and old in ":;"))
        text += new if is_tight else f" {new}"
        is_tight = is_joined or new == "("
    return text


def _day_number(text: str, language: str) -> int:
    """Return the number in the week of a day, whole or abbreviated."""
    begin = text.strip().lower()[: _length(language)]
    return next(number for number, name in enumerate(_DAYS[language]) if name.lower().startswith(begin))


def _day_name(number: int, language: str, is_short: bool) -> str:
    name: str = _DAYS[language][number]
    return name[: _length(language)] + "." * (language == "fr") if is_short else name


def _day(match: re.Match[str], source: str, target: str, is_short: bool, is_range: bool) -> str:
    name = _day_name(_day_number(match[0], source), target, is_short)
    if not is_short and match["day"] and match["day"][-1] == "s" and not is_range:
        name = {"fr": f"le {name}", "de": f"{name.lower()}s"}.get(target, f"{name}s")
    return name.upper() if match[0].strip().isupper() else name


def _length(language: str) -> int:
    return 2 if language == "de" else 3


def _written_times(text: str, source: str, target: str) -> str:
    """Return an hour, or a range of hours: `9–18 Uhr`, `9:00–18:00` and `9h–18h`."""
    times = [(int(hour), minute or "00") for hour, minute in _TIME.findall(text)]
    first, last = times[0][0], times[-1][0]
    if source == "en" and len(times) == 2 and ":" not in text and last <= first:  # 9-5
        if first > _NOON and text[0].isdigit():  # 21-15
            return text
        times[1] = (last + _NOON * (_OPENS <= first <= _NOON), times[1][1])
    link = "–" if re.search(_DASH, text) else {"fr": " à "}.get(target, _LINKS[target])
    begin = f"{_WORDS[target]['from']} " if text[0].isalpha() else ""
    if target == "fr":
        return begin + link.join(f"{hour}h{minute}".removesuffix("00") for hour, minute in times)
    is_full = target == "de" and all(minute == "00" for _, minute in times)
    written = begin + link.join(str(hour) if is_full else f"{hour}:{minute}" for hour, minute in times)
    return f"{written} Uhr" if target == "de" else written


def _written_days_of_month(text: str, source: str, target: str) -> str:
    """Return a range of days of a month: `3.–5. Mai 2025`, `May 3–5, 2025` and `3–5 mai 2025`."""
    first, last, *years = re.findall(r"\d+", text)
    name = next(new for new, old in zip(_MONTHS[target], _MONTHS[source], strict=True) if old.lower() in text.lower())
    link, year = "–" if re.search(_DASH, text) else _LINKS[target], "".join(f" {year}" for year in years)
    if target == "fr" and first == "1":
        first = "1er"
    if target == "en":
        return f"{name} {first}{link}{last}{',' * bool(year)}{year}"
    return f"{first}.{link}{last}. {name}{year}" if target == "de" else f"{first}{link}{last} {name}{year}"


@cache
def _begins(language: str) -> frozenset[str]:
    """Return the first two letters of the words of a language with which a line can begin."""
    names = [*_DAYS.get(language, ()), *_MONTHS.get(language, ()), *_PATTERNS.get(language, {}).values()]
    return frozenset(re.findall(r"\b\w\w", re.sub(r"\[\w(\w)\]", r"\1", " ".join(names)).lower()))


@cache
def _token(language: str) -> re.Pattern[str]:
    """Return a pattern of a word, hours, dates or mark of a line, of which the last group tells the kind."""
    length, names, months = _length(language), "|".join(_DAYS[language]), "|".join(_MONTHS[language])
    short = "|".join(name[:length] for name in _DAYS[language]).replace("Tue", "Tues?").replace("Thu", "Thu(?:rs?)?")
    words = (rf"(?P<{kind}>(?:{forms})(?!\w))" for kind, forms in _PATTERNS[language].items() if kind != "link")
    link = rf"(?:{_DASH}| (?:{_PATTERNS[language]['link']}) )"
    end = {"de": r"\.", "en": r"(?:st|nd|rd|th)?", "fr": "(?:er)?"}[language]
    days = rf"{_DAY_OF_MONTH}(?:{end})?{link}{_DAY_OF_MONTH}{end}"
    unsure = rf"(?:0?[0-5]{link}\d\d?|\d\d?{link}(?:0|(?:0?\d|1[01])(?= ?h)))(?! Uhr|[:.]?\d)"  # 2-3 h, and scores: 3-1
    exact = rf"{_EXACT_HOUR}|{_FRENCH_HOUR}" if language == "fr" else _EXACT_HOUR
    dates = rf"(?:{months}) {days}|{days} (?:{months})" if language == "en" else rf"{days} (?:{months})"
    return re.compile(
        rf" *(?:(?P<dates>(?i:{dates})(?:,? [12]\d{{3}})?(?!\w))"
        rf"|(?P<day>(?i:{names})s?(?!\w))|(?P<short>(?i:{short})(?!\w)\.?)|{'|'.join(words)}"
        rf"|(?P<times>(?:{_WORDS[language]['from']} |(?!{unsure})){_HOUR}{link}{_HOUR}(?: Uhr)?(?!\w)|{exact})"
        rf"|(?P<kept>{_KEPT})"
        rf"|(?P<link>[-–—]|(?:{_PATTERNS[language]['link']})(?!\w))|(?P<mark>[,:;/()]|\.\Z))"
    )


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
    """Return whether a translation lacks a day, such as `today`, or the month of a date, of its source."""
    language, target = map(primary_language, languages)
    if not {language, target} <= _DAYS.keys():
        return False
    near = zip(*(_TABLES["near_days"][one].split() for one in (language, target)), strict=True)
    return (
        any(re.search(rf"\b{day}\b", source) and new not in translation.lower() for day, new in near)
        or bool(_names("days", language, source) - _names("days", target, translation))
        or bool(lost_dates(source, translation, languages))
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
        rf"(?<![\w.,/-])(?<!Straße des )(?:(?:{days}),? )?(?:(?P<first>\d{{1,2}})(?:\.|er|st|[nr]d|th)? (?:of )?)?"
        rf"(?:{months})(?!\w)(?: (?P<last>\d\d?)(?:st|[nr]d|th)?(?![\w:-]|\.\d))?(?:,? (?P<year>[12]\d{{3}})(?![\w-]))?"
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
