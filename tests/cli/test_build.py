"""Options of `build` for devices, and the display of progress."""

import io
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from mt.build.config import read_build_recipe
from mt.build.plan import Machine
from mt.build.runner import TrainingState
from mt.build.stage import Stage
from mt.cli.build import describe, gpu_slots, measure, progress_display, remaining, resources
from mt.errors import RequestError


@pytest.mark.parametrize(
    ("visible", "device", "processes", "jobs", "slots"),
    [
        ("0,1,2,3", "cuda", 1, None, ["0", "1", "2", "3"]),
        ("0,1,2,3", "cuda", 1, 2, ["0", "1"]),
        ("0,1,2,3", "cuda", 2, None, ["0,1", "2,3"]),
        ("0,1,2", "cuda", 2, None, ["0,1"]),
        ("4,6", "cuda:1", 1, None, ["6"]),
        (
            "0,1",
            "cuda",
            4,
            None,
            "1 jobs of 4 processes need 4 GPUs; accepted: --jobs and --processes",
        ),
        ("0,1", "cuda", 1, 3, "3 jobs of 1 processes need 3 GPUs"),
        ("0,1", "cuda:0", 1, 2, "need at most 1"),
    ],
)
def test_gpus_of_each_job(
    monkeypatch: pytest.MonkeyPatch,
    visible: str,
    device: str,
    processes: int,
    jobs: int | None,
    slots: list[str] | str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if isinstance(slots, list):
        assert gpu_slots(device, processes, jobs) == slots
    else:
        with pytest.raises(RequestError, match=slots):
            gpu_slots(device, processes, jobs)


@pytest.mark.parametrize(
    ("cores", "jobs", "processes", "expected"),
    [(2, None, None, (1, 2)), (8, None, None, (1, 4)), (8, 4, None, (4, 2)), (2, 4, None, (4, 1)), (8, 2, 3, (2, 3))],
)
def test_cores_are_divided_among_the_jobs(
    monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int | None, processes: int | None, expected: tuple[int, int]
) -> None:
    monkeypatch.setattr("mt.cli.build.available_cores", lambda: cores)
    available = resources(Namespace(device="cpu", jobs=jobs, processes=processes))
    assert (available.executor.slots, available.machine.processes) == expected


class OneMinute:
    """A stage that has run for a minute."""

    def __init__(self, name: str, training: TrainingState) -> None:
        self.stage = Stage(name, "train", (), "")
        self.seconds, self.training = 60.0, training


def test_time_left_of_stages_that_run_at_the_same_time() -> None:
    half, unknown = TrainingState(0.5, 4900.4, (0.0, 21.8, 31.2)), TrainingState()
    running: Any = [OneMinute("a", half), OneMinute("b", unknown)]
    seconds = {"a": 999.0, "b": 180.0, "c": 240.0}
    assert [remaining(entry, entry.training, seconds) for entry in running] == [60, 120]
    output = io.StringIO()
    stages = [Stage(name, "train", (), "") for name in "abc"]
    with progress_display(stages, seconds, 2, Console(file=output, width=200)) as observe:
        observe(running, stages[2:])
        observe(running, stages[2:])  # the same stages, and less than a minute later: no second line
    assert (
        output.getvalue()
        == "stage 1 of 3: a; stage 2 of 3: b | 25%, 1.0 min, 4.0 min left, 4,900 target tokens/s, BLEU ▁▆█ 31.2\n"
    )


def test_time_left_grows_if_stages_take_longer_than_estimated() -> None:
    """Stage a needs 120 instead of 30 seconds, so 960 instead of 240 are expected for stage c."""
    running: Any = [OneMinute("a", TrainingState(0.5))]
    output = io.StringIO()
    stages = [Stage(name, "train", (), "") for name in "ac"]
    with progress_display(stages, {"a": 30.0, "c": 240.0}, 1, Console(file=output, width=200)) as observe:
        observe(running, stages[1:])
    assert output.getvalue() == "stage 1 of 2: a | 50%, 1.0 min, 17.0 min left\n"


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (TrainingState(0.5, 900, (20.0,)), ", 900 target tokens/s, BLEU █ 20.0"),
        (TrainingState(1.0, 900, (20.0,)), ", validating, BLEU █ 20.0"),
        (TrainingState(), ""),
    ],
)
def test_description_of_a_training(training: TrainingState, words: str) -> None:
    assert describe(training) == words


def test_stages_that_run_for_the_estimates_are_announced(tmp_path: Path) -> None:
    def stop(stages: Sequence[Stage], *_: object) -> None:
        raise KeyboardInterrupt(*(stage.name for stage in stages))

    recipe, build = read_build_recipe(Path("scripts/recipes/build-phrasebook.toml"), [])
    runner: Any = SimpleNamespace(work=tmp_path, run=stop)
    available: Any = SimpleNamespace(machine=Machine("cpu", 2), executor=None)
    output = io.StringIO()
    with pytest.raises(KeyboardInterrupt) as stopped:
        measure(recipe, build, runner, available, Console(file=output))
    assert stopped.value.args == ("text", "measure")
    assert output.getvalue().startswith("two stages run first, on which the estimates depend: text prepares")
