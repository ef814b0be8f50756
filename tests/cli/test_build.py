import io
import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mt.build.config import read_build_recipe
from mt.build.execution import StageExecutor
from mt.build.plan import Machine
from mt.build.runner import Runner, RunningStage
from mt.build.stage import Stage
from mt.cli.build import gpu_slots, progress_display, resources, run
from mt.errors import RequestError


@pytest.mark.parametrize(
    ("visible", "device", "processes", "jobs", "slots"),
    [
        ("0,1,2,3", "cuda", 1, None, ["0", "1", "2", "3"]),
        ("0,1,2,3", "cuda", 1, 2, ["0", "1"]),
        ("0,1,2,3", "cuda", 2, None, ["0,1", "2,3"]),
        ("0,1,2", "cuda", 2, None, ["0,1"]),
        ("4,6", "cuda:1", 1, None, ["6"]),
        ("0,1", "cuda", 4, None, "1 jobs of 4 processes need 4 GPUs; accepted: --jobs and --processes"),
        ("0,1", "cuda", 1, 3, "3 jobs of 1 processes need 3 GPUs"),
        ("0,1", "cuda:0", 1, 2, "need at most 1"),
    ],
)
def test_gpus_of_each_job(
    monkeypatch: pytest.MonkeyPatch, visible: str, device: str, processes: int, jobs: int | None, slots: list[str] | str
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
    machine, executor = resources(Namespace(device="cpu", jobs=jobs, processes=processes))
    assert (executor.slots, machine.processes) == expected


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ([{"update": 50, "train_speed": 4900.4}, {"update": 50, "valid_bleu": 31.2}], "25%, 1.0 min, 4,900 target to"),
        ([{"update": 50, "train_speed": 900}, {"update": 50, "valid_bleu": 20}], "tokens/s, BLEU 20.0"),
        ([{"update": 100, "train_speed": 900}, {"valid_bleu": 20}], "50%, 1.0 min, validating, BLEU 20.0"),
        ([], "| 1.0 min\n"),
    ],
)
def test_progress_of_parallel_stages(tmp_path: Path, metrics: list[dict[str, float]], words: str) -> None:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in metrics))
    recipe = {"training": {"max_updates": 100}}
    stages = [Stage(name, "train", (), "", recipe=recipe) for name in "abc"]
    process: Any = None
    running = [RunningStage(stages[n], process, 60.0, folder) for n, folder in enumerate((tmp_path, tmp_path / "b"))]
    output = io.StringIO()
    with progress_display(stages, Console(file=output, width=200)) as observe:
        observe(running)
        observe(running)  # the same stages, and less than a minute later: no second line
    assert output.getvalue().startswith("stage 1 of 3: a; stage 2 of 3: b | ") and words in output.getvalue()
    assert output.getvalue().count("\n") == 1


def test_a_plan_runs_nothing_and_a_build_keeps_its_machine(tmp_path: Path) -> None:
    recipe, build = read_build_recipe(Path("scripts/recipes/build-phrasebook.toml"), [])
    planned: list[int | None] = []
    output = io.StringIO()

    def run_with(processes: int, plan: bool) -> None:
        class Interrupted(Runner):
            def pending(self, stages: Sequence[Stage]) -> list[Stage]:
                training = next(stage.argv for stage in stages if stage.kind == "train")
                planned.append(int(training[training.index("--processes") + 1]))
                return list(stages)

            def run(self, *_: object) -> list[str]:
                raise KeyboardInterrupt

        available = Machine("cpu", processes), StageExecutor()
        run(recipe, build, Interrupted(tmp_path, tmp_path), available, plan, Console(file=output))

    run_with(3, plan=True)
    assert list(tmp_path.iterdir()) == []
    assert "are 480,000 target tokens; models that are trained on fewer than 5,000,000 are" in output.getvalue()
    for processes in (2, 4):
        with pytest.raises(KeyboardInterrupt):
            run_with(processes, plan=False)
    assert planned == [3, 2, 2]
