"""Build the best models that given corpora and a budget allow: teachers, students and a report.

    mt-service build scripts/recipes/build-phrasebook.toml --plan
    mt-service build scripts/recipes/build-phrasebook.toml
    mt-service build my.toml training.max_updates=5000 build.seeds=2 --run runs/two-seeds

The section [build] of the recipe selects the techniques: synthetic text from models of both directions, monolingual
text, several seeds and rounds, students. Every model is trained for `training.max_updates` updates. --plan prints the
stages.

The folder of the build holds a folder for each stage, the final models in `models/`, and the report `report.md`. The
same command resumes a build that was interrupted or killed, and runs only the stages whose inputs have changed. On a
CPU, the weights of a resumed build equal those of an uninterrupted build; for this, `machine.json` keeps the device and
the number of processes.

Stages that do not depend on each other run at the same time: one for each GPU, or --jobs stages on a CPU.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from mt.build.config import BuildConfig, read_build_recipe
from mt.build.execution import StageExecutor
from mt.build.plan import Machine, make_plan
from mt.build.report import write_report
from mt.build.runner import OnProgress, Runner, RunningStage, TrainingState
from mt.build.stage import Stage
from mt.cli.command import RUNS, CommandParser, command, count, recipe_path, stderr_console, tell
from mt.cli.train import MAX_PROCESSES
from mt.config import Recipe
from mt.engine.devices import available_cores, select_device, visible_gpus, why_no_gpu
from mt.errors import BuildError, RequestError
from mt.files import atomic_file, try_lock

BARS = "▁▂▃▄▅▆▇█"  # of the curve of BLEU
MAX_BARS = 20
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
            run(recipe, build, runner, resources(options), options, console)
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


@dataclass(frozen=True)
class Resources:
    """The device and processes of every stage, and the executor of the stages."""

    machine: Machine
    executor: StageExecutor


def resources(options: argparse.Namespace) -> Resources:
    """Return the device and the executor for the options --device, --processes and --jobs.

    Raises: RequestError if --jobs is not possible.
    """
    device = stage_device(options.device)
    if device == "cpu":
        jobs = options.jobs or 1
        processes = options.processes or max(1, min(available_cores() // jobs, MAX_PROCESSES))
        return Resources(Machine(device, processes), StageExecutor(slots=jobs))
    processes = options.processes or 1
    return Resources(Machine("cuda", processes), StageExecutor(gpu_slots(device, processes, options.jobs)))


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
    available: Resources,
    options: argparse.Namespace,
    console: Console,
) -> None:
    """Run the stages of a build that have not finished, and write the report. With --plan, only print the plan.

    Raises: MTError if the build is not possible or a stage fails.
    """
    path = runner.work / "machine.json"
    machine = Machine(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else available.machine
    stages = make_plan(recipe, build, machine)
    pending = runner.pending(stages)
    if options.plan:
        console.print(plan_table(stages, {stage.name for stage in pending}))
    if warning := short_training_warning(recipe):
        console.print(warning, style="yellow", highlight=False, soft_wrap=True)
    if options.plan:
        return
    with atomic_file(path) as file:
        file.write_text(json.dumps(asdict(machine)), encoding="utf-8")
    console.print(f"{len(stages) - len(pending)} of {len(stages)} stages are done", highlight=False)
    with progress_display(stages, console) as observer:
        runner.run(stages, observer, available.executor)
    for line in chosen_models(stages, runner):
        console.print(line, highlight=False, soft_wrap=True)
    report = write_report(recipe.name, stages, runner)
    tell(console, f"the models are in {runner.work / 'models'}, the report is {report}")


def chosen_models(stages: Sequence[Stage], runner: Runner) -> Iterator[str]:
    """Yield a line for each published teacher: its model, and the BLEU of all candidates on the validation set."""
    for stage in stages:
        if stage.kind == "choose" and len(stage.candidates) > 1 and (record := runner.record(stage.name)):
            scores = ", ".join(
                f"{candidate.model.split('/')[1]} {bleu:.2f}"
                for candidate in stage.candidates
                if (bleu := runner.bleu(candidate.scores)) is not None
            )
            chosen = record.metrics["model"].split("/")[1]
            yield f"{stage.output}: the model of the stage {chosen} (BLEU on the validation set: {scores})"


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
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"))
    numbers = {stage.name: number for number, stage in enumerate(stages, 1)}
    shown, last_line = "", time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0, status="")

        def observe(running: Sequence[RunningStage]) -> None:
            nonlocal shown, last_line
            trainings = [entry.training for entry in running]
            title = "; ".join(
                f"stage {numbers[entry.stage.name]} of {len(stages)}: {entry.stage.name}" for entry in running
            )
            share = sum(training.fraction for training in trainings) / len(trainings)
            status = f"{share:.0%}, " * bool(share) + f"{running[0].seconds / 60:.1f} min"
            status += "".join(map(describe, trainings))
            bar.update(task, description=title, completed=share, status=status)
            if not console.is_terminal and (title != shown or time.monotonic() - last_line > LINE_SECONDS):
                console.print(f"{title} | {status}", highlight=False)
                last_line = time.monotonic()
            shown = title

        yield observe


def describe(training: TrainingState) -> str:
    """Return the rate and the BLEU of a training, such as `, 4,900 target tokens/s, BLEU ▁▅█ 31.2`, or ""."""
    text = f", {training.tokens_per_second:,.0f} target tokens/s" if training.tokens_per_second else ""
    text = ", validating" if training.fraction == 1 else text
    if training.bleu:
        highest = max(*training.bleu, 1e-9)
        bars = (BARS[round(value / highest * (len(BARS) - 1))] for value in training.bleu[-MAX_BARS:])
        text += f", BLEU {''.join(bars)} {training.bleu[-1]:.1f}"
    return text
