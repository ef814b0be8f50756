"""`mt-service benchmark trainings`: results of runs that are there, and a run of its own."""

import json
from pathlib import Path

import pytest

from mt.cli.benchmark import main
from mt.cli.benchmarks.trainings import VARIANTS, spread
from mt.insight.chart import Series, line_chart
from mt.insight.drawing import Text

RECIPE = Path(__file__).resolve().parents[3] / "scripts" / "recipes" / "phrasebook.toml"


def write_run(folder: Path, losses: list[float]) -> None:
    """A finished run of 40 updates, with a validation every 4 updates."""
    folder.mkdir(parents=True)
    (folder / "recipe.toml").touch()
    records = [{"update": 4 * step, "train_rate": step / 1000} for step in range(1, len(losses) + 1)]
    records += [{"update": 4 * step, "valid_loss": loss, "valid_bleu": 10.0} for step, loss in enumerate(losses, 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_finished_runs_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for variant in VARIANTS:
        for seed, last in ((1, 2.0), (2, 3.0)):
            write_run(tmp_path / "runs" / f"{variant}-{seed}", [*[5.0] * 9, last])
    arguments = ["--output", str(tmp_path / "out"), "--runs", str(tmp_path / "runs"), "--updates", "40"]
    assert main(["trainings", "--rounds", "2", *arguments]) == 0
    table = (tmp_path / "out" / "table.txt").read_text(encoding="utf-8")
    assert "2.50 ± 0.71" in table and "10.0 ± 0.0" in table and "2.00, 3.00" in table
    assert len(json.loads((tmp_path / "out" / "trainings.json").read_text(encoding="utf-8"))["runs"]) == 12
    svg = (tmp_path / "out" / "trainings.svg").read_text(encoding="utf-8")
    assert all(f">{variant}</text>" in svg for variant in VARIANTS)
    assert (tmp_path / "out" / "rates.svg").read_text(encoding="utf-8").count(">with warm-up</text>") == 1
    assert "2.50" in capsys.readouterr().out


def test_few_updates_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trainings", "--output", str(tmp_path), "--updates", "39"]) == 2
    assert "--updates is 39; accepted: at least 40" in capsys.readouterr().err


@pytest.mark.slow
def test_a_short_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    from_scripts = ["trainings", "--output", "out", "--updates", "40", "--rounds", "1", "--variants", "post-norm"]
    from_scripts += ["--recipe", str(RECIPE)]
    assert main(from_scripts) == 2  # without the corpus
    write_corpus(tmp_path / "data" / "phrasebook")
    assert main(from_scripts) == 0
    (run,) = json.loads((tmp_path / "out" / "trainings.json").read_text(encoding="utf-8"))["runs"]
    assert run["variant"] == "post-norm" and len(run["losses"]) == 10
    assert 'norm = "post"' in (tmp_path / "runs" / "trainings" / "post-norm-1" / "recipe.toml").read_text("utf-8")


def write_corpus(folder: Path) -> None:
    folder.mkdir(parents=True)
    words = ["dog", "cat", "man", "woman", "child", "house", "train", "tree", "road", "hand"]
    lines = [f"the {a} sees the {b} .\tder {b} sieht den {a} ." for a in words for b in words]
    for name in ("train", "valid"):
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_mean_and_standard_deviation() -> None:
    assert spread([1.0, 2.0, 3.0], 2) == "2.00 ± 1.00"
    assert spread([1.25], 1) == "1.2"


def test_a_chart_has_round_ticks_and_names_that_do_not_overlap() -> None:
    drawing = line_chart("t", "x", [Series("a", [(1, 1.9), (10, 7.2)]), Series("b", [(1, 2.0), (10, 7.21)])])
    texts = [shape for shape in drawing.shapes if isinstance(shape, Text)]
    assert [text.content for text in texts if text.anchor == "end"] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    a, b = (next(text for text in texts if text.content == name) for name in "ab")
    assert abs(a.y - b.y) >= 13
    assert drawing.width > max(a.x, b.x)
