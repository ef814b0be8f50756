"""Mistakes on the command line: status 2, a message that says what to do, no traceback (acceptance 11).

The scripts run in this process: an error that is no MTError would come out of them and fail the test.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mt.cli.prepare import main as prepare
from mt.cli.train import main as train_main
from mt.errors import DataError
from mt.files import try_lock
from mt.recipe import load_recipe, save_recipe
from tests.training.conftest import Place

Main = Callable[[Sequence[str]], int]
Damage = Callable[[Path], object]


def train(arguments: Sequence[str]) -> int:
    return train_main([*arguments, "--threads", "1"])


def remove(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def change_lines(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return damage


def keep(folder: Path) -> None:
    """Write the recipe into the folder `run`, as a run does."""
    (folder / "run").mkdir()
    save_recipe(load_recipe(folder / "recipe.toml"), folder / "run" / "recipe.toml")


UNKNOWN = ("training.lerning_rate=1e-3", "model.droput=0.1", "data.max_tokens=0")


@pytest.mark.parametrize("script", [prepare, train])
@pytest.mark.parametrize(
    ("damage", "arguments", "told"),
    [
        (
            remove(),
            UNKNOWN,
            [
                "training.lerning_rate is unknown (did you mean learning_rate?)",
                "model.droput is unknown (did you mean dropout?)",
                "data.max_tokens = 0",
            ],
        ),
        (remove("recipe.toml"), (), ["recipe.toml: there is no such recipe"]),
        (remove("corpora/train.en", "corpora/valid.en", "corpora/valid.de"), (),
         ["corpora/train.en", "corpora/valid.en", "corpora/valid.de", "MT_DATA"]),
        (change_lines("corpora/train.de", lambda lines: lines[:-3]), (), ["train.en", "train.de", "400", "397"]),
        (change_lines("corpora/train.de", lambda lines: [*lines[:6], b"gr\xfcn\n", *lines[7:]]), (),
         ["corpora/train.de:7"]),
    ],
    ids=["unknown keys", "no recipe", "missing files", "misaligned files", "bad UTF-8"],
)  # fmt: skip
def test_mistakes_that_both_scripts_name(
    place: Place, script: Main, damage: Damage, arguments: Sequence[str], told: Sequence[str]
) -> None:
    damage(place.folder)
    said = place.here(script, *arguments, status=2)
    assert all(words in said for words in told), said
    assert not list(place.folder.glob("runs/*/recipe.toml")), "or the next attempt would need --resume"
    assert not list(place.folder.glob("runs/prepared/*")), "no half of it is left"


@pytest.mark.parametrize(
    ("damage", "arguments", "told"),
    [
        (keep, ("--run", "run"), "run already holds a run. Give --resume to continue that run, or another --run"),
        (keep, ("--run", "run", "--resume", "model.d_model=64", "seed=9", "training.max_updates=7"),
         "the recipe differs from run/recipe.toml in seed, model. Use the values of that file"),
        (keep, ("--run", "run", "--resume", "training.optimizer=muon"),
         "the recipe differs from run/recipe.toml in training.optimizer. Use the values of that file"),
        (remove("corpora/test.de"), ("--run", "run"), "corpora/test.de"),
        (change_lines("corpora/test.de", lambda lines: lines[:1]), ("--run", "run"), "corpora/test.de"),
        (remove(), ("--device", "abacus"), "accepted: auto, cpu, cuda"),
        (remove(), ("--run", "run", "training.lerning_rate=1e-3", "--resume", "seed=3"), "lerning_rate"),
    ],
)  # fmt: skip
def test_mistakes_that_train_names(place: Place, damage: Damage, arguments: Sequence[str], told: str) -> None:
    damage(place.folder)
    before = {path: path.read_bytes() for path in place.folder.glob("run/*")}
    assert told in place.here(train, *arguments, status=2)
    assert {path: path.read_bytes() for path in place.folder.glob("run/*")} == before


def test_a_run_that_another_process_trains(place: Place) -> None:
    with try_lock(place.folder / "run"):
        said = place.here(train, "--run", "run", "--resume", status=2)
    assert "another process trains in run. Give another --run" in said and not (place.folder / "run").exists()


def test_test_sentences_that_the_model_could_not_read_are_all_named(place: Place) -> None:
    long = b"willow " * 40 + b"\n"
    change_lines("corpora/test.en", lambda lines: [*lines[:3], long, lines[4], long, *lines[6:]])(place.folder)
    said = place.here(train, "--run", "run", "model.max_length=30", status=2)
    for words in ("test sentences longer than model.max_length, 30:", "test.en", ":4: ", ":6: "):
        assert words in said


def test_a_damaged_checkpoint_and_a_confidence_without_fit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataError("the model writes no word")

    monkeypatch.setattr("mt.cli.training.fit_confidence", fail)
    arguments = ("training.max_updates=2", "training.warmup_updates=1", "--run", "run")
    said = place.here(train, *arguments)
    assert "no confidence.json: the model writes no word" in said
    files = {file.name for file in (place.folder / "run" / "model").iterdir()}
    assert "model.safetensors" in files and "confidence.json" not in files

    weights = place.folder / "run" / "checkpoints" / "00000002" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    said = place.here(train, *arguments, "--resume", status=2)
    assert "run/checkpoints/00000002/model.safetensors: not a complete safetensors file" in said


def test_prepare_accepts_a_recipe_of_a_build_and_train_does_not(place: Place) -> None:
    recipe = place.folder / "recipe.toml"
    recipe.write_text(recipe.read_text() + "\n[build]\nseeds = 2\n")
    assert "training and" in place.here(prepare)
    assert "build is a section for `mt-service build`" in place.here(train, status=2)
