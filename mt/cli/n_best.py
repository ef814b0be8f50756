"""N-best lists in the JSON format of `mt-service translate --json`."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, FiniteFloat, ValidationError

from mt.data.corpus import read_lines
from mt.errors import DataError, problems


@dataclass(frozen=True)
class NBest:
    """A source and its translations, best first."""

    source: str
    translations: tuple[str, ...]


class ScoredTranslation(BaseModel):
    """One of the alternative translations of a line, with its score."""

    translation: str
    score: FiniteFloat


class TranslatedLine(BaseModel):
    """A line of the output of `mt-service translate --json`. If it has a `problem`, it has no translation."""

    source: str = ""
    translation: str = ""
    score: FiniteFloat = 0.0
    alternatives: tuple[ScoredTranslation, ...] = ()
    problem: str | None = None

    def n_best(self) -> NBest:
        return NBest(self.source, tuple(c.translation for c in self.alternatives) or (self.translation,))


def read_n_best(path: Path) -> list[NBest]:
    """Return the n-best list of each line. The list has a single translation if the line has no alternatives.

    Raises:
        DataError: if a line is not in the format of `mt-service translate --json`; the message lists all such lines.
    """
    lists, invalid = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lists.append(TranslatedLine.model_validate_json(line).n_best())
        except ValidationError as error:
            first = error.errors()[0]
            invalid.append(f"line {number}: {'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}")
    if invalid:
        accepted = "accepted: output of `mt-service translate --n-best K --json`"
        raise DataError(problems(f"{path} has lines that are not n-best lists; {accepted}", invalid))
    return lists
