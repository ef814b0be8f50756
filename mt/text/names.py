"""Names of people, which small models translate as words: `Hans Müller` became `Hans murder`."""

import re
import tomllib
from functools import cache
from pathlib import Path

from mt.languages import primary_language
from mt.text.alignment import Range

_WORD = r"(?:[A-ZÀ-ÖØ-Þ]['’])?[A-ZÀ-ÖØ-Þ]\w+(?:-[A-ZÀ-ÖØ-Þ]\w+)?"
_BETWEEN = r"(?:[A-Z]\. ){0,2}(?:(?:da|de|della|den|der|du|la|le|van|von|zu) ){0,2}"
_NAME = rf"(?P<given>{_WORD})(?= {_BETWEEN}(?P<surname>{_WORD}))"
_FIRST = re.compile(rf"(?<![\w-])(?<!San )(?<!Saint )(?<!Santa )(?<!St\. ){_NAME}")
_LINE = re.compile(rf"(?:(?:Dr|Prof)\. ){{0,2}}(?:(?P<first>{_WORD}) )?{_NAME}.*(?P=surname)")
_NO_SURNAME = re.compile(  # after a given name: tell Anna Monday is fine, teach Anna French, San Gabriel Valley
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Janu|Febru)ary|March|April|May|June|July|August"
    r"|(?:Sept|Nov|Dec)ember|October|Christmas|Easter|Airport|Avenue|Award|Bay|Bridge"
    r"|Church|College|Day|Hall|Island|Lake|Museum|Park|Prize|River|Road|School|Square|Street|University|Valley|[A-Z]\w+(?:an|ese|ench|ish|sch))"
)
_PROSE = re.compile(r"(?<![^\W_])[a-zà-öø-ÿ]{4}")


def is_name(text: str) -> bool:
    """Return whether a text is a given name and a surname, perhaps with a title, initials and particles."""
    match = _LINE.fullmatch(text)
    return match is not None and _is_given(match["given"]) and _is_given(match["first"] or match["given"])


def lost_names(source: str, translation: str, language: str) -> list[Range]:
    """Return the ranges of the names in a source that its translation lacks.

    In German, only known surnames count, because nouns have capitals, too: `Heute hat Anna Geburtstag.`
    """
    is_prose = _PROSE.search(source) is not None and primary_language(language) in ("en", "fr")
    return [
        (match.start(), match.end("surname"))
        for match in _FIRST.finditer(source)
        if source[match.start() : match.end("surname")] not in translation
        and _is_given(match["given"])
        and (match["surname"] in _words()["surnames"] or (is_prose and not _NO_SURNAME.fullmatch(match["surname"])))
    ]


def _is_given(name: str) -> bool:
    return name.partition("-")[0] in _words()["given"]


@cache
def _words() -> dict[str, frozenset[str]]:
    table = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    return {kind: frozenset(words.split()) for kind, words in table.items()}
