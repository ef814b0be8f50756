"""Mending of what models write wrongly, by a table: `von 3. Mai`, `every 6 o'clock` for hours, `#5` for `n° 5`."""

import re
from functools import cache

from mt.languages import primary_language
from mt.text.word_tables import read_tables


def mend_phrases(source: str, translation: str, language: str) -> str:
    """Return a translation into a language without the wrong phrases of the table, if its source has the cause."""
    for cause, wrong, right in _rows(primary_language(language)):
        translation = wrong.sub(right, translation) if cause.search(source) else translation
    return translation


@cache
def _rows(language: str) -> list[tuple[re.Pattern[str], re.Pattern[str], str]]:
    rows = read_tables("mending.toml").get(language, ())
    return [(re.compile(cause), re.compile(wrong), right) for cause, wrong, right in rows]


def write_signs_of_numbers(source: str, translation: str, language: str) -> str:
    """Return a translation with `Nr. 5` and `n° 5` in German and French for `#5`, unless the source has the sign."""
    sign = {"de": "Nr. ", "fr": "n° "}.get(primary_language(language))
    return re.sub(r"#(?=\d)", sign, translation) if sign and "#" not in source else translation
