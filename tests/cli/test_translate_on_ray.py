"""`scripts/translate.py --ray`: 100,000 lines, with a worker killed and the whole program killed on the way."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from platform import node

import pytest

from mt.cli.translate import main
from tests.cli.ray_cluster import LOCAL, Cluster, cluster
from tests.conftest import sentences
from tests.service.conftest import environment
from tests.service.workers.test_fleet import other_weights

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'mt-service[ray]'"),
]

ROOT = Path(__file__).resolve().parents[2]
FROZEN = ROOT / "tests" / "frozen" / "model"
LINES = 100_000


@pytest.fixture(scope="module")
def machine() -> Iterator[Cluster]:
    with cluster(cpus=2) as found:
        yield found


def started(arguments: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "scripts/translate.py", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment(LOCAL), stderr=subprocess.PIPE, text=True)


def until(process: "subprocess.Popen[str]", condition: Callable[[], bool]) -> None:
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)


def test_a_hundred_thousand_lines_are_those_of_one_process(
    machine: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [text.encode() for text in sentences(LINES)]
    lines[25_250] = b"\xff"
    lines[70_000] = b""
    lines[99_998] = b"The \xfe cat."
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"\n".join(lines), 1))
    part, out, expected = (tmp_path / name for name in ("out.part", "out", "expected"))
    arguments = [str(FROZEN), str(tmp_path / "in.gz"), "--beam-size", "1", "--threads", "1", "--device", "cpu"]

    def written() -> int:
        return part.read_bytes().count(b"\n") if part.exists() else 0

    first = started([*arguments, "--output", str(out), "--ray", machine.address])
    until(first, lambda: written() >= 10_000)
    victims = machine.processes("ray::ClusterWorker")
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    at = written()
    until(first, lambda: written() >= at + 20_000)
    assert victims[0] not in machine.processes("ray::ClusterWorker")
    first.kill()
    assert first.wait() == -signal.SIGKILL and not out.exists() and written() < LINES
    second = started([*arguments, "--output", str(out), "--ray", machine.address])
    _, said = second.communicate()
    assert second.returncode == 3
    assert said.startswith("resuming after line ")
    assert said.splitlines()[-1] == "2 of 100,000 lines could not be translated and are empty"
    print(f"killed a worker after {at:,} lines; {said.splitlines()[0]}")
    assert main([*arguments, "--output", str(expected)]) == 3
    assert "in.gz:99999: not UTF-8 at byte 5" in capfd.readouterr().err
    assert out.read_bytes() == expected.read_bytes()
    assert out.read_bytes().count(b"\n") == LINES
    assert sorted(each.name for each in tmp_path.iterdir()) == ["expected", "in.gz", "out"]


def test_json_and_a_glossary(machine: Cluster, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("\n".join(sentences(50)))
    (tmp_path / "terms.tsv").write_text("dog\tPudel\n")
    arguments = [
        str(FROZEN),
        str(tmp_path / "in"),
        "--json",
        "--n-best",
        "2",
        "--glossary",
        str(tmp_path / "terms.tsv"),
    ]
    arguments += ["--threads", "1", "--device", "cpu"]
    spread = started([*arguments, "--output", str(tmp_path / "spread"), "--ray", machine.address])
    assert spread.wait() == 0
    assert main([*arguments, "--output", str(tmp_path / "alone")]) == 0
    assert (tmp_path / "spread").read_bytes() == (tmp_path / "alone").read_bytes()


def test_a_worker_that_starts_again_with_another_model_is_refused(machine: Cluster, tmp_path: Path) -> None:
    """As one on a machine whose copy of the model is an old one."""
    model, part = tmp_path / "model", tmp_path / "out.part"
    shutil.copytree(FROZEN, model)
    (tmp_path / "in").write_text("\n".join(sentences(LINES)))
    arguments = [str(model), str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--beam-size", "1"]
    process = started([*arguments, "--threads", "1", "--device", "cpu", "--ray", machine.address])
    until(process, lambda: part.exists() and part.read_bytes().count(b"\n") >= 5_000)
    other_weights(model, 0.9)
    os.kill(machine.processes("ray::ClusterWorker")[0], signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == 2
    assert f"error: machine {node()} would translate otherwise than the first one:\n  - model.safetensors is " in said
    assert not (tmp_path / "out").exists() and part.read_bytes().count(b"\n") < LINES


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--source", "de"], "this model has no direction from de"),
        (["--temperature", "0.5"], "temperature is 0.5 and sample is false; accepted: 1, or sample"),
        (["--device", "cuda:1"], "--device is 'cuda:1'; accepted with --ray: auto, cpu or cuda"),
    ],
)
def test_mistakes_are_told_as_ever(machine: Cluster, tmp_path: Path, more: list[str], message: str) -> None:
    (tmp_path / "in").write_text("The dog.\n")
    arguments = [str(FROZEN), str(tmp_path / "in"), "--output", str(tmp_path / "out"), *more]
    process = started([*arguments, "--ray", machine.address])
    _, said = process.communicate()
    assert process.returncode == 2
    assert said.startswith("error: ") and message in said and "Traceback" not in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in"]
