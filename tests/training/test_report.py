"""The report of a run: lines without a terminal, files, and what it does without the packages for plots."""

import json
import time
from pathlib import Path

import pytest

from mt.config import TrainingConfig
from mt.training import report
from mt.training.report import Reporter

TEN = TrainingConfig(max_updates=10)


def test_a_quiet_reporter_writes_and_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(tmp_path, "test", TEN, 0, quiet=True) as reporter:
        reporter.show_progress(10, 100.0, "loss 1")
        reporter.print("hello")
        reporter.record(10, {"train_loss": 1.0})
        reporter.plot()
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("config", "seconds", "left"),
    [
        (TrainingConfig(max_updates=1000), 0.0, "14 min left"),  # 100 updates in 100 seconds
        (TrainingConfig(max_updates=100_000), 0.0, "27.7 h left"),
        (TrainingConfig(max_updates=1000, max_minutes=10), 560.0, "40 s left"),
    ],
)
def test_without_a_terminal_a_line_comes_every_30_seconds(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    config: TrainingConfig,
    seconds: float,
    left: str,
) -> None:
    now = 5000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Reporter(tmp_path, "test", config, 50) as reporter:
        for update in range(51, 151):
            now += 1
            reporter.show_progress(update, seconds, f"loss {update}")
    lines = capsys.readouterr().err.splitlines()
    limit = f" of {config.max_updates:,}" if config.max_minutes is None else ""
    assert [line.partition(" |")[0] for line in lines] == [f"update {update}{limit}" for update in (80, 110, 140)]
    with Reporter(tmp_path, "test", config, 50) as reporter:
        now += 100
        reporter.show_progress(150, seconds, "loss 2")
    assert capsys.readouterr().err == f"update 150{limit} | loss 2 | {left}\n"


def test_metrics_without_the_packages_for_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MISSING_PACKAGE", "tensorboard")
    with Reporter(tmp_path, "test", TEN, 0) as reporter:
        reporter.record(10, {"train_loss": 1.0})
        reporter.plot()
        reporter.print("the pair '[/b] [red]' was skipped")  # text that looks like markup
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"update": 10, "train_loss": 1.0}
    said = capsys.readouterr().err
    assert said.count("tensorboard is missing; install mt-service[training]") == 1
    assert "the pair '[/b] [red]' was skipped" in said


def test_a_resumed_run_drops_later_records_and_a_line_cut_short(tmp_path: Path) -> None:
    lines = [json.dumps({"update": update}) for update in (10, 20, 30)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + '\n{"upda')
    with Reporter(tmp_path, "test", TEN, 20):
        pass
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == lines[:2]
