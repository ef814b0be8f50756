"""The glossary that an operator offers to everybody who uses the page: a CSV file that is read at the start."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import structlog

from mt.errors import DocumentError, LanguageError, MTError, RequestError, problems
from mt.languages import Direction, standard_tag
from mt.text.encoding import decode_text
from mt.text.table import read_table
from mt.text.terms import Terms
from service.glossaries.entries import find_problem
from service.glossaries.store import glossary_direction

OFFERED = "operator"
"""`glossary_id` of the operator's glossary. No stored glossary has it, because their ids are UUIDs."""

COLUMNS = 4

OfferedTerms = Mapping[Direction, Terms]
"""The operator's terms for each pair of languages, without regions."""


class OfferedGlossaryError(MTError):
    """Raised if the file cannot be used. The message lists every problem."""


def read_offered(path: Path, limit: int) -> OfferedTerms:
    """Read a glossary: a term, its translation, and the codes of their languages on each line.

    The file may be in any encoding and have any separator that spreadsheet programs write (`read_table`). A first row
    whose columns of languages are not two language tags is a heading, which is logged: a heading may have words that
    are tags (`von`, `to`, `de`). A later line replaces an earlier one with the same term and languages.

    Raises: OfferedGlossaryError if the file cannot be read, lines cannot be used, or more than `limit` terms have one
        target language.
    """
    try:
        text, _ = decode_text(path.name, path.read_bytes())
        table = read_table(text, usual=",")
        rows = list(table.rows)
    except (OSError, DocumentError) as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be read: {error}") from error
    if rows and len(rows[0][1]) == COLUMNS and not all(map(_is_tag, rows[0][1][2:])):
        line, heading = rows.pop(0)
        structlog.get_logger().warning("heading in the glossary is no term", path=str(path), line=line, heading=heading)
    wrong: list[str] = []
    terms: dict[Direction, dict[str, str]] = {}
    for line, fields in rows:
        problem = find_problem(fields, table.separator, (2, COLUMNS))
        if not problem and len(fields) != COLUMNS:
            problem = "no languages; accepted: term, translation, language of the term, language of the translation"
        if problem:
            wrong.append(f"line {line}: {problem}")
            continue
        term, translation, *languages = fields
        try:
            direction = glossary_direction(*map(standard_tag, languages))
        except LanguageError as error:
            wrong.append(f"line {line}: {error}")
        else:
            terms.setdefault(direction, {})[term] = translation
    counts: Counter[str] = Counter()
    for direction, glossary in terms.items():
        counts[direction.target] += len(glossary)
    for target, count in counts.items():
        if count > limit:
            wrong.append(f"{count} terms into {target}; accepted: at most {limit}")
    if wrong:
        raise OfferedGlossaryError(problems(f"the glossary {path} cannot be used", wrong))
    try:
        return {direction: Terms(tuple(glossary.items())) for direction, glossary in terms.items()}
    except RequestError as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be used: {error}") from error


def _is_tag(code: str) -> bool:
    try:
        standard_tag(code)
    except LanguageError:
        return False
    return True
