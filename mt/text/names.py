"""Names of people, which small models translate as words: `Hans Müller` became `Hans murder`."""

import re

from mt.text.alignment import Range
from mt.text.word_tables import read_words

_WORD = r"(?:[A-ZÀ-ÖØ-Þ]['’])?[A-ZÀ-ÖØ-Þ]\w+(?:-[A-ZÀ-ÖØ-Þ]\w+)?"
_SURNAME = rf"(?:[A-Z]\. ){{0,2}}(?P<surname>{_WORD})"
_FIRST = re.compile(rf"(?<![\w-])(?P<given>{_WORD})(?= {_SURNAME})")
_NEXT_CAPITAL = re.compile(" [A-ZÀ-ÖØ-Þ]")  # a fast test
_LINE = re.compile(rf"(?:(?:Dr|Prof)\. ){{0,2}}(?:(?P<first>{_WORD}) )?(?P<given>{_WORD}) {_SURNAME}")


def is_name(text: str) -> bool:
    """Return whether a text is a given name and a known surname, perhaps with a title and initials."""
    match = _LINE.fullmatch(text)
    return match is not None and _is_name(match["surname"], match["first"] or match["given"], match["given"])


def is_given_name(text: str) -> bool:
    return text in read_words("names.toml")["given"]


def lost_names(source: str, translation: str) -> list[Range]:
    """Return the ranges of the names in a source that have a known surname, which the translation lacks.

    Other words with a capital after a given name may be no surnames: `Heute hat Anna Geburtstag`, `Louis XIV`.
    """
    return [
        (match.start(), match.end("surname"))
        for match in (_FIRST.finditer(source) if _NEXT_CAPITAL.search(source) else ())
        if not all(name in translation for name in match.groups()) and _is_name(match["surname"], match["given"])
    ]


def _is_name(surname: str, *given: str) -> bool:
    names = read_words("names.toml")
    known = names["given"].issuperset(name.partition("-")[0] for name in given)
    return known and names["surnames"].issuperset(surname.split("-"))
