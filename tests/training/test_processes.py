"""On a CPU `scripts/train.py` starts a process a core by itself; they are one run."""

from pathlib import Path
from typing import Any

import pytest

from mt.cli.train import main as train
from tests.weights import load_weights

pytestmark = pytest.mark.system

RECIPE = ("training.max_updates=10", "training.batch_tokens=64", "model.dropout=0", "training.adam_epsilon=1e-3")


def weights(folder: Path) -> dict[str, Any]:
    return load_weights(folder / "checkpoints" / "00000010" / "model.safetensors")


@pytest.mark.slow
def test_processes_of_its_own_are_one_run(place: Any) -> None:
    said = place.run(place.command("train.py", *RECIPE, "--run", "two", "--processes", "2"))
    assert "processes: 2 on cpu, " in said
    assert said.count("the model is in") == 1
    place.here(train, *RECIPE, "--run", "one", "--threads", "1")
    ours, theirs = weights(place.folder / "two"), weights(place.folder / "one")
    assert max(float((ours[name] - theirs[name]).abs().max()) for name in ours) < 1e-4


@pytest.mark.slow
def test_a_mistake_is_told_once_and_leaves_no_process(place: Any) -> None:
    (place.folder / "corpora" / "test.de").unlink()
    said = place.run(place.command("train.py", *RECIPE, "--run", "two", "--processes", "2"), status=2)
    assert said.count("test.de") == 1
    assert "Traceback" not in said
