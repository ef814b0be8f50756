"""The digest of a stage changes with everything that its result depends on, and with nothing else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mt.build.stage import Candidate, Gate, Stage, stage_digests
from mt.errors import BuildError

STAGES = [
    Stage("text", "prepare", ("a",), "out", files=("train.en",), recipe={"seed": 1}),
    Stage("model", "train", ("b",), "out", inputs=("text",)),
    Stage("other", "train", ("c",), "out"),
    Stage("best", "choose", ("d",), "out", candidates=(Candidate("model", ("model",)),)),
]
Edit = Callable[[list[Stage]], list[Stage]]


def edited(index: int, change: Callable[[Stage], Stage]) -> Edit:
    return lambda stages: [change(stage) if n == index else stage for n, stage in enumerate(stages)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.en").write_text("a\n")
    return tmp_path


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        (edited(0, lambda stage: stage), []),
        (edited(0, lambda stage: replace(stage, recipe={"seed": 2})), ["text", "model", "best"]),
        (edited(1, lambda stage: replace(stage, argv=("x",))), ["model", "best"]),
        (edited(1, lambda stage: replace(stage, inputs=())), ["model", "best"]),
        (edited(2, lambda stage: replace(stage, kind="translate")), ["other"]),
        (edited(2, lambda stage: replace(stage, gate=Gate(("text",), ("model",)))), ["other"]),
        (edited(3, lambda stage: replace(stage, candidates=(Candidate("other"),))), ["best"]),
    ],
)
def test_what_changes_a_digest(root: Path, edit: Edit, changed: list[str]) -> None:
    before, after = stage_digests(STAGES, root), stage_digests(edit(STAGES), root)
    assert [name for name in before if before[name] != after[name]] == changed


@pytest.mark.parametrize(("text", "changed"), [("a\n", []), ("b\n", ["text", "model", "best"])])
def test_digest_of_content(root: Path, tmp_path_factory: pytest.TempPathFactory, text: str, changed: list[str]) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "train.en").write_text(text)
    before, after = stage_digests(STAGES, root), stage_digests(STAGES, other)
    assert [name for name in before if before[name] != after[name]] == changed


def test_missing_files_are_listed(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"files of the recipe are missing(.|\n)*train\.en"):
        stage_digests(STAGES, tmp_path)
