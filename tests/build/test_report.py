"""Which teachers a build has published, in the report."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mt.build.report import teachers_table
from mt.build.runner import Record
from mt.build.stage import Candidate, Stage

BASE, ROUND1, ROUND2 = (
    Candidate(f"stages/{name}-en-de-1/model", (f"score-{name}",)) for name in ("base", "round1", "round2")
)
CHOICE = Stage("model-en-de-teacher", "choose", (), "models/en-de-teacher", candidates=(BASE, ROUND1, ROUND2))
STUDENT = Stage(
    "model-en-de-student1", "choose", (), "models/en-de-student1", candidates=(Candidate("stages/s/model"),)
)
RECORDS = {
    CHOICE.name: Record(digest="", state="done", metrics={"model": BASE.model, "BLEU": 9.44}),
    STUDENT.name: Record(digest="", state="done", metrics={"model": "stages/s/model", "BLEU": 0.0}),
}
BLEU = {BASE.scores: 9.44, ROUND1.scores: 6.45}
RUNNER: Any = SimpleNamespace(record=RECORDS.get, bleu=BLEU.get, work=Path())


def test_teachers_with_their_scores() -> None:
    assert teachers_table([CHOICE, STUDENT], RECORDS, RUNNER).splitlines()[4:7] == [
        "| stages/base-en-de-1/model | 9.44 | en-de-teacher |",
        "| stages/round1-en-de-1/model | 6.45 |  |",
        "| stages/round2-en-de-1/model | not trained |  |",
    ]
