"""The measurements of a GPU, on a simulated device."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from mt.cli.train import parse
from mt.config import ModelConfig
from mt.recipe import load_recipe
from scripts.benchmark.gpu import PARTS, Sizes, main
from scripts.benchmark.gpu import parse as parse_parts
from tests.simulated_main import simulated_measure

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"correctness": 4, "decoding": 4, "attention": 4, "replay": 2, "profile": 2, "lengths": 2}
"""Rows of each part with the sizes of `simulated_measure`, if there is more than one."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_measures_and_writes(tmp_path: Path, name: str) -> None:
    rows = simulated_measure(name, "tiny", tmp_path)
    assert len(rows) == ROWS.get(name, 1)
    assert json.loads((tmp_path / f"{name}-tiny.json").read_text())["rows"] == rows
    assert (tmp_path / f"{name}-tiny.md").read_text().count("\n| ") == 2 + len(rows)
    if name == "correctness":
        assert [row["differ"] for row in rows][:2] == [0, 0]
    if name == "memory":
        assert rows[0]["failed"] == 0


@pytest.mark.parametrize("size", ["base", "big"])
def test_measured_updates_are_those_of_the_recipe(size: str) -> None:
    """An update of 16,384 tokens is one batch, since a batch holds at most `update_tokens`."""
    training = load_recipe(ROOT / f"scripts/recipes/{size}.toml").training
    measured = Sizes(ModelConfig.model_validate({"size": size})).update_tokens
    assert training.batch_tokens == training.update_tokens == measured[0] == 16_384


def script(python: str, output: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "scripts/gpu.sh"), str(output), *options]
    variables = {**os.environ, "MT_PYTHON": python, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True)


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_script_runs_every_part_and_names_those_that_failed(tmp_path: Path) -> None:
    log = tmp_path / "commands"
    python = executable(
        tmp_path / "python",
        f"""[ "$1" = - ] && exit
[ "$1" = -c ] && echo 2 && exit
echo "$*" >> {log}
if [[ "$*" = *max_updates=100000* ]]; then
    mkdir -p {tmp_path}/results/killed/checkpoints/00000020
    sleep 600
fi
[[ "$*" != *"--part memory"* ]] || {{ echo 'no "memory"' && exit 1; }}""",
    )
    done = script(python, tmp_path / "results")
    assert done.returncode == 1 and "FAILED: limits;" in done.stderr
    summary = {row["part"]: row for row in json.loads((tmp_path / "results/summary.json").read_text())}
    assert summary["limits"]["result"] == "failed" and summary["limits"]["reason"] == "no memory"
    assert {row["result"] for part, row in summary.items() if part != "limits"} == {"passed"}
    with tarfile.open(tmp_path / "results/results.tgz") as archive:
        assert {"./summary.json", "./limits.log"} <= set(archive.getnames())
    assert len((tmp_path / "results/summary.md").read_text().splitlines()) == 2 + len(summary)
    commands = log.read_text().splitlines()
    lines = [command.split("benchmark.gpu ")[1] for command in commands if "benchmark.gpu " in command]
    measured = [parse_parts(line.split()) for line in lines]
    assert sorted(name for options in measured if options.size == "base" for name in options.part) == sorted(PARTS)
    assert any(options.size == "big" and "training" in options.part for options in measured)
    for part in ("-m pytest -m gpu", "translate", "--device cuda:1", "--resume", "benchmark.decode"):
        assert any(part in command for command in commands), part
    assert sum("torch.distributed.run" in command for command in commands) == 2, "1 and 2 processes"
    assert sum("max_updates=100000" in command for command in commands) == 1
    assert any("--resume" in command and "results/killed" in command for command in commands)
    for command in commands:
        if " train " in command:
            parse(command.split(" train ")[1].split())


def test_the_script_checks_for_every_package_that_its_parts_import() -> None:
    listed = " ".join(re.findall(r'^needed \+?= "(.*?)"', (ROOT / "scripts/gpu.sh").read_text("utf-8"), re.MULTILINE))
    packages = {name.partition(".")[0] for name in listed.split()}
    distributions = packages_distributions()
    checked = {re.sub(r"[-_.]+", "-", each).lower() for name in packages for each in distributions.get(name, ())}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {re.sub(r"[-_.]+", "-", re.split(r"[<>=\[]", each)[0]).lower() for each in project["dependencies"]}
    assert len(required) > 20 and required - checked == set()
    tests = [ROOT / "tests/conftest.py", ROOT / "tests/service/conftest.py", ROOT / "tests/service/test_contract.py"]
    imported = {name for path in tests for name in re.findall(r"^(?:import|from) (\w+)", path.read_text("utf-8"), re.M)}
    assert imported - {*sys.stdlib_module_names, "mt", "service", "scripts", "tests"} <= packages


@pytest.mark.slow
def test_the_script_is_complete_on_the_simulated_device(tmp_path: Path) -> None:
    python = executable(tmp_path / "python", f'cd {ROOT}; exec {sys.executable} -m tests.simulated_main "$@"')
    results = tmp_path / "results"
    done = script(python, results)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (results / "all-parts.markdown").read_text().count("\n# ") + 1 == len(PARTS) + 2
    summary = json.loads((results / "summary.json").read_text())
    skipped = {row["part"] for row in summary if row["result"] == "skipped"}
    assert skipped == {"tests", "service", "translate-second-gpu"}
    assert {row["result"] for row in summary if row["part"] not in skipped} == {"passed"} and len(summary) > 13
    assert "resumed at update" in (results / "resumed.log").read_text()
    assert (results / "killed/model/model.safetensors").exists()


def test_without_a_gpu_a_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--part", "memory", "--device", "cpu", "--output", str(tmp_path)]) == 2
    assert "--device is cpu, which is the CPU here; accepted: cuda or cuda:N" in capsys.readouterr().err
