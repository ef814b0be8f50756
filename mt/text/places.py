"""Names of cities and regions, which small models lose, or copy though the target language has another."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.normalise import NormalisedText
from mt.text.word_tables import read_tables

_LANGUAGES = ("en", "de", "fr")
_POSTCODE = re.compile(r"(?<![\w.,/-])(?:[DF]-)?\d{5} (?=[A-ZÄÖÜ])")
_TOWN_HINT = re.compile(r"\d\d{4} [A-ZÄÖÜ]")  # a fast test
_TOWN_ENDINGS = "stadt|berg|burg|dorf|heim|hausen|bach|ingen|furt|brücken?|kirchen|feld|ville"
_ARTICLES = {"l": "la ", "L": "La ", "d": "de ", "D": "De "}
_CAPITALS = re.compile("[A-Z][A-Z][A-Z]")  # a fast test
_ACRONYM = re.compile(r"(?!\AWHO)(?<![\w./@'’-])((?:[LlDd]['’])?)([A-Z]{2,4})(?![\w/@'’-]|\.\w)")
_NEITHER_BEFORE, _AFTER = r"[\w'’.@/`-]", r"(?![\w@/-]|\.\w)"


def lost_places(source: str, translation: str, languages: tuple[str, str]) -> list[Range]:
    """Return the ranges of the places in a source that its translation names in neither language."""
    places = _places(source, translation, languages)
    return [place.span() for place, new, copied in places if not copied and not _whole(new).search(translation)]


def write_places(
    source: str, translation: str, languages: tuple[str, str], fixed: Iterable[tuple[str, str]] = ()
) -> str:
    """Return a translation in which the places that it copies from its source have the names of the target language.

    `fixed` has the terms and the kept texts of the source, with their translations: places in them stay.
    """
    kept = [text for pair in fixed for text in pair]
    for place, new, copied in _places(source, translation, languages):
        if copied and not _whole(new).search(translation) and not any(place[0] in text for text in kept):
            translation = _whole(place[0]).sub(new, translation)
    return translation


def read_acronyms(text: NormalisedText, languages: tuple[str, str], kept: Sequence[Range] = ()) -> NormalisedText:
    """Write acronyms such as `l'OMS` as the target language has them: `la WHO`. The ranges `kept` stay."""
    if not _CAPITALS.search(text.text) or text.text.isupper():
        return text
    language, target = map(primary_language, languages)
    if language not in _LANGUAGES or target not in _LANGUAGES:
        return text
    rows = (dict(zip(_LANGUAGES, line.split(", "), strict=True)) for line in read_tables("places.toml")["acronyms"])
    names = {row[language]: row[target] for row in rows if row[language] not in (row[target], "UN")}  # ONU is misread
    found = (match for match in _ACRONYM.finditer(text.text) if match[2] in names)
    free = (one for one in found if not any(begin < one.end() and one.start() < end for begin, end in kept))
    return text.edit((*one.span(), _ARTICLES.get(one[1][:1], "") + names[one[2]]) for one in free)


def postcodes(text: str) -> list[Range]:
    """Return the ranges of postcodes with their towns, such as `10827 Berlin`, which stay."""
    return [match.span() for match in _town().finditer(text)] if _TOWN_HINT.search(text) else []


@cache
def _town() -> re.Pattern[str]:
    names = {name for line in read_tables("places.toml")["places"].split("\n") if line for name in line.split(", ")}
    towns = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"{_POSTCODE.pattern}(?:{towns}|[A-ZÄÖÜ][a-zäöüß]+(?:{_TOWN_ENDINGS}))(?![\w-])")


def _places(
    source: str, translation: str, languages: tuple[str, str]
) -> Iterator[tuple[re.Match[str], str, re.Match[str] | None]]:
    """Yield each place, its name in the target language, and its copy in the translation if there is one.

    A place before a word with a capital may belong to another name: Munich Airport.
    """
    language, target = map(primary_language, languages)
    if language in _LANGUAGES and target in _LANGUAGES:
        pattern, names = _names(language)
        for place in pattern.finditer(source):
            yield place, names[place[0]][target], _whole(place[0]).search(translation)


@cache
def _names(language: str) -> tuple[re.Pattern[str], Mapping[str, Mapping[str, str]]]:
    """Return a pattern of all places, and their names by language, by the name in `language`."""
    lines = (line.split(", ") for line in read_tables("places.toml")["places"].split("\n") if line)
    rows = [dict(zip(_LANGUAGES, names * (3 // len(names)), strict=True)) for names in lines]
    names = {row[language]: row for row in rows}
    longest_first = groupby(sorted(sorted(names, key=len, reverse=True), key=itemgetter(0)), itemgetter(0))
    by_capital = {capital: "|".join(name[1:] for name in group) for capital, group in longest_first}
    endings = "|".join(rf"(?<={capital})(?:{rests})" for capital, rests in by_capital.items())
    before = (
        rf"[{''.join(by_capital)}](?<!{_NEITHER_BEFORE}.)(?<![Ee]au de .)"  # `re` finds one of a set of letters quickly
        r"(?<!\b(?:AC|AS|FC|RB|SC|SV) .)(?<!\b(?:BSC|EHC|FSV|TSG|TSV|VfB|VfL) .)"  # of clubs: FC Bayern
    )
    return re.compile(rf"{before}(?:{endings}){_AFTER}(?! [A-ZÄÖÜÉ])"), names


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{_NEITHER_BEFORE}){re.escape(name)}{_AFTER}")
