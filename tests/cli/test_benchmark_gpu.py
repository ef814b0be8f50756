"""The measurements of a GPU, on a simulated device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mt.cli.benchmark import main
from mt.cli.benchmarks.gpu import PARTS
from mt.cli.train import parse
from tests.simulated_main import simulated_measure

ROOT = Path(__file__).resolve().parents[2]
ROWS = {
    "correctness": 6,
    "training": 1,
    "decoding": 4,
    "replay": 4,
    "profile": 2,
    "lengths": 2,
    "attention": 4,
    "memory": 1,
}
"""Rows of each part with the sizes of `simulated_measure`."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_measures_and_writes(tmp_path: Path, name: str) -> None:
    rows = simulated_measure(name, "tiny", tmp_path)
    assert len(rows) == ROWS[name]
    assert json.loads((tmp_path / f"{name}-tiny.json").read_text())["rows"] == rows
    assert (tmp_path / f"{name}-tiny.md").read_text().count("\n| ") == 2 + len(rows)
    if name == "correctness":
        assert [row["differ"] for row in rows if row["path"] != "graphs, fused search"][:2] == [0, 0]
    if name == "memory":
        assert rows[0]["failed"] == 0


def script(python: str, output: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "scripts/gpu.sh"), str(output)],
        env={**os.environ, "MT_PYTHON": python, **environment},
        capture_output=True,
        text=True,
    )


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_script_names_missing_packages(tmp_path: Path) -> None:
    python = executable(tmp_path / "python", "echo torch rich")
    done = script(python, tmp_path / "results")
    assert done.returncode == 1 and "missing packages: torch rich" in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_script_runs_every_part_and_names_those_that_failed(tmp_path: Path) -> None:
    log = tmp_path / "commands"
    python = executable(
        tmp_path / "python",
        f"""[ "$1" = - ] && exit
[ "$1" = -c ] && echo 2 && exit
echo "$*" >> {log}
[[ "$*" != *"--part replay"* ]]""",
    )
    done = script(python, tmp_path / "results", MT_KILL_AFTER="0")
    assert done.returncode == 1 and "FAILED: replay-base;" in done.stderr
    commands = log.read_text().splitlines()
    for name in PARTS:
        assert any(f"benchmark gpu --part {name} --size base" in command for command in commands)
    assert any("--part training --size big" in command for command in commands)
    for part in ("-m pytest -m gpu", "translate", "--device cuda:1", "benchmark serve", "--resume", "benchmark decode"):
        assert any(part in command for command in commands), part
    assert sum("torch.distributed.run" in command for command in commands) == 3, "1 and 2 processes, and sharded"
    for command in commands:
        if " train " in command:
            parse(command.split(" train ")[1].split())


@pytest.mark.slow
def test_the_script_is_complete_on_the_simulated_device(tmp_path: Path) -> None:
    """Measurements run on the simulated device with a tiny model, and what needs a GPU's driver on the CPU."""
    python = executable(tmp_path / "python", f'cd {ROOT}; exec {sys.executable} -m tests.simulated_main "$@"')
    done = script(python, tmp_path / "results", MT_KILL_AFTER="20")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "results/all-parts.markdown").read_text()
    assert text.count("\n# ") + 1 == len(PARTS) + 2
    assert (tmp_path / "results/killed/model/model.safetensors").exists()


def test_without_a_gpu_a_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", "--part", "memory", "--device", "cpu", "--output", str(tmp_path)]) == 2
    assert "--device is cpu, which is the CPU here; accepted: cuda or cuda:N" in capsys.readouterr().err
