"""Rows of the training benchmark, by commands that write metrics as a training does."""

import json
import sys
from pathlib import Path

import pytest

from scripts.benchmark.measure import Ratio
from scripts.benchmark.train import UPDATES, TrainRow

WRITES = "import json, sys, time; file = open(sys.argv[1], 'a')\nfor line in sys.argv[2:]: print(line, file=file)\n"


def record(update: int, speed: float) -> str:
    return json.dumps({"update": update, "train_speed": speed, "train_loss": 8.0})


def test_a_row_has_the_last_interval_of_each_round_and_the_process_is_stopped(tmp_path: Path) -> None:
    metrics = tmp_path / "row" / "metrics.jsonl"
    words = [str(metrics), record(UPDATES // 2, 1.0), record(UPDATES, 30.0)]
    row = TrainRow("ours", [sys.executable, "-c", WRITES + "file.flush(); time.sleep(600)", *words])
    for _ in range(2):
        row.measure(metrics)
    assert (row.speeds, row.losses, row.problem) == ([30.0, 30.0], [8.0, 8.0], "")
    row.ratio = Ratio(1.0, 1.0, 1.0)
    assert row.cells() == ["ours", "30", "1.00 (1.00-1.00)", "8.000"]


@pytest.mark.parametrize("output", ["raise ValueError('no such model')", "print('no such model')"])
def test_a_contender_that_ends_early_has_its_last_line_as_problem(tmp_path: Path, output: str) -> None:
    row = TrainRow("theirs", [sys.executable, "-c", output])
    row.measure(tmp_path / "row" / "metrics.jsonl")
    assert row.cells()[1].endswith("no such model") and not row.speeds
