"""Ranges of days and of times, such as `Mo–Fr 8:30–17:00 Uhr`, which small models damage.

A sentence is decoded again, with stand-ins for its ranges, only if its translation lacks one of them. Ranges that a
translation copies are then written as the target language does.
"""

import re
from functools import cache

from mt.languages import primary_language
from mt.text.alignment import Range

_DAYS = {  # length of the abbreviations, and names
    "de": (2, ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")),
    "en": (3, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")),
    "fr": (3, ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche")),
}
_LINKS = {"de": " bis ", "en": " to ", "fr": " au "}
_ABBREVIATED_LINKS = {"de": "–", "en": "–", "fr": ".–"}
_LINK = r"(?: ?[-–—] ?|(?: [^\W\d]+['’]?){1,3} )"
_WRITTEN_DAYS = re.compile(  # in other languages, such as 周一至周五, 月～金 and 月曜日から金曜日
    r"[^\W\d_]{2}\.? ?(?:[-–—]|(?<= )(?:al?|t/m|tot|do|até)(?= )) ?[^\W\d_]{2}"
    r"|[一二三四五六月火水木金土][曜日]{0,2}(?:[-–—~～〜至到]|から)"
)
_TIMES = re.compile(r"(?<![\w:.–-])(\d{1,2}):(\d\d) ?[-–—] ?(\d{1,2}):(\d\d)(?: Uhr\b)?(?![\w:–-])")


def lost_ranges(source: str, translation: str, languages: tuple[str, str]) -> list[Range]:
    """Return the ranges of days and times in a source that its translation lacks. `languages` are source and target."""
    language, target = map(primary_language, languages)
    lost, times_of = [], list(_TIMES.finditer(source))
    for match in _ranges(language).finditer(source) if language in _DAYS else ():
        days = [_patterns(target)[_number(day, language)] for day in match.groups()] if target in _DAYS else []
        if not (re.search(_LINK.join(days), translation) if days else _WRITTEN_DAYS.search(translation)):
            lost.append(match.span())
    for match in times_of:
        times = (
            rf"(?<!\d)0?{int(hour)} ?(?:[:h] ?{minute}|{'h' * (minute == '00')})(?! ?\d)"
            for hour, minute in _times(match)
        )
        copied = _any_dash(match[0].removesuffix(" Uhr"))
        if (lost and target == "fr") or not re.search(rf"{_LINK.replace('-', '').join(times)}|{copied}", translation):
            lost.append(match.span())
    return lost


def mend_ranges(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Return a translation in which the ranges that are those of the source are written as the target language does."""
    language, target = map(primary_language, languages)
    known = language in _DAYS and target in _DAYS
    for match in {match[0]: match for match in _ranges(language).finditer(source)}.values() if known else ():
        length, names = _DAYS[target]
        days = [names[_number(day, language)] for day in match.groups()]
        if len(match[1].rstrip(".")) == _DAYS[language][0]:
            written = _ABBREVIATED_LINKS[target].join(day[:length] for day in days) + "." * (target == "fr")
        else:
            written = _LINKS[target].join(days)
        translation = _replace(match[0], written.upper() if match[0].isupper() else written, translation)
    for match in {match[0]: match for match in _TIMES.finditer(source)}.values() if target != "de" else ():
        written = match[0].removesuffix(" Uhr")
        if target == "fr":
            written = "–".join(f"{int(hour)}h{minute}".removesuffix("00") for hour, minute in _times(match))
        translation = _replace(match[0], written, translation)
    return translation


@cache
def _patterns(language: str) -> list[str]:
    """Return a pattern of each day, whole or abbreviated."""
    length, names = _DAYS[language]
    return [rf"(?<!\w)(?i:{name[:length]}(?:{name[length:]}s?|\.)?)(?!\w)" for name in names]


@cache
def _ranges(language: str) -> re.Pattern[str]:
    day = "|".join(_patterns(language))
    return re.compile(rf"(?<![\w-])({day})(?: ?[-–—] ?| (?:bis|to|through|au|à) )({day})(?!-)")


def _number(day: str, language: str) -> int:
    length, names = _DAYS[language]
    return [name[:length].lower() for name in names].index(day[:length].lower())


def _times(match: re.Match[str]) -> list[tuple[str, str]]:
    return [(match[1], match[2]), (match[3], match[4])]


def _replace(text: str, written: str, translation: str) -> str:
    return re.sub(_any_dash(text), written, translation, flags=re.IGNORECASE)


def _any_dash(text: str) -> str:
    """Return a pattern of a text with any dash."""
    return re.sub("[-–—]", "[-–—]", re.escape(text).replace(r"\-", "-"))
