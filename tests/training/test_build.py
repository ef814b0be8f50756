"""A build that is killed in five stages makes the models of an uninterrupted one, by the command as a user types it."""

import random
import signal
import time
from pathlib import Path

import pytest

from mt.cli.build import main as build
from tests.training.conftest import Place

pytestmark = [pytest.mark.system, pytest.mark.slow]

SECTION = """
[build]
student = [{ encoder_layers = 2, decoder_layers = 1, dropout = 0.0 }]
"""
OVERRIDES = ("training.max_updates=60", "training.save_every=7", "training.validate_every=30", "--processes", "1")
KILLED = ("text", "base-en-de-1", "translate-1-de-en", "round1-en-de-1", "student1-en-de")


def weights(work: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(work.glob("models/*/model.safetensors"))}


def started(work: Path, stage: str) -> bool:
    """Whether a stage has begun its work; a training, whether it has written a checkpoint."""
    folder = work / "stages" / stage
    trains = stage not in ("text", "translate-1-de-en")
    return any(folder.glob("checkpoints/[0-9]*")) if trains else (folder / "log.txt").exists()


def test_kill_9_in_five_stages_changes_no_bit(place: Place) -> None:
    recipe = place.folder / "recipe.toml"
    recipe.write_text(recipe.read_text() + SECTION)
    place.here(build, *OVERRIDES, "--run", "whole", "--device", "cpu")
    whole, killed = place.folder / "whole", place.folder / "killed"
    assert set(weights(whole)) == {"en-de-teacher", "en-de-student1"}

    seed = random.SystemRandom().randrange(1 << 16)
    chance = random.Random(seed)
    print(f"seed {seed}")
    for stage in KILLED:
        process = place.start(place.command("build.py", *OVERRIDES, "--run", "killed", "--device", "cpu"))
        while not started(killed, stage) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
    said = place.here(build, *OVERRIDES, "--run", "killed", "--device", "cpu")
    assert "16 of 20 stages are done" in said
    assert weights(killed) == weights(whole)
    report = (killed / "report.md").read_text()
    assert "| en-de-student1 | en-de | test.en | 2+1 | 340 | float32 |" in report

    (place.folder / "corpora/test.en").write_text((place.folder / "corpora/test.en").read_text().upper())
    said = place.here(build, *OVERRIDES, "--run", "killed", "--device", "cpu")
    assert "16 of 20 stages are done" in said  # all but the evaluations on the test set
    assert weights(killed) == weights(whole)
