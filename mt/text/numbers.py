"""Numbers and times: for a model, in the notation of the target language, and repairs of what models write."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import NamedTuple

from mt.languages import primary_language
from mt.text.abbreviations import ends_sentence
from mt.text.alignment import Range
from mt.text.normalise import GROUP_SPACES, NormalisedText
from mt.text.protect import SpanKind, find_spans
from mt.text.schedules import write_date
from mt.text.span_patterns import ISO_4217, MONEY, PERIODS
from mt.text.symbols import ONE_UNIT
from mt.text.word_tables import filled, read_tables

NO_BREAK_SPACE = "\u00a0"
NUMBER = rf"\d+(?:[.,’'{GROUP_SPACES}]\d+){{0,9}}"  # not possessive: see mt.text.span_patterns
NOT_DIGIT = re.compile(r"\D+")

_RANGE = r"(?: ?[-–—] ?| [^\W\d_]{1,3} )"  # 2.5 - 3.5 kg, 2.5 to 3.5 kg
_MONEY_BEFORE = re.compile(rf"(?:[{MONEY}]|\b{ISO_4217})[ \u00a0]?(?:\d+[.,]\d+{_RANGE})?$")
_REST = rf"(?:{_RANGE}\d+[.,]\d+)?[ \u00a0\u202f]?"
_MONEY_AFTER = re.compile(rf"{_REST}(?:[{MONEY}]|{ISO_4217}(?!\w)|[Ee]uros?\b)")
_ORDINAL, _RANGE_OF_NUMBERS, _LABEL_BEFORE, _DECIMAL_BEFORE, _COUNTED, _NAME_BEFORE = (
    re.compile(pattern) for pattern in read_tables("numbers.toml")["marks_of_numbers"].values()
)
_CODE_BEFORE = re.compile(r"[\[{]$|\w\($")  # f(1,000), but not a town (10,000 people)
_DIGIT = re.compile(r"\d")
_OCLOCK = re.compile(r"(?<!to )(?<!and )(?<![\d:–-])((?:0|1[3-9]|2[0-4])(?::[0-5]\d)?|\d?\d:[0-5]\d) o['’]clock\b")
_BYTES = re.compile(rf"(?<=\d)[ {GROUP_SPACES}]?[kKMGTP]i?B\b")
_AMOUNT = rf"{NUMBER}(?!\d|[.,]\d)"
_PERCENT = re.compile(rf"[ {GROUP_SPACES}]%(?<=\d.%)(?!\w)")
_SIGN = re.compile("[$£¥\u20a0-\u20cf]")  # not of cents: 50¢ are 0.50 $
_COMPARED = re.compile(r"[A-Za-z] [<>≤≥≠=] -?\d{1,12},\d{1,12}")  # x = 3,5
_ONE = "\ufffc"  # stands for a span whose digits stay

_HOUR_AND_MINUTE = re.compile(r"(\d+)(?: ?h|\.)(?: ?(\d\d))?")
_NO_TIMES = re.compile(r"(?:et|à) \d\d? ?h(?: par\b| ?/)|lieu de \d\d? ?h\b|durée \w+ à ")  # but durations
_TABLES = read_tables("numbers.toml")
_MONTHS = {language: names.split() for language, names in read_tables("schedules.toml")["months"].items()}
SCALE_WORDS = {language: words.split() for language, words in _TABLES["scales"].items()}
_SCALE = re.compile(rf"(?<!\d)({NUMBER})[ \u00a0-]([^\W\d_]*[Ii]ll[^\W\d_]+)")
_LENGTH = re.compile(r"(?<![\w.,:])(\d{1,3}) ?h ?(\d\d?) ?m(?:in)?\b(?!/)(?: ?(\d\d?) ?s(?:ec)?\b)?")  # 2 h 15 min
_BELOW_TWO = re.compile(r"[01](?:[.,]\d{1,2})?")  # French has plurals from 2 on
_SCALES = {"m": "million", "b": "billion", "bn": "billion", "tn": "trillion"}
_WITH_24_HOURS = frozenset({"de", "fr", "nl"})  # languages in which English times of day have 24 hours
_NO_LABEL = "".join(rf"(?<!{re.escape(word)} )" for word in _TABLES["labels"]["words"].split())
_PARTS = {"money": MONEY, "label": _NO_LABEL, "code": ISO_4217, "amount": _AMOUNT, "rest": _REST, "unit": ONE_UNIT}
_SEPARATED, _UNIT_AFTER, _MONEY_FIRST, _MONEY_LAST, _SCALED = (
    re.compile(filled(pattern, {**_PARTS, "spaces": GROUP_SPACES})) for pattern in _TABLES["amounts"].values()
)
_TIMES, _FULL_DATES = (
    {
        language: re.compile(filled(_TABLES[key][language], {**_TABLES[key], **_PARTS}))
        for language in ("de", "en", "fr")
    }
    for key in ("times", "dates")
)
_DATES = re.compile(filled(_TABLES["dates"]["without_year"], _TABLES["dates"]))
_MONTHS_OF_YEAR = 12
_ONLY_DATES, _ANY_YEAR = re.compile(r"[\d./:,\s–-]*\d{4}[\d./:,\s–-]*"), re.compile(r"\d{4}")
_DATE_FORMS = {"de": "{day}.{month}.{year}", "en": "{year}-{month}-{day}", "fr": "{day}/{month}/{year}"}
_NUMBER_AND_NOUN, _GROUPED, _GROUPED_FRENCH, _LONG_CODE_BEFORE = map(re.compile, _TABLES["patterns"].values())


class _Reading(NamedTuple):
    """Pattern of what models read otherwise, and the function that writes a match of it for them."""

    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], str]


class _Marks(NamedTuple):
    """Marks of a language: that of decimals, and that between the groups of digits."""

    decimal: str
    group: str


MARKS = {name: _Marks(*marks) for marks, names in _TABLES["marks"].items() for name in names.split()}
_OTHER_MARKS = frozenset({"de-CH", "de-LI", "en-ZA", "es-419", "es-MX", "es-US", "fr-CH", "it-CH"})


def unify_numbers(text: NormalisedText, languages: tuple[str, str], kept: Sequence[Range] = ()) -> NormalisedText:
    """Write numbers as models read them: groups joined by no-break spaces, `15:30 (EST)`, `$2 billion`, and `2,50 €`.

    `languages` are source and target. English times get 24 hours for languages that count so. Code, addresses and the
    ranges `kept` of `text.text` stay.
    """
    if not (_DIGIT.search(text.text) or ("}" in text.text and "/" in text.text)):
        return text
    source, target = map(primary_language, languages)
    readings = _READINGS.get(source, _OTHER_READINGS)
    if source == target:  # of a text that stays, such as $1.2M
        readings = [one for one in readings if one.write in (_grouped, _with_scale_in_words)]
    if _NO_TIMES.search(text.text) if source == "fr" else source == "en" and target not in _WITH_24_HOURS:
        readings = [one for one in readings if one.pattern is not _TIMES[source]]
    found = [(match, write) for pattern, write in readings for match in pattern.finditer(text.text)]
    if not found:
        return text
    spans = [span for span in find_spans(text.text, kept) if span.kind is not SpanKind.NUMBER]

    def is_free(match: re.Match[str], write: Callable[[re.Match[str]], str]) -> bool:
        begin, end = match.span()
        others = [span for span in spans if span.begin < end and begin < span.end]
        if write is _grouped:
            return not (others or _LONG_CODE_BEFORE.search(text.text, max(0, begin - 20), begin))
        codes = [span for span in others if span.kind is SpanKind.OPAQUE]  # 14h30
        return codes == others and all(begin <= code.begin and code.end <= end for code in codes)

    edits, last = list[tuple[int, int, str]](), 0
    for match, write in sorted((pair for pair in found if is_free(*pair)), key=lambda pair: pair[0].start()):
        if match.start() >= last:
            edits.append((*match.span(), write(match)))
            last = match.end()
    return text.edit(edits)


def _grouped(number: re.Match[str]) -> str:
    return number[0].replace(" ", NO_BREAK_SPACE)


def _with_length(language: str) -> _Reading:
    """Return the reading of `2 h 15 min` as hours, minutes and seconds in words of a language."""
    hour, end, link, *units = _TABLES["lengths"][language].split()

    def written(length: re.Match[str]) -> str:
        parts = [
            (one.lstrip("0") or "0", unit) for one, unit in zip(length.groups(), (hour, *units), strict=True) if one
        ]
        words = [f"{number} {unit}{end * (number != '1')}" for number, unit in parts]
        return f" {link} ".join([", ".join(words[:-1]), words[-1]])

    return _Reading(_LENGTH, written)


def _with_months(dates: re.Match[str]) -> str:
    """Return German dates without year with the names of their months."""
    ranges = re.sub(" ?[-–] ?", " bis ", dates[0])
    months = re.sub(r"0?(\d+)\. ?(\d+)\.", lambda date: f"{date[1]}. {_MONTHS['de'][int(date[2]) - 1]}", ranges)
    return months + _final_stop(dates)


def _with_month(language: str) -> _Reading:
    """Return the reading of a full date, such as 12/25/2024 in English, with the name of its month."""

    def written(date: re.Match[str]) -> str:
        day, month = map(int, date.group(1, 2))
        if language == "en" and month > _MONTHS_OF_YEAR:
            day, month = month, day
        return write_date("", str(day), month, date[3] or "", language, language)

    return _Reading(_FULL_DATES[language], written)


def _with_scale_in_words(amount: re.Match[str]) -> str:
    scale = _SCALES.get(amount[3].lower())
    return amount[1] + (f"{amount[2]} {scale}" if scale else f"{round(1000 * float(amount[2])):,}")


def _with_colons(time: re.Match[str]) -> str:
    return _HOUR_AND_MINUTE.sub(lambda one: f"{one[1]}:{one[2] or '00'}", time[0])


def _with_24_hours(time: re.Match[str]) -> str:
    """Return an English time, or two with a dash or word between them, with 24 hours."""
    afternoon = time["half"] in "pP"
    last = _time_of_day(time["last"], afternoon) + _final_stop(time)
    if not time["first"]:
        return last
    first, other = (_time_of_day(time["first"], half) for half in (afternoon, not afternoon))
    is_later = [*map(int, first.split(":"))] > [*map(int, last.rstrip(".").split(":"))]  # 11 to 2 p.m.
    return (other if is_later else first) + time["dash"] + last


def _final_stop(match: re.Match[str]) -> str:
    """Return the full stop of a match if it also ends a sentence."""
    is_last = match[0][-1] == "." and not match.string[match.end() :].strip("\"'”’»")
    return "." * (is_last and ends_sentence(match.string))


def _time_of_day(time: str, afternoon: bool) -> str:
    """Return a time of 12 hours, such as `3` or `3:15`, as a time of 24 hours."""
    hour, _, minute = time.replace(".", ":").partition(":")
    return f"{int(hour) % 12 + 12 * afternoon}:{minute or '00'}"


def _of_table(language: str) -> Iterator[_Reading]:
    """Yield the readings of the table of a language, and those of all languages."""
    names = {**_PARTS, "period": PERIODS, "number": r"(?:\d{1,2} ?[-–] ?)?\d{1,3}"}
    names["month"], per = "|".join(_MONTHS[language]), {"de": "pro", "en": "per", "fr": "par"}[language]
    for pattern, new in (*_TABLES["read"][language], *_TABLES["read"]["any"]):
        yield _Reading(re.compile(filled(pattern, names)), methodcaller("expand", new.replace("{per}", per)))


_OTHER_READINGS = [_Reading(_GROUPED, _grouped)]
_READINGS = {  # by source language
    language: [
        _Reading(_GROUPED_FRENCH if language == "fr" else _GROUPED, _grouped),
        _Reading(_TIMES[language], _with_24_hours if language == "en" else _with_colons),
        _with_length(language),
        _with_month(language),
        *([_Reading(_DATES, _with_months)] if language == "de" else ()),
        *([_Reading(_SCALED, _with_scale_in_words)] if language == "en" else ()),
        *_of_table(language),
    ]
    for language in _TIMES
}


def write_dates(text: str, languages: tuple[str, str]) -> str:
    """Return a text that has only dates of digits, and times, in the notation of the target.

    English has 2024-12-31, which American and British readers understand alike. Other texts stay, such as 03/04/2024 in
    English, which may be in March or in April.
    """
    source, target = map(primary_language, languages)
    if source == target or source not in _FULL_DATES or target not in _DATE_FORMS or not _ONLY_DATES.fullmatch(text):
        return text

    def written(date: re.Match[str]) -> str:
        numbers = date.group(1, 2) if source != "en" or int(date[2]) <= _MONTHS_OF_YEAR else date.group(2, 1)
        day, month = (number if target == "de" else f"{number:0>2}" for number in numbers)
        return _DATE_FORMS[target].format(day=day, month=month, year=date[3])

    dates, count = _FULL_DATES[source].subn(lambda date: written(date) if date[3] else date[0], f"\n{text}")
    return dates[1:] if count == len(_ANY_YEAR.findall(text)) else text


def mend_numbers(source: str, translation: str, languages: tuple[str, str], kept: Sequence[Range] = ()) -> str:
    """Undo what models do with numbers, and write them as the target language does.

    `2:3` for `2 - 3` and `3-Dateien` for `3 files` are mended. Another sign of money than that of the source, as in
    `$12` for `12 €`, is replaced. `languages` are source and target. Code, addresses and the ranges `kept` of the
    source stay.
    """
    if not (_DIGIT.search(translation) or _SIGN.search(translation)):
        return translation
    texts = {span.text for span in find_spans(source, kept) if span.kind is not SpanKind.NUMBER}
    texts = {text for text in texts if (_DIGIT.search(text) or _SIGN.search(text)) and not _COMPARED.fullmatch(text)}
    stay: list[str] = []
    if texts:
        longest_first = sorted(texts, key=len, reverse=True)
        spans = re.compile(rf"(?<!\d)(?:{'|'.join(map(re.escape, longest_first))})(?!\d)|{_ONE}")
        stay = spans.findall(translation)
        source, translation = spans.sub(_ONE, source), spans.sub(_ONE, translation)
    signs = set(_SIGN.findall(source))
    if len(signs) == 1 and _SIGN.search(translation) and signs.isdisjoint(translation):
        translation = _SIGN.sub(signs.pop(), translation)
    translation = with_scales(source, _with_ranges(source, translation), [*map(primary_language, languages)])
    if languages[1].startswith("en"):
        ending = {"1": "st", "2": "nd", "3": "rd"}
        translation = _ORDINAL.sub(lambda match: match[1] + ending.get(match[2], "th"), translation)
    translation = _with_usual_signs(_localise(source, translation, languages), primary_language(languages[1]))
    texts_in_order = iter(stay)
    return re.sub(_ONE, lambda match: next(texts_in_order), translation) if stay else translation


def _with_usual_signs(translation: str, language: str) -> str:
    """Write `5 €`, `5 Millionen Euro`, `5 millions d'euros` and `5 Go` in German and French, `€5` in English."""
    if language == "en":
        translation = _PERCENT.sub("%", _MONEY_LAST.sub(r"\3\1\2", translation))
        return _OCLOCK.sub(lambda time: time[1] if ":" in time[1] else f"{time[1]}:00", translation)
    if language == "fr":
        translation = _BYTES.sub(lambda unit: unit[0].replace("B", "o").replace("k", "K"), translation)
    words = _TABLES["money"].get(language, "").split()

    def with_sign_after(amount: re.Match[str]) -> str:
        word = words["$€£".index(amount[1])].replace("_", " ")
        return f"{amount[2].replace(amount[1], '')}{amount[3] or ''} {word if amount[3] else amount[1]}"

    return _MONEY_FIRST.sub(with_sign_after, translation) if words else translation


def with_scales(source: str, translation: str, languages: Sequence[str]) -> str:
    """Write the million or billion of the source after a number in place of another one: `1,5 Million` for $1.5bn."""
    words, written = (SCALE_WORDS.get(language, []) for language in languages)
    scales: dict[str, int] = {}
    for number, word in _SCALE.findall(source):
        if word in words:
            key, scale = NOT_DIGIT.sub("", number), words.index(word) // 2
            scales[key] = scale if scales.get(key, scale) == scale else -1

    def right(match: re.Match[str]) -> str:
        scale, word = scales.get(NOT_DIGIT.sub("", match[1]), -1), match[2]
        if scale < 0 or not (word in written or word.lower() in map(str.lower, words)):
            return match[0]
        is_one = match[1] == "1" or (languages[1] == "fr" and _BELOW_TWO.fullmatch(match[1]))
        new = written[2 * scale + (not is_one)]
        return f"{match[1]} {new}" if (word, languages[1]) != (f"{new}s", "en") else match[0]  # millions of

    return _SCALE.sub(right, translation) if scales else translation


def _with_ranges(source: str, translation: str) -> str:
    """Return a translation with `2 - 3` in place of `2:3`, and `3 Dateien` in place of `3-Dateien` for `3 files`."""
    for first, dash, last in _RANGE_OF_NUMBERS.findall(source):
        if int(first) < int(last) and f"{first}:{last}" not in source:
            translation = re.sub(rf"(?<!\d){first}:{last}(?!\d)", f"{first}{dash}{last}", translation)

    def with_space(match: re.Match[str]) -> str:
        return f"{match[1]} " if f"{match[2]} " in source and f"{match[2]}-" not in source else match[0]

    return _NUMBER_AND_NOUN.sub(with_space, translation)


def _localise(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Return a translation in which the numbers of the source have the marks of the target language.

    The notation of a number that may have another meaning, such as a version, stays that of the model.
    """
    if not _SEPARATED.search(source):
        return translation
    before, after = (None if tag in _OTHER_MARKS else MARKS.get(primary_language(tag)) for tag in languages)
    if before is None or after is None:
        return translation
    notations = defaultdict[tuple[str, ...], list[str | None]](list)
    for match in _SEPARATED.finditer(source):
        notations[tuple(NOT_DIGIT.split(match[0]))].append(_notation(match, before, after))
    counts = Counter(tuple(NOT_DIGIT.split(number)) for number in _SEPARATED.findall(translation))

    def written(number: re.Match[str]) -> str:
        """Return a number as the source has it. Those with the same digits, as 1.234 and 1,234, are in order."""
        found = notations[parts := tuple(NOT_DIGIT.split(number[0]))]
        in_order = found.pop(0) if len(found) == counts[parts] and None not in found else None
        counts[parts] -= 1
        return in_order or (found[0] if len({*found}) == 1 else None) or number[0]

    return _SEPARATED.sub(written, translation)


def _notation(match: re.Match[str], before: _Marks, after: _Marks) -> str | None:
    """Return a number of the source as the target language writes it, or None if it may be no number."""
    number = match[0]
    decimal = max(".,", key=number.rfind) if "." in number and "," in number else before.decimal  # 1,000.50 in German
    *groups, decimals = number.split(decimal) if decimal in number else (number, "")
    whole = NOT_DIGIT.split(groups[0])
    grouped = len(whole) > 1
    if len(groups) > 1 or (grouped and (len(whole[0]) > 3 or any(len(group) != 3 for group in whole[1:]))):
        return None
    if (not decimals.isdecimal() and decimals) or (grouped and whole[0].startswith("0")):
        return None
    if not (_is_amount(match) or _is_number(match, before)):
        return None
    space = re.search(f"[{GROUP_SPACES}]", number)  # of the language, or a thin one of the International System
    is_thin = space is not None and space[0] != NO_BREAK_SPACE != before.group
    space = space if after.group == NO_BREAK_SPACE or is_thin else None
    return (space[0] if space else after.group).join(whole) + (after.decimal + decimals if decimals else "")


def _is_number(match: re.Match[str], marks: _Marks) -> bool:
    """Return whether digits with marks are no code, address, pair or version: 2.4 may be one, but 2,4 is a number."""
    text, begin, end = match.string, match.start(), match.end()
    before, number = text[max(0, begin - 20) : begin], match[0]
    if text[end : end + 1].isalpha() or _CODE_BEFORE.search(before) or _LABEL_BEFORE.search(before):
        return False
    if marks.decimal not in number:
        is_pair = before[-1:] + text[end : end + 1] == "()" and len(number) == 7  # (100,200)
        is_grouped = {*NOT_DIGIT.findall(number)} <= {marks.group, *GROUP_SPACES, *"’'"}
        return (is_grouped and not is_pair and number.count(".") < 3) or number.endswith("000")  # not 192.168.100.200
    if marks.decimal == "," or len(NOT_DIGIT.findall(number)) > 1 or _DECIMAL_BEFORE.search(before):
        return True
    return not _NAME_BEFORE.search(before) and (number.startswith("0.") or _COUNTED.match(text, end) is not None)


def _is_amount(match: re.Match[str]) -> bool:
    """Return whether money or a unit is beside a number.

    A single capital, or a letter after an abbreviation such as `Art.`, is no unit.
    """
    text, begin, end = match.string, match.start(), match.end()
    unit = _UNIT_AFTER.match(text, end)
    if text[end : end + 1].isalpha() and not unit:
        return False
    if _MONEY_AFTER.match(text, end) or _MONEY_BEFORE.search(text, max(0, begin - 20), begin):
        return True
    return unit is not None and (len(unit[0].strip()) > 1 or not _LABEL_BEFORE.search(text, max(0, begin - 10), begin))
