"""Lines of days, hours and dates, such as `Mo.-Fr. 8-18 Uhr, So. geschlossen`, which small models double or lose.

They are translated word by word, without a model. A line has nothing else: `Wir haben Mo–Fr geöffnet` is none.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from mt.languages import primary_language
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
    return _written(tokens, source, target)


def _is_line(tokens: Sequence[re.Match[str]], language: str) -> bool:
    """Return whether tokens are a range of dates, or a day and more, and not words such as `so` and `mar`."""
    kinds = [match.lastgroup or "" for match in tokens]
    things = [kind for kind in kinds if kind not in ("and", "link", "mark")]
    if not things or kinds[0] not in _BEGINS:
        return things == ["dates"] == kinds[:1]
    days = [_number(match, language) if match.lastgroup in _DAYS_OF_WEEK else None for match in tokens]
    links = [number for number, kind in enumerate(kinds) if kind == "link"]
    pairs = [{days[number - 1], *days[number + 1 : number + 2]} for number in links]
    if len(things) < 2 or any(len(pair) < 2 or None in pair for pair in pairs):  # links are between two days
        return False
    if any(b - a == 2 for a, b in pairwise(links)):  # Mo-Di-Do
        return False
    short = [match["short"] for match in tokens if match["short"]]
    is_marked = all(day[0].isupper() for day in short) or (language == "fr" and all(day[-1] == "." for day in short))
    return is_marked or "times" in kinds


def _written(tokens: Sequence[re.Match[str]], source: str, target: str) -> str:
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
            new = _times(old, source, target)
        elif kind == "dates":
            new = _dates(old, source, target)
        elif kind not in ("kept", "mark"):
            new = _WORDS[target][kind]
        is_joined = new == "–" or match[0] == "/"
        is_tight |= is_joined or (kind == "mark" and old not in "(/" and not (target == "fr" and old in ":;"))
        text += new if is_tight else f" {new}"
        is_tight = is_joined or new == "("
    return text


def _number(match: re.Match[str], language: str) -> int:
    """Return the number of a day in the week."""
    name = match[0].strip().lower()
    return next(
        number for number, day in enumerate(_DAYS[language]) if name.startswith(day[: _length(language)].lower())
    )


def _day(match: re.Match[str], source: str, target: str, is_short: bool, is_range: bool) -> str:
    name = str(_DAYS[target][_number(match, source)])
    if is_short:
        name = name[: _length(target)] + "." * (target == "fr")
    elif match["day"] and match["day"][-1] == "s" and not is_range:
        name = {"fr": f"le {name}", "de": f"{name.lower()}s"}.get(target, f"{name}s")
    return name.upper() if match[0].strip().isupper() else name


def _length(language: str) -> int:
    return 2 if language == "de" else 3


def _times(text: str, source: str, target: str) -> str:
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


def _dates(text: str, source: str, target: str) -> str:
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
