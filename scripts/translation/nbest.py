"""The n-best lists that `translate.py --json` writes, as others read them."""

from pathlib import Path

from pydantic import BaseModel, FiniteFloat, ValidationError

from mt.data.corpus import read_lines
from mt.engine.reranking import NBest
from mt.errors import DataError, problems


class Candidate(BaseModel):
    """One translation."""

    translation: str
    score: FiniteFloat


class Entry(BaseModel):
    """A line; where there is a problem, it has no translation."""

    source: str = ""
    translation: str = ""
    score: FiniteFloat = 0.0
    alternatives: tuple[Candidate, ...] = ()
    problem: str | None = None

    def n_best(self) -> NBest:
        given = self.alternatives or (Candidate(translation=self.translation, score=self.score),)
        return NBest(self.source, tuple(each.translation for each in given), tuple(each.score for each in given))


def read_n_best(path: Path) -> list[NBest]:
    """One for each line; without --n-best, of one translation. Raises DataError naming every line that is none."""
    lists, found = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lists.append(Entry.model_validate_json(line).n_best())
        except ValidationError as error:
            first = error.errors()[0]
            found.append(f"line {number}: {'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}")
    if found:
        raise DataError(
            problems(
                f"{path} holds no n-best lists; accepted: what scripts/translate.py --n-best K --json writes", found
            )
        )
    return lists
