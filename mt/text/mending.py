"""Mending of what models write wrongly, by a table: `von 3. Mai`, `every 6 o'clock` for hours, `#5` for `n° 5`."""

import re
from functools import cache

from mt.languages import primary_language
from mt.text.word_tables import read_tables

_SIGN = re.compile(r"#(?=\d)")


def mend_phrases(source: str, translation: str, language: str) -> str:
    """Return a translation into a language without the wrong phrases of the table, if its source has the cause."""
    hint, rows = _rows(primary_language(language))
    for cause, wrong, right in rows if hint and hint.search(source) else ():
        translation = wrong.sub(right, translation) if cause.search(source) else translation
    return translation


@cache
def _rows(language: str) -> tuple[re.Pattern[str] | None, list[tuple[re.Pattern[str], re.Pattern[str], str]]]:
    """Return a pattern that is in every text with a cause, a fast test, and the rows of the table."""
    tables = read_tables("mending.toml")
    hint, rows = tables["hints"].get(language), tables.get(language, ())
    return hint and re.compile(hint), [(re.compile(cause), re.compile(wrong), right) for cause, wrong, right in rows]


def write_signs_of_numbers(source: str, translation: str, language: str) -> str:
    """Return a translation with `Nr. 5` and `n° 5` in German and French for `#5`, unless the source has the sign."""
    if "#" not in translation:
        return translation
    sign = {"de": "Nr. ", "fr": "n° "}.get(primary_language(language))
    return _SIGN.sub(sign, translation) if sign and "#" not in source else translation
