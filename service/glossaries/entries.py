"""Glossary entries as text: TSV and CSV."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from mt.errors import DocumentError, RequestError
from mt.text.table import read_table
from mt.text.terms import LONGEST_TERM, Terms
from service.errors import InvalidRequest, shorten

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # control characters and line separators
_WIDTHS = {2: "a term and its translation (2 columns)", 4: "a term, its translation and their languages (4 columns)"}
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "vertical bar"}

GlossaryEntry = tuple[str, str]  # a term and its translation


class EntriesFormat(StrEnum):
    TSV = "tsv"
    CSV = "csv"


def parse_entries(text: str, format: EntriesFormat) -> tuple[GlossaryEntry, ...]:
    """Parse a glossary in TSV or CSV, and return the entry of each line. Empty lines are skipped.

    CSV may quote fields, may have semicolons or tabs instead of commas, as spreadsheet programs write them, and may
    name the languages in a third and a fourth column, which are ignored. In TSV a quotation mark is an ordinary
    character.

    Raises:
        InvalidRequest: if lines cannot be used, or there is no entry. The message lists the lines with their problems.
    """
    tsv = format is EntriesFormat.TSV
    separator, rows = read_table(text.removeprefix("\ufeff"), usual=",", separator="\t" if tsv else "")
    entries: dict[str, tuple[str, int]] = {}  # by term: the translation and its line
    problems: list[str] = []
    try:
        for line, fields in rows:
            problem = find_problem(fields, separator, (2,) if tsv else (2, 4))
            if not problem and fields[0] in entries:
                problem = f"{shorten(fields[0])!r} is already on line {entries[fields[0]][1]}"
            if problem:
                problems.append(f"line {line}: {problem}")
            else:
                entries[fields[0]] = fields[1], line
    except DocumentError as error:
        problems.append(str(error))
    if problems:
        raise InvalidRequest.listing("entries cannot be used", *problems)
    if not entries:
        raise InvalidRequest.listing("entries must not be empty")
    return tuple((term, translation) for term, (translation, _) in entries.items())


def terms_of(glossary: Mapping[str, str], kept: Iterable[str] = ()) -> Terms:
    """Return terms with their translations, and terms that stay. Raises: InvalidRequest if they cannot be used."""
    try:
        return Terms(tuple(glossary.items()), tuple(kept))
    except RequestError as error:
        raise InvalidRequest.listing(str(error)) from error


def check_entries(entries: int, limit: int) -> None:
    """Raise InvalidRequest if a glossary may not have this number of entries."""
    if entries > limit:
        raise InvalidRequest.listing(f"the glossary would have {entries} entries; accepted: at most {limit}")


def format_entries(entries: Iterable[GlossaryEntry]) -> str:
    """Return the entries as TSV, without a final line break."""
    return "\n".join(f"{term}\t{translation}" for term, translation in entries)


def find_problem(fields: Sequence[str], separator: str, widths: Sequence[int]) -> str:
    """Return why a row with these fields cannot be used, or "" if it can be. `widths`: accepted numbers of fields."""
    name = _SEPARATORS.get(separator, repr(separator))
    if len(fields) not in widths:
        count = f"1 column, without a {name}" if len(fields) == 1 else f"{len(fields)} columns, divided by a {name}"
        return f"{count}; accepted: {' or '.join(map(_WIDTHS.__getitem__, widths))}"
    for name, value in zip(("term", "translation"), fields, strict=False):
        if not value:
            return f"the {name} is empty"
        if _CONTROL.search(value):
            return f"the {name} has a control character"
        if len(value) > LONGEST_TERM:
            return f"the {name} has more than {LONGEST_TERM} characters"
    return ""
