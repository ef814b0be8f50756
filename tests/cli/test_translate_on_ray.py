"""`mt-service translate --ray` on a cluster of this machine, with an actor killed and the program killed on the way."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from platform import node
from threading import Thread
from uuid import uuid4

import pytest

from mt.cli.translate import main
from mt.cli.translate_on_ray import actor_pool
from mt.errors import RequestError
from tests.conftest import free_port, sentences
from tests.service.conftest import ROOT, environment
from tests.service.workers.test_fleet import other_weights

FROZEN = ROOT / "tests" / "frozen" / "model"
LINES = 20_000
MARK = "MT_TEST_CLUSTER"  # in the environment of every process of the cluster, to kill only these
LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's name for: only the loopback interface
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
}
without_ray = find_spec("ray") is None


@dataclass(frozen=True)
class Cluster:
    """A cluster of this machine. Its processes have `mark` in their environment."""

    address: str
    mark: str

    def processes(self, name: str) -> list[int]:
        """Return the ids of the processes whose title contains `name`."""
        ids = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                marked = f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes().split(b"\0")
                if marked and name.encode() in (path / "cmdline").read_bytes():
                    ids.append(int(path.name))
            except OSError:  # the process has ended
                continue
        return sorted(ids)

    def actors(self) -> list[int]:
        return self.processes("ray::MapWorker(MapBatches(BatchTranslator))")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if without_ray:
        pytest.skip("ray is not installed: pip install 'mt-service[ray]'")
    mark = uuid4().hex
    port, client, agent = (free_port() for _ in range(3))
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # a short path
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
        command += ["--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2", "--num-gpus=0"]
        command += ["--include-dashboard=false", f"--ray-client-server-port={client}", f"--temp-dir={folder}"]
        command += [f"--dashboard-agent-listen-port={agent}", f"--object-store-memory={200_000_000}"]
        paths = os.pathsep.join([str(ROOT), *sys.path])
        env = environment({MARK: mark, "PYTHONUNBUFFERED": "1", "PYTHONPATH": paths, **LOCAL})
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        started = Cluster(f"127.0.0.1:{port}", mark)
        try:
            assert process.stdout is not None
            assert any("until terminated" in line for line in process.stdout)  # the last line of its start
            Thread(target=process.stdout.read, daemon=True).start()
            yield started
        finally:
            process.terminate()
            process.wait()
            for id in started.processes(""):
                os.kill(id, signal.SIGKILL)


def start(arguments: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "scripts/translate.py", *arguments, "--threads", "1", "--device", "cpu"]
    return subprocess.Popen(command, cwd=ROOT, env=environment(LOCAL), stderr=subprocess.PIPE, text=True)


def wait(process: "subprocess.Popen[str]", condition: Callable[[], bool]) -> None:
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)


def written(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.system
def test_lines_equal_those_of_a_process(cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [text.encode() for text in sentences(LINES)]
    lines[5_250] = b"\xff"
    lines[14_000] = b""
    lines[19_998] = b"The \xfe cat."
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"\n".join(lines), 1))
    part, out, expected = (tmp_path / name for name in ("out.part", "out", "expected"))
    arguments = ["--model", str(FROZEN), str(tmp_path / "in.gz"), "--beam-size", "1"]

    killed = start([*arguments, "--output", str(out), "--ray", cluster.address])
    wait(killed, lambda: written(part) >= 2_000)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL and not out.exists() and written(part) < LINES
    resumed = start([*arguments, "--output", str(out), "--ray", cluster.address])
    wait(resumed, lambda: written(part) >= 8_000)
    before = written(part)
    os.kill(cluster.actors()[0], signal.SIGKILL)
    assert before < LINES - 4_000, "the killed actor had nothing to do"
    _, messages = resumed.communicate()
    assert resumed.returncode == 3, messages
    assert messages.startswith("resuming after line ")
    assert messages.splitlines()[-1] == "2 of 20,000 lines could not be translated and are empty"

    assert main([*arguments, "--threads", "1", "--device", "cpu", "--output", str(expected)]) == 3
    assert "in.gz:19999: not UTF-8 at byte 5" in capfd.readouterr().err
    assert out.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected", "in.gz", "out"]


@pytest.mark.slow
@pytest.mark.system
def test_an_actor_that_restarts_with_another_model_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A machine may have an old copy of the model."""
    model, part = tmp_path / "model", tmp_path / "out.part"
    shutil.copytree(FROZEN, model)
    (tmp_path / "in").write_text("\n".join(sentences(LINES)))
    arguments = ["--model", str(model), str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--beam-size", "1"]
    process = start([*arguments, "--ray", cluster.address])
    wait(process, lambda: written(part) >= 1_000)
    other_weights(model, 0.9)
    os.kill(cluster.actors()[0], signal.SIGKILL)
    _, messages = process.communicate()
    assert process.returncode == 2, messages
    refusal = f"error: machine {node()} would translate differently from the first machine:\n  - models is "
    assert refusal in messages
    assert not (tmp_path / "out").exists() and written(part) < LINES


@pytest.mark.parametrize(
    ("device", "resources", "pool"),
    [
        ("auto", {"CPU": 16.0, "GPU": 2.0}, (2, "cuda")),
        ("cpu", {"CPU": 16.0, "GPU": 2.0}, (5, "cpu")),
        ("auto", {"CPU": 2.0}, (1, "cpu")),
        ("cuda:1", {"CPU": 16.0, "GPU": 2.0}, "--device is 'cuda:1'; accepted with --ray: auto, cpu or cuda"),
        ("cuda", {"CPU": 16.0}, "--device is 'cuda', but the cluster has no GPU; accepted: auto or cpu"),
    ],
)
def test_actors_of_a_cluster(device: str, resources: dict[str, float], pool: tuple[int, str] | str) -> None:
    if isinstance(pool, tuple):
        assert actor_pool(device, 3, resources) == pool
    else:
        with pytest.raises(RequestError, match=pool):
            actor_pool(device, 3, resources)


@pytest.mark.skipif(not without_ray, reason="ray is installed")
def test_ray_is_named_where_it_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("The dog.\n")
    assert main(["--model", str(FROZEN), str(tmp_path / "in"), "--ray", "auto"]) == 2
    assert "ray is not installed. Run pip install 'mt-service[ray]'" in capsys.readouterr().err
