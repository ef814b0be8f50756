"""Table 1 of the paper, on sizes whose costs and paths a person can compute."""

import json
from pathlib import Path

import pytest
import torch

from scripts.benchmark.layer_types import layer_types
from scripts.benchmark.layers import main, operations

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
