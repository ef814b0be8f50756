"""The glossary that an operator offers to everybody who uses the page: a CSV file, read at the start and at reloads."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import structlog

from mt.errors import DocumentError, LanguageError, MTError, RequestError, problems
from mt.languages import Direction, language_named, standard_tag
from mt.text.encoding import decode_text
from mt.text.table import read_table
from mt.text.terms import Terms
from service.glossaries.entries import find_problem
from service.glossaries.store import glossary_direction
from service.languages import TranslationRoutes

COLUMNS = 4
OFFERED = "operator"
"""`glossary_id` of the operator's glossary. No stored glossary has it, because their ids are UUIDs."""

OfferedTerms = Mapping[Direction, Terms]
"""The operator's terms for each pair of languages, without regions."""


class OfferedGlossaryError(MTError):
    """Raised if the file cannot be used. The message lists every problem."""


class OfferedGlossary:
    """The terms of the file at `path`, if any; `use` puts in use what `read`, as the constructor, has read before."""

    def __init__(self, path: Path | None, limit: int) -> None:
        self.terms: OfferedTerms = {}
        self.path, self._limit = path, limit
        self.read()

    def read(self) -> None:
        """Read the file, which may have changed. Raises: the errors of `read_offered`."""
        self._new = read_offered(self.path, self._limit) if self.path else ({}, {})

    def use(self, routes: TranslationRoutes) -> None:
        """Use the terms from now on. Log those that never apply, because no model translates their languages."""
        self.terms, lines = self._new
        for pair, line in lines.items():
            sources = (code for code in routes.source_languages if glossary_direction(code, code).source == pair.source)
            if not any(glossary_direction(code, to) == pair for code in sources for to in routes.targets_of(code)):
                where = {"path": str(self.path), "line": line, "direction": str(pair)}
                structlog.get_logger().warning("no model translates the languages of glossary terms", **where)


def read_offered(path: Path, limit: int) -> tuple[OfferedTerms, Mapping[Direction, int]]:
    """Read a glossary: a term, its translation, and the codes of their languages on each line.

    The file may be in any encoding and have any separator that spreadsheet programs write (`read_table`). A first row
    whose columns of languages do not look like two language tags is a heading, which is logged. Return also the first
    line of each pair of languages.

    Raises: OfferedGlossaryError if the file cannot be read, lines cannot be used or contradict each other, or more than
        `limit` terms have one target language.
    """
    try:
        text, _ = decode_text(path.name, path.read_bytes())
        separator, table = read_table(text, usual=",")
        rows = list(table)
    except (OSError, DocumentError) as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be read: {error}") from error
    if rows and len(rows[0][1]) == COLUMNS and not all(map(_is_tag, rows[0][1][2:])):
        line, heading = rows.pop(0)
        structlog.get_logger().warning("heading in the glossary is no term", path=str(path), line=line, heading=heading)
    wrong: list[str] = []
    terms: dict[Direction, dict[str, str]] = {}
    lines: dict[tuple[Direction, str], int] = {}
    for line, fields in rows:
        problem = find_problem(fields, separator, (COLUMNS,))
        unknown = [code for code in fields[2:] if not (_is_tag(code) and language_named(code))]
        if problem or unknown:
            wrong.append(f"line {line}: {problem or f'{unknown[0]!r} is no language code; accepted: such as pt-BR'}")
            continue
        direction, (term, translation) = glossary_direction(*map(standard_tag, fields[2:])), fields[:2]
        first = lines.setdefault((direction, term), line)
        if (other := terms.setdefault(direction, {}).setdefault(term, translation)) != translation:
            wrong.append(f"line {line}: {term!r} is {translation!r} here and {other!r} in line {first}")
    counts = Counter(pair.target for pair, _ in lines).items()
    wrong += [f"{count} terms into {to}; accepted: at most {limit}" for to, count in counts if count > limit]
    if wrong:
        raise OfferedGlossaryError(problems(f"the glossary {path} cannot be used", wrong))
    try:
        offered = {direction: Terms(tuple(glossary.items())) for direction, glossary in terms.items()}
    except RequestError as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be used: {error}") from error
    return offered, {direction: min(n for (pair, _), n in lines.items() if pair == direction) for direction in terms}


def _is_tag(code: str) -> bool:
    try:
        return bool(standard_tag(code))
    except LanguageError:
        return False
