"""Times of day: those in words become digits for a model, which misreads them."""

import re
from collections.abc import Sequence
from functools import cache

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.normalise import NormalisedText
from mt.text.word_tables import filled, read_tables

_TABLES = read_tables("clock.toml")
_HALF, _DAY = 30, 1440  # minutes
_TIME_OF_12 = re.compile(r"(?i)(?:(?:\A| ?(?:[-–—]|to) ?)(?:1[0-2]|0?[1-9])(?:[:.]\d\d)? ?[ap]\.?m\.?){1,2}")
_NOON = re.compile(_TABLES["en"]["noon"])


def read_times(text: NormalisedText, languages: tuple[str, str], kept: Sequence[Range] = ()) -> NormalisedText:
    """Write the times of day that a text has in words, such as `halb sechs`, in digits. The ranges `kept` stay."""
    language, target = map(primary_language, languages)
    table = _TABLES.get(language)
    if not table or not any(map(text.text.__contains__, table["hints"])):
        return text
    patterns = [*_patterns(language), *([_NOON] if language == "en" else [])]
    edits, last, noon = list[tuple[int, int, str]](), 0, "noon" if target == "fr" else "12:00"
    for match in sorted((match for one in patterns for match in one.finditer(text.text)), key=re.Match.start):
        begin, end = match.span()
        if begin >= last and not any(first < end and begin < after for first, after in kept):
            edits.append((begin, end, noon if match.re is _NOON else _in_digits(match, language)))
            last = end
    return text.edit(edits)


def is_english_time(text: str, language: str) -> bool:
    """Return whether a text is a time of 12 hours, or two as `6–8 pm`, which other languages write otherwise."""
    return primary_language(language) == "en" and _TIME_OF_12.fullmatch(text) is not None


def relative_time(text: str, languages: tuple[str, str]) -> str | None:
    """Return the translation of a text such as `5 minutes ago` and `dans 2 mois`; None for another text."""
    language, target = map(primary_language, languages)
    frames = _TABLES["relative"]
    if not any(map(str.isdecimal, text)) or not {language, target} <= frames.keys():
        return None
    for before, after in zip(frames[language], frames[target], strict=True):
        match = re.fullmatch(before.replace("{}", r"(\d{1,4}) (\w+)") + r"(\.?)", text[:1].lower() + text[1:])
        units = (unit.split(",") for unit in _TABLES["units"][language].split())
        number = next((n for n, unit in enumerate(units) if match and match[2] in unit), None)
        if match and number is not None:
            unit: str = _TABLES["units"][target].split()[number].split(",")[match[1] != "1"]
            written: str = after.format(f"{match[1]} {unit}")
            return (written[:1].upper() + written[1:] if text[:1].isupper() else written) + match[3]
    return None


def _in_digits(match: re.Match[str], language: str) -> str:
    table, groups = _TABLES[language], match.groupdict("")

    def minutes(kind: str) -> int:
        text = groups.get(kind, "").lower()
        names = (number for number, words in table["minutes"].items() if text in words.split("|"))
        return int(text) if text.isdecimal() else int(next(names, 0))

    hours, hour = table["hours"].split(), groups["hour"].lower()
    number = (
        int(hour) if hour.isdecimal() else next((n for n, one in enumerate(hours, 1) if re.fullmatch(one, hour)), 0)
    )
    time = (60 * number + minutes("more") - minutes("less") - _HALF * ("half" in match.re.groupindex)) % _DAY
    hour = str(time // 60 or 12 * (number == 1))  # quarter to one
    return str(table["written"]).format(f"{hour}:{time % 60:02}")


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    table = _TABLES[language]
    words = sorted("|".join(table["minutes"].values()).split("|"), key=len, reverse=True)
    parts = {"hour": "|".join(table["hours"].split()), "minute": f"(?:{'|'.join(words)})"}
    return [re.compile(rf"(?<![\w-])(?i:{filled(one, parts)}){table['end']}") for one in table["patterns"]]
