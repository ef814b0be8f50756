"""One command to a served model of the hub, in an environment without models: weights of all kinds, and refusals."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mt import Translator
from mt.interop.importer import import_model
from mt.interop.int8 import round_import
from tests.interop.hub_stub import HubStub, Repository, running

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

from tests.interop.families import FAMILIES
from tests.interop.test_hub import NAME, PICKLE, ROOT, SAFE, pickled
from tests.interop.test_huggingface import Write, models, write  # noqa: F401 -- fixtures

pytestmark = pytest.mark.slow

TEXT = "The dog sees a cat in the old house."
M2M = "facebook/m2m100_418M"
SPECIAL = {"XDG_DATA_HOME", "HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "MT_MODELS", "MT_MODEL"}


@pytest.fixture
def hub() -> Iterator[HubStub]:
    with running(HubStub()) as stub:
        yield stub


@pytest.fixture
def start(hub: HubStub, tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Starts `python -m service --model hub:NAME` with empty folders for models and downloads."""

    def command(name: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if key not in SPECIAL}
        folders = {"XDG_DATA_HOME": str(tmp_path / "data"), "HF_HOME": str(tmp_path / "home")}
        return subprocess.Popen(
            [sys.executable, "-m", "service", "--model", f"hub:{name}", "--port", "0", "--device", "cpu"],
            cwd=ROOT,
            env={**environment, **folders, "HF_ENDPOINT": hub.endpoint, "NO_PROXY": "127.0.0.1"},
            stderr=subprocess.PIPE,
            text=True,
        )

    return command


@contextmanager
def address(service: subprocess.Popen[str]) -> Iterator[str]:
    """Wait until the service listens, and end it afterwards."""
    with service:
        assert service.stderr is not None
        lines = []
        for line in service.stderr:
            lines.append(line)
            if '"listening"' in line:
                break
        try:
            assert lines[-1].startswith("{"), lines
            yield f"http://127.0.0.1:{json.loads(lines[-1])['port']}"
        finally:
            service.terminate()
            service.stderr.read()
    assert service.returncode == 0, lines


def served(service: subprocess.Popen[str]) -> str:
    with address(service) as url:
        answer = httpx.post(f"{url}/translate", json={"q": TEXT, "source": "en", "target": "de"}, timeout=60)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["translatedText"])


def refused(service: subprocess.Popen[str]) -> str:
    """Return what the command wrote; it must have ended with status 2."""
    _, errors = service.communicate()
    assert service.returncode == 2, errors
    return errors


def expected(folder: Path, out: Path, directions: Sequence[str] = ()) -> str:
    """Return the translation by the model that is imported from a local folder."""
    import_model(str(folder), out, tuple(directions))
    round_import(out)
    text = Translator.load(out, "cpu").translate(TEXT, source="en", target="de").text
    assert text and text != TEXT
    return text


Start = Callable[[str], subprocess.Popen[str]]


def test_safetensors(hub: HubStub, start: Start, write: Write, tmp_path: Path) -> None:  # noqa: F811
    folder = write()
    hub.repositories[NAME] = Repository({"main": folder})
    assert served(start("opus-mt-en-de")) == expected(folder, tmp_path / "expected")


def test_a_pickle_with_the_hubs_conversion(hub: HubStub, start: Start, write: Write, tmp_path: Path) -> None:  # noqa: F811
    folder = write()
    branches = {"main": pickled(folder, "main", keep=False), "refs/pr/4": pickled(folder, "converted", keep=True)}
    hub.repositories[NAME] = Repository(branches, requests=[(4, "SFconvertbot")])
    assert served(start("opus-mt-en-de")) == expected(folder, tmp_path / "expected")
    assert hub.fetched(PICKLE) == [] and len(hub.fetched(SAFE)) == 1


def test_shards(hub: HubStub, start: Start, tmp_path: Path) -> None:
    whole = FAMILIES[0].write(tmp_path / "whole")
    parts = FAMILIES[0].write(tmp_path / "parts", shard_size="100KB")
    assert len(list(parts.glob("model-*.safetensors"))) > 1
    hub.repositories[M2M] = Repository({"main": parts}, licence="mit")
    assert served(start("m2m100_418M")) == expected(whole, tmp_path / "expected")


def test_a_gated_model(hub: HubStub, start: Start, write: Write) -> None:  # noqa: F811
    hub.repositories[NAME] = Repository({"main": write()}, gated=True)
    message = refused(start("opus-mt-en-de"))
    assert f"conditions at {hub.endpoint}/{NAME}" in message and "HF_TOKEN" in message
    assert "Traceback" not in message
    hub.repositories[NAME].gated = False  # the conditions are accepted: the same command serves the model
    served(start("opus-mt-en-de"))


def test_a_missing_model(hub: HubStub, start: Start) -> None:
    message = refused(start("Nobody/nothing"))
    assert "no public model of this name" in message and "Traceback" not in message
    message = refused(start("opus-mt-ende"))
    assert "did you mean opus-mt-en-de?" in message and "Traceback" not in message


def test_an_interrupted_download(hub: HubStub, start: Start, write: Write, tmp_path: Path) -> None:  # noqa: F811
    folder = write()
    hub.repositories[NAME] = Repository({"main": folder})
    hub.cuts[SAFE] = [10_000, *[0] * 20]  # and the attempts of huggingface_hub after it
    message = refused(start("opus-mt-en-de"))
    assert "the same command continues the download" in message and "Traceback" not in message
    before = [file for file in ("config.json", "vocab.json") if hub.fetched(file)]
    hub.cuts.clear()
    assert served(start("opus-mt-en-de")) == expected(folder, tmp_path / "expected")
    assert before and all(len(hub.fetched(file)) == 1 for file in before)  # complete files are not fetched again
