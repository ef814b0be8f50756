"""Table 1 of the paper, on sizes that a person can compute; rows of the training benchmark."""

import json
import sys
from pathlib import Path

import pytest
import torch

from scripts.benchmark.layer_types import layer_types
from scripts.benchmark.layers import main, operations
from scripts.benchmark.measure import Ratio
from scripts.benchmark.train import UPDATES, TrainRow

KINDS = layer_types(5, 3)


def test_operations_by_hand() -> None:
    """n = 8, d = 16, r = 5, k = 3, two operations for a multiplication and an addition."""
    n, d = 8, 16
    weights = n * d * d
    expected = [4 * n * n * d, 4 * n * n * d + 8 * weights, 4 * 5 * n * d, 12 * weights, 6 * weights, 2 * 6 * weights]
    x = torch.randn(1, n, d)
    assert [operations(kind.layer(n, d), x) for kind in KINDS] == expected


def test_the_files_of_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--lengths", "8", "16", "32", "--widths", "16", "32", "48", "--rounds", "1"]
    assert main(["--output", str(tmp_path), *sizes]) == 0
    assert "self-attention" in capsys.readouterr().out
    values = json.loads((tmp_path / "results.json").read_text())
    exponents = values["exponents"]["self-attention"]
    assert exponents["operations n"]["value"] == pytest.approx(2)
    assert exponents["operations d"]["value"] == pytest.approx(1)
    assert all(path["measured"] == path["exact"] for rows in values["paths"].values() for path in rows)
    assert "n² d" in (tmp_path / "table.txt").read_text(encoding="utf-8")


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
