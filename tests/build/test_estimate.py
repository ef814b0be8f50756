"""Estimates of time, and the updates that fit into a budget."""

from pathlib import Path

import pytest

from mt.build.estimate import (
    START_SECONDS,
    VALIDATION,
    Measurement,
    estimate,
    measured_rate,
    read_measurement,
    short_training_warning,
    updates_in,
)
from mt.build.stage import Stage, Workload
from mt.errors import BuildError

MEASURED = Measurement(
    settings="abc",
    device="cpu",
    processes=2,
    updates=500,
    tokens_per_second=1000,
    preparation_seconds=90,
    training_seconds=20,
    tokens={"en-de": 3000, "mono.de": 2000, "test": 1000},
)


def test_estimates_of_each_kind_of_stage() -> None:
    training = Stage("a", "train", (), "", workload=Workload(updates=50))
    assert estimate(training, MEASURED, update_tokens=2000) == pytest.approx(20 + VALIDATION * 50 * 2000 / 1000)
    translation = Stage("b", "translate", (), "", workload=Workload(texts=("en-de", "mono.de")))
    assert estimate(translation, MEASURED, 2000) == pytest.approx(START_SECONDS + 5000 / 1000)
    ensemble = Stage("b", "translate", (), "", workload=Workload(texts=("mono.de",), models=2))
    assert estimate(ensemble, MEASURED, 2000) == pytest.approx(START_SECONDS + 2 * 7.5 * 2000 / 1000)
    assert estimate(Stage("c", "choose", (), ""), MEASURED, 2000) == 0
    assert estimate(Stage("text", "prepare", (), ""), MEASURED, 2000) == 90


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [((900.0, 1000.0, 1100.0), 1000.0), ((), 20 * 1600 / 40), (None, 20 * 1600 / 40)],
    ids=["median", "no speed", "no metrics"],
)
def test_measured_rate(tmp_path: Path, speeds: tuple[float, ...] | None, expected: float) -> None:
    checkpoint = tmp_path / "checkpoints" / "20"
    checkpoint.mkdir(parents=True)
    (checkpoint / "state.json").write_text('{"updates": 20, "seconds": 40}')
    if speeds is not None:
        records = [f'{{"update": 1, "train_speed": {speed}}}\n' for speed in speeds]
        (tmp_path / "metrics.jsonl").write_text('{"update": 0}\n' + "".join(records))
    assert measured_rate(tmp_path, 1600) == (expected, 40)


def test_a_budget_becomes_updates() -> None:
    assert updates_in(10, lambda updates: 100 + 0.5 * updates) == 1000
    with pytest.raises(BuildError, match=r"build.minutes is 2; accepted: at least 2\.5"):
        updates_in(2, lambda updates: 100 + 0.5 * updates)


@pytest.mark.parametrize(
    ("updates", "words"),
    [
        (400, "leaves 0.8 million target tokens for the training of each model"),
        (2499, "at least 42 minutes, or fewer seeds"),
        (2500, ""),
    ],
)
def test_a_budget_that_is_too_short_for_useful_models(updates: int, words: str) -> None:
    measured = MEASURED.model_copy(update={"updates": updates})
    warning = short_training_warning(measured, update_tokens=2000, seconds_of=lambda number: 20 + number)
    assert words in warning
    assert bool(warning) == bool(words)


def test_a_plan_is_kept_until_the_settings_change(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert read_measurement(path, "abc") is None
    path.write_text(MEASURED.model_dump_json())
    assert read_measurement(path, "abc") == MEASURED
    assert read_measurement(path, "xyz") is None
    path.write_text("{")
    assert read_measurement(path, "abc") is None
