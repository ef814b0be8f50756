"""The measurements of a GPU, on a simulated device."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from mt.cli.benchmark import main
from mt.cli.benchmarks.gpu import PARTS, Sizes, TimedDevice, measure
from mt.config import ModelConfig
from tests.simulated_device import SimulatedDevice, SimulatedGraphs

ROOT = Path(__file__).resolve().parents[2]
TINY = Sizes(
    ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2, dropout=0, max_length=64),
    vocabulary=60,
    tokens=8,
    checked=3,
    sentences=(1, 5),
    slots=(1, 4),
    steps=3,
    update_tokens=(32,),
    updates=2,
    long=(6, 30),
    shapes=2,
)
"""Rows of each part with these sizes."""
ROWS = {"correctness": 4, "training": 1, "decoding": 4, "replay": 2, "attention": 4, "memory": 1}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_measures_and_writes(tmp_path: Path, name: str) -> None:
    with SimulatedDevice() as simulated:
        machine = TimedDevice(simulated.device, lambda: SimulatedGraphs(simulated), lambda: None, lambda: 1 << 24)
        rows = measure(name, machine, TINY, tmp_path, {"gpu": "none"})
    assert len(rows) == ROWS[name]
    assert json.loads((tmp_path / f"{name}.json").read_text())["rows"] == rows
    assert (tmp_path / f"{name}.md").read_text().count("\n| ") == 2 + len(rows)
    if name == "correctness":
        assert [row["differ"] for row in rows[:2]] == [0, 0]
    if name == "memory":
        assert rows[0]["failed"] == 0


def test_the_script_names_missing_packages(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho torch rich\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["bash", str(ROOT / "scripts/gpu.sh"), str(tmp_path / "results")],
        env={**os.environ, "MT_PYTHON": str(python)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "missing packages: torch rich" in done.stderr
    assert not (tmp_path / "results").exists()


def test_every_part_is_run_by_the_script() -> None:
    script = (ROOT / "scripts/gpu.sh").read_text()
    assert all(f" {name}" in script for name in PARTS)


def test_without_a_gpu_a_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", "--part", "memory", "--device", "cpu", "--output", str(tmp_path)]) == 2
    assert "--device is cpu, which is the CPU here; accepted: cuda or cuda:N" in capsys.readouterr().err
