"""Model directories that somebody has spoilt: the program refuses each, and runs nothing that is in them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_model
from tests.service.conftest import ROOT, environment
from tests.service.running import FROZEN
from tests.weights import load_weights, save_weights

pytestmark = pytest.mark.system


def replace_by_link(file: Path, target: Path) -> None:
    file.unlink()
    file.symlink_to(target)


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN: dict[str, Callable[[Path], Any]] = {
    "cut short": lambda model: os.truncate(model / "model.safetensors", 1000),
    "a pickle": lambda model: (model / "model.safetensors").write_bytes(
        b"cos\nsystem\n(S'touch " + os.fsencode(model.parent / "canary") + b"'\ntR."
    ),
    "a header of 2^60 bytes": lambda model: (model / "model.safetensors").write_bytes(
        (2**60).to_bytes(8, "little") + b"{}"
    ),
    "a header that is no JSON": lambda model: (model / "model.safetensors").write_bytes(
        (100).to_bytes(8, "little") + b"\xff" * 200
    ),
    "no numbers": lambda model: save_weights(
        model / "model.safetensors",
        {name: each * float("nan") for name, each in load_weights(FROZEN / "model.safetensors").items()},
    ),
    "other keys": lambda model: save_weights(
        model / "model.safetensors",
        {f"x.{name}": each for name, each in load_weights(FROZEN / "model.safetensors").items()},
    ),
    "rubbish for a tokenizer": lambda model: (model / "tokenizer.model").write_bytes(os.urandom(5000)),
    "a tokenizer of another model": lambda model: shutil.copy(
        write_model(model.parent / "small", ["en-de"]) / "tokenizer.model", model
    ),
    "a link that leads nowhere": lambda model: replace_by_link(model / "model.safetensors", model.parent / "nowhere"),
    "a link to a device": lambda model: replace_by_link(model / "model.safetensors", Path("/dev/zero")),
    "a folder for a config": lambda model: replace_by_folder(model / "config.json"),
    "a config that is no object": lambda model: (model / "config.json").write_text("[" * 100_000),
}


@pytest.mark.parametrize(
    "together",
    [
        pytest.param(list(BROKEN)[:3], id="1"),
        pytest.param(list(BROKEN)[3:8], id="2", marks=pytest.mark.slow),
        pytest.param(list(BROKEN)[8:], id="3", marks=pytest.mark.slow),
    ],
)
def test_models_that_cannot_be_served(tmp_path: Path, together: list[str]) -> None:
    """Each is named with what is wrong with it, the status is not 0, nothing is run and nobody reads a traceback."""
    for how in together:
        shutil.copytree(FROZEN, tmp_path / how / "model")
        BROKEN[how](tmp_path / how / "model")
    paths = ",".join(str(tmp_path / how / "model") for how in together)
    command = [sys.executable, "-m", "service", "--model", paths, "--port", "0", "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, env=environment({}), capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    for how in together:
        assert str(tmp_path / how / "model") in done.stderr, how
    assert not list(tmp_path.rglob("canary"))
