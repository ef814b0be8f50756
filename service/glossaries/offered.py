"""The glossary that an operator offers to everybody who uses the page: a CSV file that is read at the start."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from mt.errors import LanguageError, MTError, RequestError, problems
from mt.languages import Direction, standard_tag
from mt.text.terms import Terms
from service.glossaries.entries import EntriesFormat, find_problem, read_rows
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

    A later line replaces an earlier one with the same term and languages.

    Raises: OfferedGlossaryError if the file cannot be read, lines cannot be used, or more than `limit` terms have one
        target language.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be read: {error}") from error
    wrong: list[str] = []
    terms: dict[Direction, dict[str, str]] = {}
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
            terms.setdefault(direction, {})[term] = translation
    counts: Counter[str] = Counter()
    for direction, glossary in terms.items():
        counts[direction.target] += len(glossary)
    for target, count in counts.items():
        if count > limit:
            wrong.append(f"{count} terms into {target}; accepted: at most {limit} (max_terms)")
    if wrong:
        raise OfferedGlossaryError(problems(f"the glossary {path} cannot be used", wrong))
    try:
        return {direction: Terms(tuple(glossary.items())) for direction, glossary in terms.items()}
    except RequestError as error:
        raise OfferedGlossaryError(f"the glossary {path} cannot be used: {error}") from error
