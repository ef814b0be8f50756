"""The pages of docs/understanding: each has a picture, and the command on the page draws this picture."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mt.cli import explain
from mt.config import TrainingConfig
from mt.recipe import read_values
from mt.training.schedule import peak_warning

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "understanding"
INDEX = (PAGES / "README.md").read_text(encoding="utf-8")
NUMBERED = re.findall(r"\| \[\d+\. [^\]]+\]\((\w+)\.md\)", INDEX)
COMMAND = re.compile(r"^mt-service explain (tests/frozen/model .*--only .*)$", re.MULTILINE)
FILE = re.compile(r"`(mt/[\w/]+\.py)`")
IMAGES = "docs/images/understanding"


def read(page: str) -> str:
    return (PAGES / f"{page}.md").read_text(encoding="utf-8")


def words(svg: str) -> set[str]:
    """The texts of a picture without digits: the last digit of a number may differ between processors."""
    return {re.sub(r"[\d.-]+", "", text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)}


def test_the_index_lists_every_page() -> None:
    listed = {*NUMBERED, "explain", "layers", "README"}
    assert len(NUMBERED) >= 10
    assert listed == {path.stem for path in PAGES.glob("*.md")}


@pytest.mark.parametrize("page", [page for page in NUMBERED if COMMAND.search(read(page))])
def test_the_command_draws_the_picture(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = COMMAND.findall(read(page))
    assert explain.main([*shlex.split(command), "--output", str(tmp_path)]) == 0
    (picture,) = tmp_path.iterdir()
    assert f"{IMAGES.removeprefix('docs/')}/{picture.name}" in read(page)
    drawn, shown = (path.read_text(encoding="utf-8") for path in (picture, ROOT / IMAGES / picture.name))
    assert words(drawn) == words(shown)


def test_code_that_the_pages_name_exists() -> None:
    for page in NUMBERED:
        for path in FILE.findall(read(page)):
            assert (ROOT / path).is_file(), f"{page}: {path}"
        paragraph = read(page).partition("**The code.**")[2].partition("\n\n**")[0]
        sources = "".join((ROOT / path).read_text(encoding="utf-8") for path in FILE.findall(paragraph))
        for name in re.findall(r"`(\w+(?:\.\w+)?)`", paragraph):
            definition = rf"(\bdef |\bclass |^){name.rpartition('.')[2]}\b"
            assert re.search(definition, sources, re.MULTILINE), f"{page}: {name}"


TRAINING = re.compile(r"mt-service train (scripts/recipes/[\w.-]+)((?:\s+(?:\\\n\s*)?[\w.]+=[^\s`]+)*)")


def test_the_learning_rate_of_every_training_reaches_its_peak() -> None:
    recipes = {(str(path.relative_to(ROOT)), "") for path in (ROOT / "scripts" / "recipes").glob("*.toml")}
    shown = {match for path in PAGES.glob("*.md") for match in TRAINING.findall(path.read_text(encoding="utf-8"))}
    assert any("max_updates" in overrides for _, overrides in shown)
    for recipe, overrides in recipes | shown:
        values, problems = read_values(ROOT / recipe, overrides.replace("\\\n", " ").split())
        training = TrainingConfig.model_validate(values.get("training", {}))
        assert (problems, peak_warning(training, training.max_updates, 0)) == ([], ""), f"{recipe}{overrides}"


def test_the_narrative_runs_from_attention_to_bleu() -> None:
    command = [sys.executable, str(PAGES / "narrative.py"), "5"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("| loss") == 1 and "update    1 | loss" in run.stdout
    assert "held-out sentences (nrefs:1" in run.stdout
    first_loss = float(re.findall(r"loss (\d+\.\d+)", run.stdout)[0])
    assert 7 < first_loss < 10  # ln V = 7.6
