"""What a user gets wrong on the command line: status 2, a message that says what to do, no traceback (acceptance 11).

The scripts run in this process: an error that is no MTError would come out of them and fail the test.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mt.cli.prepare import main as prepare
from mt.cli.train import main as train_main
from mt.errors import DataError
from mt.recipe import load_recipe, save_recipe

Main = Callable[[Sequence[str]], int]
Refused = Callable[..., str]


@pytest.fixture
def refused(place: Any) -> Refused:
    """What a script says on stderr, which must end with status 2."""
    return lambda main, *arguments: place.here(main, *arguments, status=2)


def train(arguments: Sequence[str]) -> int:
    """`scripts/train.py` in one process; what others do is in test_processes.py."""
    return train_main([*arguments, "--threads", "1"])


BOTH = pytest.mark.parametrize("script", [prepare, train])


@BOTH
def test_unknown_keys_with_the_nearest_known_one(refused: Refused, script: Main) -> None:
    said = refused(script, "training.lerning_rate=1e-3", "model.droput=0.1", "data.max_tokens=0")
    assert "training.lerning_rate is unknown (did you mean learning_rate?)" in said
    assert "model.droput is unknown (did you mean dropout?)" in said
    assert "data.max_tokens = 0" in said


@BOTH
def test_no_such_recipe(refused: Refused, place: Any, script: Main) -> None:
    (place.folder / "recipe.toml").unlink()
    assert "recipe.toml: there is no such recipe" in refused(script)


@BOTH
def test_missing_files_are_all_named_and_the_run_is_not_claimed(refused: Refused, place: Any, script: Main) -> None:
    missing = [place.folder / "corpora" / name for name in ("train.en", "valid.en", "valid.de")]
    for path in missing:
        path.unlink()
    said = refused(script)
    for path in missing:
        assert f"corpora/{path.name}" in said
    assert "train.de" not in said
    assert not list(place.folder.glob("runs/*/recipe.toml")), "or the next attempt would need --resume"


@BOTH
def test_misaligned_files(refused: Refused, place: Any, script: Main) -> None:
    path = place.folder / "corpora" / "train.de"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    said = refused(script)
    assert "train.en" in said
    assert "train.de" in said
    assert "400" in said
    assert "397" in said
    assert not list(place.folder.glob("runs/prepared/*")), "no half of it is left"


@BOTH
def test_bad_utf8_with_file_and_line(refused: Refused, place: Any, script: Main) -> None:
    path = place.folder / "corpora" / "train.de"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = b"gr\xfcn\n"
    path.write_bytes(b"".join(lines))
    assert "corpora/train.de:7" in refused(script)


def test_a_run_that_is_there_already(refused: Refused, place: Any) -> None:
    save_recipe(load_recipe(place.folder / "recipe.toml"), place.folder / "kept.toml")
    (place.folder / "run").mkdir()
    (place.folder / "kept.toml").rename(place.folder / "run" / "recipe.toml")
    said = refused(train, "--run", "run")
    assert "run already holds a run. Give --resume to continue that run, or another --run" in said


def test_a_run_that_another_process_trains(refused: Refused, place: Any) -> None:
    holder = (
        "from pathlib import Path; from mt.files import try_lock\n"
        "with try_lock(Path('run')): print('held', flush=True); input()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", holder], cwd=place.folder, stdin=pipe, stdout=pipe) as process:
        assert process.stdout and process.stdout.readline()
        said = refused(train, "--run", "run", "--resume")
        process.communicate(b"\n")
    assert "another process trains in run. Give another --run" in said
    assert not (place.folder / "run").exists()


def test_resuming_with_another_model(refused: Refused, place: Any) -> None:
    (place.folder / "run").mkdir()
    save_recipe(load_recipe(place.folder / "recipe.toml"), place.folder / "run" / "recipe.toml")
    said = refused(train, "--run", "run", "--resume", "model.d_model=64", "seed=9", "training.max_updates=7")
    assert "the recipe differs from run/recipe.toml in seed, model. Use the values of that file" in said


def test_resuming_with_another_optimizer(refused: Refused, place: Any) -> None:
    kept = place.folder / "run" / "recipe.toml"
    kept.parent.mkdir()
    save_recipe(load_recipe(place.folder / "recipe.toml"), kept)
    before = kept.read_text()
    said = refused(train, "--run", "run", "--resume", "training.optimizer=muon")
    assert "the recipe differs from run/recipe.toml in training.optimizer. Use the values of that file" in said
    assert kept.read_text() == before


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda test: test.unlink(), "corpora/test.de"),
        (lambda test: test.write_text("oak\n"), "corpora/test.de"),
    ],
    ids=["missing", "misaligned"],
)
def test_a_bad_test_set_is_found_before_training(
    refused: Refused, place: Any, damage: Callable[[Path], None], words: str
) -> None:
    damage(place.folder / "corpora" / "test.de")
    assert words in refused(train, "--run", "run")
    assert not (place.folder / "run").exists()


def test_test_sentences_that_the_model_could_not_read_are_all_named(refused: Refused, place: Any) -> None:
    path = place.folder / "corpora" / "test.en"
    lines = path.read_text().splitlines()
    lines[3] = lines[5] = "willow " * 40
    path.write_text("".join(f"{line}\n" for line in lines))
    said = refused(train, "--run", "run", "model.max_length=30")
    assert "test sentences longer than model.max_length, 30:" in said
    assert "test.en" in said
    assert ":4: " in said
    assert ":6: " in said


def test_a_damaged_checkpoint_is_named(refused: Refused, place: Any) -> None:
    place.here(train, "training.max_updates=2", "--run", "run")
    weights = place.folder / "run" / "checkpoints" / "00000002" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    said = refused(train, "training.max_updates=2", "--run", "run", "--resume")
    assert "run/checkpoints/00000002/model.safetensors: not a complete safetensors file" in said


def test_a_device_that_is_not_there(refused: Refused) -> None:
    assert "accepted: auto, cpu, cuda" in refused(train, "--device", "abacus")


def test_options_and_overrides_in_any_order(refused: Refused) -> None:
    assert "lerning_rate" in refused(train, "--run", "run", "training.lerning_rate=1e-3", "--resume", "seed=3")


def test_a_model_without_a_confidence_is_written(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataError("the model writes no word")

    monkeypatch.setattr("mt.cli.train.fit_confidence", fail)
    said = place.here(train, "training.max_updates=2", "training.warmup_updates=1", "--run", "run")
    assert "no confidence.json: the model writes no word" in said
    files = {file.name for file in (place.folder / "run" / "model").iterdir()}
    assert "model.safetensors" in files and "confidence.json" not in files


def test_prepare_accepts_a_recipe_of_a_build_and_train_does_not(refused: Refused, place: Any) -> None:
    recipe = place.folder / "recipe.toml"
    recipe.write_text(recipe.read_text() + "\n[build]\nseeds = 2\n")
    assert "training and" in place.here(prepare)
    assert "build is a section for `mt-service build`" in refused(train)
