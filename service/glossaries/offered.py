"""The glossary that an operator offers to everybody who uses the page: a CSV file that is read at the start."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mt.errors import LanguageError, MTError, problems
from mt.languages import Direction, standard_tag
from service.glossaries.entries import EntriesFormat, find_problem, read_rows
from service.glossaries.store import glossary_direction

COLUMNS = 4


class OfferedGlossaryError(MTError):
    """Raised if the file cannot be used. The message lists every problem."""


@dataclass(frozen=True)
class OfferedTerm:
    """An entry of the operator's glossary."""

    term: str
    translation: str
    direction: Direction


def read_offered(path: Path, limit: int) -> tuple[OfferedTerm, ...]:
    """Read a glossary: a term, its translation, and the codes of their languages on each line.

    A later line replaces an earlier one with the same term and languages.

    Raises: OfferedGlossaryError if the file cannot be read, lines cannot be used, or more than `limit` terms have one
        target language.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be read: {error}") from error
    wrong: list[str] = []
    terms: dict[tuple[str, Direction], OfferedTerm] = {}
    for line, row in read_rows(text, EntriesFormat.CSV, wrong):
        fields = [field.strip() for field in row]
        problem = find_problem(fields, EntriesFormat.CSV)
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
            terms[term, direction] = OfferedTerm(term, translation, direction)
    for target, count in Counter(term.direction.target for term in terms.values()).items():
        if count > limit:
            wrong.append(f"{count} terms into {target}; accepted: at most {limit} (max_terms)")
    if wrong:
        raise OfferedGlossaryError(problems(f"the glossary {path} cannot be used", wrong))
    return tuple(terms.values())
