"""Build the best models that given corpora and a budget allow: teachers, students and a report.

    mt-service build scripts/recipes/build-phrasebook.toml --plan
    mt-service build scripts/recipes/build-phrasebook.toml
    mt-service build my.toml training.max_updates=5000 build.seeds=2 --run runs/two-seeds

The section [build] of the recipe selects the techniques: synthetic text from models of both directions, monolingual
text, several seeds and rounds, students. Every model is trained for `training.max_updates` updates. --plan lists all.

The folder of the build holds a folder for each stage, the final models in `models/`, and the report `report.md`. The
same command resumes a build that was interrupted or killed, and runs only the stages whose inputs have changed. On a
CPU, the weights of a resumed build equal those of an uninterrupted build: `machine.json` keeps the number of processes.

Stages that do not depend on each other run at the same time: one for each GPU, or --jobs stages on a CPU.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mt.build.config import BuildConfig, read_build_recipe
from mt.build.execution import StageExecutor
from mt.build.plan import Machine, make_plan
from mt.build.report import write_report
from mt.build.runner import OnProgress, Runner, RunningStage
from mt.build.stage import Stage
from mt.cli.command import RUNS, CommandParser, command, count, recipe_path, stderr_console, tell
from mt.cli.train import MAX_PROCESSES
from mt.config import Recipe
from mt.engine.devices import available_cores, select_device, visible_gpus, why_no_gpu
from mt.errors import BuildError, RequestError
from mt.files import atomic_file, try_lock

USEFUL_TOKENS = 5_000_000  # target tokens; a model that is trained on fewer is rarely useful
LINE_SECONDS = 60  # interval of progress lines if the output is not a terminal


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    recipe, build = read_build_recipe(options.recipe, options.overrides)
    work = options.run or RUNS / recipe.name
    work.mkdir(parents=True, exist_ok=True)
    with try_lock(work) as locked:
        if not locked:
            raise BuildError(f"another process builds in {work}; wait until it has ended, or give another --run")
        try:
            runner = Runner(work, recipe.data.root, original=recipe.tuning.model if recipe.tuning else None)
            run(recipe, build, runner, resources(options), options.plan, console)
        except KeyboardInterrupt:
            console.print("stopped; the same command continues the build", style="yellow")
            return 130
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("build", __doc__)
    parser.add_argument("recipe", type=recipe_path, help="recipe with a section [build]")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as build.seeds=2")
    add = parser.common.add_argument
    add("--run", type=Path, metavar="DIR", help=f"folder of the build (default: {RUNS}/NAME, the name in the recipe)")
    add("--plan", action="store_true", help="only print the stages")
    parser.add_device()
    parser.more.add_argument(
        "--processes",
        type=count,
        metavar="N",
        help=f"processes of a training: cores (default: one per core, at most {MAX_PROCESSES}) or GPUs (default: 1)",
    )
    parser.more.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="stages that run at the same time (default: as many as the GPUs allow; 1 on a CPU)",
    )
    return parser.parse_intermixed_args(argv)


def resources(options: argparse.Namespace) -> tuple[Machine, StageExecutor]:
    """Return the device and processes of every stage, and their executor, for --device, --processes and --jobs.

    Raises: RequestError if --jobs is not possible.
    """
    device = stage_device(options.device)
    if device == "cpu":
        jobs = options.jobs or 1
        processes = options.processes or max(1, min(available_cores() // jobs, MAX_PROCESSES))
        return Machine(device, processes), StageExecutor(slots=jobs)
    processes = options.processes or 1
    return Machine("cuda", processes), StageExecutor(gpu_slots(device, processes, options.jobs))


def stage_device(name: str) -> str:
    """Return the device of the stages for `name`: `cpu`, `cuda` or `cuda:N`.

    The stages are processes that open the GPU themselves. This process opens no context on it, because a context takes
    half a gigabyte, and in the exclusive mode of a GPU no other process could use it.

    Raises: ModelError if there is no GPU, but `name` is one.
    """
    if name == "cpu":
        return name
    if why_no_gpu():
        return select_device(name)  # the CPU, or the reason as an error
    return "cuda" if name == "auto" else name


def gpu_slots(device: str, processes: int, jobs: int | None) -> list[str]:
    """Return the GPUs of each slot, such as ["0,1", "2,3"]. `device` is `cuda` or `cuda:N`.

    Raises: RequestError if there are too few GPUs.
    """
    gpus = visible_gpus()
    if device != "cuda":
        gpus = [gpus[int(device.removeprefix("cuda:"))]]
    slots = [",".join(gpus[first : first + processes]) for first in range(0, len(gpus) - processes + 1, processes)]
    if len(slots) < (jobs or 1):
        raise RequestError(
            f"{jobs or 1} jobs of {processes} processes need {(jobs or 1) * processes} GPUs; accepted: --jobs and "
            f"--processes that need at most {len(gpus)}, the GPUs that can be used"
        )
    return slots[:jobs]


def run(
    recipe: Recipe,
    build: BuildConfig,
    runner: Runner,
    available: tuple[Machine, StageExecutor],
    only_plan: bool,
    console: Console,
) -> None:
    """Run the stages of a build that have not finished, and write the report. With `only_plan`, print the plan.

    Raises: MTError if the build is not possible or a stage fails.
    """
    path = runner.work / "machine.json"
    machine, executor = available
    if path.exists():
        machine = Machine(**json.loads(path.read_text(encoding="utf-8")))
    stages = make_plan(recipe, build, machine)
    pending = runner.pending(stages)
    if only_plan:
        console.print(plan_table(stages, {stage.name for stage in pending}))
    if warning := short_training_warning(recipe):
        console.print(warning, style="yellow", highlight=False, soft_wrap=True)
    if only_plan:
        return
    with atomic_file(path) as file:
        file.write_text(json.dumps(asdict(machine)), encoding="utf-8")
    console.print(f"{len(stages) - len(pending)} of {len(stages)} stages are done", highlight=False)
    with progress_display(stages, console) as observer:
        runner.run(stages, observer, executor)
    report = write_report(recipe.name, stages, runner)
    tell(console, f"the models are in {runner.work / 'models'}, the report is {report}")


def short_training_warning(recipe: Recipe) -> str:
    """Return a warning if every model is trained on too few tokens to translate well, otherwise ""."""
    tokens = recipe.training.max_updates * recipe.training.update_tokens
    if tokens >= USEFUL_TOKENS or recipe.tuning:
        return ""
    return (
        f"warning: training.max_updates x training.update_tokens are {tokens:,} target tokens; models that are trained "
        f"on fewer than {USEFUL_TOKENS:,} are rarely useful"
    )


def plan_table(stages: Sequence[Stage], pending: set[str]) -> Table:
    """Return a table of all stages. `pending` has the names of the stages that have not finished."""
    table = Table("stage", "verb", "state", title=f"{len(stages)} stages", title_justify="left")
    for stage in stages:
        table.add_row(stage.name, stage.kind, "pending" if stage.name in pending else "done")
    return table


@contextmanager
def progress_display(stages: Sequence[Stage], console: Console) -> Iterator[OnProgress]:
    """Show the progress of the running stages of all `stages`. Yield the callback for the runner."""
    numbers = {stage.name: number for number, stage in enumerate(stages, 1)}
    shown, last_line = "", time.monotonic()
    with console.status("") as display:

        def observe(running: Sequence[RunningStage]) -> None:
            nonlocal shown, last_line
            trainings = list(map(training_state, running))
            names = [entry.stage.name for entry in running]
            title = "; ".join(f"stage {numbers[name]} of {len(stages)}: {name}" for name in names)
            share = sum(fraction for fraction, _ in trainings) / len(trainings)
            status = f"{share:.0%}, " * bool(share) + f"{running[0].seconds / 60:.1f} min"
            status += "".join(text for _, text in trainings)
            display.update(f"{title} | {status}")
            if not console.is_terminal and (title != shown or time.monotonic() - last_line > LINE_SECONDS):
                console.print(f"{title} | {status}", highlight=False)
                last_line = time.monotonic()
            shown = title

        yield observe


def training_state(running: RunningStage) -> tuple[float, str]:
    """Return the fraction of a training that is done, and a text such as `, 4,900 target tokens/s, BLEU 31.2`.

    For another stage, and until the first metrics of a training are written, return (0, "").
    """
    stage = running.stage
    if stage.kind != "train" or stage.recipe is None:
        return 0.0, ""
    try:
        lines = (running.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        metrics: dict[str, float] = {}  # the last value of each
        for line in lines:
            metrics |= json.loads(line)
        fraction = metrics["update"] / float(stage.recipe["training"]["max_updates"])
    except (OSError, ValueError, KeyError):
        return 0.0, ""
    rate = f", {metrics['train_speed']:,.0f} target tokens/s" if "train_speed" in metrics else ""
    bleu = f", BLEU {metrics['valid_bleu']:.1f}" if "valid_bleu" in metrics else ""
    return fraction, (", validating" if fraction == 1 else rate) + bleu
