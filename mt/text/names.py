"""Names of people, which small models translate as words: `Hans Müller` became `Hans murder`."""

import re
import tomllib
from functools import cache
from pathlib import Path

from mt.text.alignment import Range

_WORD = r"(?:[A-ZÀ-ÖØ-Þ]['’])?[A-ZÀ-ÖØ-Þ]\w+(?:-[A-ZÀ-ÖØ-Þ]\w+)?"
_FIRST = re.compile(rf"(?<![\w-])(?P<given>{_WORD})(?= (?:[A-Z]\. ){{0,2}}(?P<surname>{_WORD}))")
_LINE = re.compile(
    rf"(?:(?:Dr|Prof)\. ){{0,2}}(?:(?P<first>{_WORD}) )?(?P<given>{_WORD}) (?:[A-Z]\. ){{0,2}}(?P<surname>{_WORD})"
)


def is_name(text: str) -> bool:
    """Return whether a text is a given name and a known surname, perhaps with a title and initials."""
    match = _LINE.fullmatch(text)
    return match is not None and _is_name(match) and _is_given(match["first"] or match["given"])


def lost_names(source: str, translation: str) -> list[Range]:
    """Return the ranges of the names in a source that have a known surname, which the translation lacks.

    Other words with a capital after a given name may be no surnames: `Heute hat Anna Geburtstag`, `Louis XIV`.
    """
    return [
        (match.start(), match.end("surname"))
        for match in _FIRST.finditer(source)
        if match["surname"] not in translation and _is_name(match)
    ]


def _is_name(match: re.Match[str]) -> bool:
    return _is_given(match["given"]) and _words()["surnames"].issuperset(match["surname"].split("-"))


def _is_given(name: str) -> bool:
    return name.partition("-")[0] in _words()["given"]


@cache
def _words() -> dict[str, frozenset[str]]:
    table = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    return {kind: frozenset(words.split()) for kind, words in table.items()}
