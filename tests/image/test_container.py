"""The image, built and run by scripts/image.sh. Skipped where no container engine can work."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event

import httpx
import pytest

from tests.conftest import free_port, write_model

pytestmark = [pytest.mark.image, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
TAG = "localhost/mt-service:cpu"
NO_ENGINE = 77
CLIENTS = 4
PATIENCE = 120.0  # seconds: a test that fails must not hang


def image(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", ROOT / "scripts" / "image.sh", *words], capture_output=True, text=True)


def engine(*words: str) -> str:
    done = image("engine", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def built() -> str:
    """What the build said."""
    done = image("build")
    if done.returncode == NO_ENGINE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


@dataclass
class Container:
    """One that shares this machine's network, so that clients outside reach it."""

    name: str
    url: str

    @property
    def process(self) -> int:
        return int(engine("inspect", self.name, "--format", "{{.State.Pid}}"))

    def logs(self) -> str:
        return image("engine", "logs", self.name).stdout + image("engine", "logs", self.name).stderr

    def figure(self, name: str) -> float:
        lines = httpx.get(f"{self.url}/metrics", trust_env=False, timeout=60).text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


@dataclass
class Load:
    """Clients that ask again and again. `answers` are translations, in the order in which they came, or None."""

    url: str
    answers: list[str | None] = field(default_factory=list)
    stop: Event = field(default_factory=Event)
    numbers: Iterator[int] = field(default_factory=count)

    def ask(self) -> None:
        """Texts that no cache knows."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE) as client:
            while not self.stop.is_set():
                body = {"q": f"The dog sees the cat {next(self.numbers)}.", "source": "en", "target": "de"}
                try:
                    translation = client.post("/translate", json=body)
                    self.answers.append(
                        translation.json()["translatedText"] if translation.status_code == 200 else None
                    )
                except httpx.TransportError:
                    self.answers.append(None)
                    self.stop.wait(0.1)


@pytest.fixture
def load() -> Iterator[Callable[[str], Load]]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        loads: list[Load] = []

        def start(url: str) -> Load:
            loads.append(Load(url))
            for _ in range(CLIENTS):
                pool.submit(loads[-1].ask)
            return loads[-1]

        yield start
        for item in loads:
            item.stop.set()


@pytest.fixture
def run(built: str) -> Iterator[Callable[..., Container]]:
    """Starts containers: `run(models, "--restart", "always")`."""
    started: list[Container] = []

    def start(models: Path, *words: str) -> Container:
        port = str(free_port())
        name = f"mt-test-{os.getpid()}-{len(started)}"
        settings = {"MT_HOST": "127.0.0.1", "MT_PORT": port, "MT_THREADS": "1", "MT_CACHE_CHARACTERS": "0"}
        environment = [word for item in settings.items() for word in ("--env", "=".join(item))]
        started.append(Container(name, f"http://127.0.0.1:{port}"))
        hardened = ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp"]
        volume = ["--volume", f"{models}:/models:ro"]
        engine("run", "--detach", "--name", name, "--network", "host", *hardened, *volume, *environment, *words, TAG)
        until(lambda: is_ready(started[-1]), started[-1].logs)
        return started[-1]

    yield start
    for container in started:
        image("engine", "rm", "--force", container.name)


def is_ready(container: Container) -> bool:
    try:
        return httpx.get(f"{container.url}/readyz", trust_env=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


def until(condition: Callable[[], bool], said: Callable[[], str] = str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, said()
        time.sleep(0.05)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with one model, which every user may read."""
    folder = tmp_path / "models"
    write_model(folder / "m", ["en-de"])
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    return folder


def test_the_image_keeps_its_promises(built: str) -> None:
    done = image("check")
    print(built, done.stderr, done.stdout)
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stderr and done.stderr.count("\nok ") >= 15


def test_a_container_that_is_killed_under_load_comes_back(
    run: Callable[..., Container], load: Callable[[str], Load], models: Path
) -> None:
    container = run(models, "--restart", "always")
    clients = load(container.url)
    until(lambda: len(clients.answers) > 20)
    assert None not in clients.answers
    killed = container.process
    try:
        os.kill(killed, signal.SIGKILL)
    except PermissionError:
        pytest.skip("this user may not kill the container's process")
    until(lambda: clients.answers[-1] is None)
    until(lambda: is_ready(container), container.logs)
    served = len(clients.answers)
    until(lambda: len(clients.answers) > served + 40)
    assert container.process != killed
    assert None not in clients.answers[-20:]


def test_models_that_are_replaced_are_taken_up_without_a_failed_request(
    run: Callable[..., Container], load: Callable[[str], Load], models: Path
) -> None:
    container = run(models)
    clients = load(container.url)
    until(lambda: len(clients.answers) > 20)
    write_model(models / "m", ["en-de", "en-fr"])  # whose tokenizer is another one, so that it translates differently
    write_model(models / "more", ["fr-de"])
    engine("kill", "--signal", "HUP", container.name)
    until(lambda: container.figure("mt_reloads_total") == 2, container.logs)
    taken_up = len(clients.answers)
    until(lambda: len(clients.answers) > taken_up + 20)
    clients.stop.set()
    assert None not in clients.answers
    languages = httpx.get(f"{container.url}/languages", trust_env=False, timeout=60).json()
    assert {language["code"]: language["targets"] for language in languages}["en"] == ["de", "fr"]
