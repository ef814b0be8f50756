"""Names of people, which small models translate as words: `Hans Müller` became `Hans murder`."""

import re
from collections.abc import Iterator
from functools import cache

from mt.text.alignment import Range
from mt.text.word_tables import read_tables, read_words

_WORD = r"(?:[A-ZÀ-ÖØ-Þ]['’])?[A-ZÀ-ÖØ-Þ]\w+(?:-[A-ZÀ-ÖØ-Þ]\w+)?"
_SURNAME = rf"(?:[A-Z]\. ){{0,2}}(?P<surname>{_WORD})"
_FIRST = re.compile(rf"(?<![\w-])(?P<given>{_WORD})(?= {_SURNAME})")
_NEXT_CAPITAL = re.compile(" [A-ZÀ-ÖØ-Þ]")  # a fast test
_LINE = re.compile(rf"(?:(?:Dr|Prof)\. ){{0,2}}(?:(?P<first>{_WORD}) )?(?P<given>{_WORD}) {_SURNAME}")
_CAPITALISED = re.compile(r"[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+")
_BEFORE, _AFTER = map(re.compile, read_tables("patterns.toml")["names"].values())
_BESIDE = 20  # number of characters beside a name that are examined


def is_name(text: str) -> bool:
    """Return whether a text is a given name, or one and a known surname, perhaps with a title and initials."""
    match = _LINE.fullmatch(text)
    if match is None:
        return is_given_name(text) and text not in read_words("names.toml")["doubtful"]
    return _is_name(match["surname"], match["first"] or match["given"], match["given"])


def is_given_name(text: str) -> bool:
    return text in read_words("names.toml")["given"]


def lost_names(source: str, translation: str) -> list[Range]:
    """Return the ranges of the names in a source that its translation lacks: given names, perhaps with known surnames.

    Other words with a capital after a given name may be no surnames: `Heute hat Anna Geburtstag`, `Louis XIV`.
    """
    lost = [
        (match.start(), match.end("surname"))
        for match in (_FIRST.finditer(source) if _NEXT_CAPITAL.search(source) else ())
        if not all(name in translation for name in match.groups()) and _is_name(match["surname"], match["given"])
    ]
    alone = [match.span() for match in _given_names(source, translation) if not _other_forms(match[0], translation)]
    return lost + [one for one in alone if not any(begin <= one[0] < end for begin, end in lost)]


def write_names(source: str, translation: str) -> str:
    """Return a translation with the given names of its source in place of other forms, as `Johannes` for `John`."""
    if source.isupper():
        source = source.title().replace(" ", ", ")  # without surnames
    for match in _given_names(source, translation):
        found = [form for form in _other_forms(match[0], translation) if not re.search(rf"\b{form}\b", source)]
        surname = re.match(rf" ({_WORD})", source[match.end() :])
        if len(found) == 1 and not (surname and surname[1] not in translation):  # Christopher Columbus
            translation = re.sub(rf"(?<![\w-]){found[0]}(?=s?(?![\w-]))", match[0], translation)
    return translation


def _given_names(source: str, translation: str) -> Iterator[re.Match[str]]:
    """Yield the given names of a source that its translation lacks, without those that languages translate."""
    names = read_words("names.toml")
    wanted = names["given"].difference(names["doubtful"]).intersection(_CAPITALISED.findall(source))
    for name in wanted if wanted else ():
        places = [*re.finditer(rf"(?<![\w.@'’/-]){name}(?![\w@/-]|\.\w)", source)] if name not in translation else []
        if not any(
            _BEFORE.search(source, max(0, one.start() - _BESIDE), one.start()) or _AFTER.match(source, one.end())
            for one in places
        ):
            yield from places


def _other_forms(name: str, translation: str) -> list[str]:
    forms = _forms().get(name, ())
    return [form for form in forms if form != name and re.search(rf"(?<![\w-]){form}(?=s?(?![\w-]))", translation)]


@cache
def _forms() -> dict[str, list[str]]:
    lines = [line.split() for line in read_tables("names.toml")["forms"].splitlines()]
    return {name: line for line in lines for name in line}


def _is_name(surname: str, *given: str) -> bool:
    names = read_words("names.toml")
    known = names["given"].issuperset(name.partition("-")[0] for name in given)
    return known and names["surnames"].issuperset(surname.split("-"))
