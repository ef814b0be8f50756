"""Training speed compared with transformers, with the same model size, batches, optimiser and learning rates.

    python -m scripts.benchmark.train scripts/recipes/multi30k-en-de.toml model.size=small model.d_ff=1024 \\
        tokenizer.vocabulary_size=8000 training.batch_tokens=4096 training.update_tokens=4096 --output benchmarks/train

Each contender is a process that trains a few updates on request and otherwise waits. Our trainer runs with the settings
and the number of processes that `mt-service train` chooses on this machine. transformers is measured with several
settings, and compared with its fastest setting. --device cuda measures one GPU.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console

from mt.cli.command import command, count
from mt.config import Recipe
from mt.data.batching import Position, UpdateStream
from mt.data.dataset import load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.engine.devices import available_cores, select_device
from mt.errors import DataError
from mt.recipe import load_recipe, save_recipe
from mt.training.precision import choose_precision

from .measure import Ratio, alternate, conditions, noise, ratio, table, watching, write_results
from .processes import Contender, ContenderError, Launch
from .train_task import TrainResult, TrainSettings, TrainSetup, TrainTask

COLUMNS = (
    *("contender", "settings", "target tokens/s", "ours / this (rounds)", "per CPU second", "loss first", "loss last"),
    "peak MB a process",
)
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
"""Settings of the memory allocator that our trainer sets by itself; transformers also runs with them."""


@dataclass
class TrainRow:
    """A contender with one setting, and its results: of the warm-up, then of each round.

    With `keeps_memory`, its process gets the variables KEPT_MEMORY. If the contender failed, `problem` is the error.
    `ratio` is our speed divided by the speed of this row.
    """

    name: str
    settings: TrainSettings
    keeps_memory: bool = False
    problem: str = ""
    results: list[TrainResult] = field(default_factory=list)
    other_cores: list[float] = field(default_factory=list)
    ratio: Ratio | None = None

    @property
    def label(self) -> str:
        settings = self.settings
        attention = f", {settings.attention} attention" if self.name == "transformers" else ""
        place = f"{settings.processes}x{settings.threads}" if settings.device == "cpu" else settings.device
        return f"{settings.precision}, {place}{attention}{', malloc kept' if self.keeps_memory else ''}"

    @property
    def speeds(self) -> list[float]:
        """Target tokens per second of each round."""
        return [sum(result.tokens) / result.seconds for result in self.results[1:]]

    def start(self, task: TrainTask, log: Path) -> Contender:
        environment = {"OMP_NUM_THREADS": str(self.settings.threads)} | (KEPT_MEMORY if self.keeps_memory else {})
        setup = TrainSetup(task, self.settings)
        return Contender(
            self.name,
            Launch(f"scripts.benchmark.train_{self.name}", setup, environment=tuple(environment.items())),
            log,
        )

    def cells(self) -> list[str]:
        if self.problem:
            return [self.name, self.label, self.problem[:80]]
        per_cpu_second = median(sum(result.tokens) / result.cpu_seconds for result in self.results[1:])
        first, last = self.results[0], self.results[-1]
        return [
            *(self.name, self.label, f"{median(self.speeds):,.0f}", str(self.ratio or ""), f"{per_cpu_second:,.0f}"),
            *(f"{first.losses[0] / first.tokens[0]:.3f}", f"{last.losses[-1] / last.tokens[-1]:.3f}"),
            f"{max(result.peak_bytes for result in self.results) / 1e6:,.0f}",
        ]


@command
def main(argv: Sequence[str]) -> int:
    """Run the benchmark, and write the results. If a contender fails, the table has a row with the error.

    Raises: MTError if the recipe cannot be used.
    """
    options, console = parse(argv), Console(stderr=True)
    options.output.mkdir(parents=True, exist_ok=True)
    recipe = load_recipe(options.recipe, options.overrides)
    setup = {**conditions(), "options": vars(options)}
    with tempfile.TemporaryDirectory() as folder:
        task = prepare_task(recipe, options, Path(folder))
        rows = [row for row in list_rows(options.device) if is_wanted(row, options.only)]
        compare(rows, task, options, console)
    ran = [row for row in rows if not row.problem]
    if ours := [row for row in ran if row.name == "ours"]:
        best = max(ours, key=lambda row: median(row.speeds))
        for row in ran:
            row.ratio = ratio(best.speeds, row.speeds)
    other_cores = [cores for row in ran for cores in row.other_cores]
    warnings = noise(setup["load_average"][0], other_cores, {f"{row.name}, {row.label}": row.speeds for row in ran})
    shown = table("training", COLUMNS, [row.cells() for row in rows])
    values = {"conditions": setup, "warnings": warnings, "rows": [asdict(row) for row in rows]}
    write_results(options.output, [shown, *warnings], values)
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("recipe", type=Path, help="recipe whose data, tokenizer and model are used")
    add("overrides", nargs="*", metavar="key=value", help="such as model.size=base")
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the results")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="device of all contenders (default: cpu)")
    add("--rounds", type=count, default=5, help="measurements of each row (default: 5)")
    add("--updates", type=count, default=4, help="updates in each round (default: 4)")
    add("--warm", type=count, default=3, help="updates before the first round (default: 3)")
    add("--rate", type=float, default=1e-3, help="learning rate after the warm-up (default: 1e-3)")
    add("--only", action="append", metavar="TEXT", help="run only rows whose name or settings contain TEXT")
    return parser.parse_intermixed_args(argv)


def list_rows(device: str) -> list[TrainRow]:
    """Return all contenders, each with the settings to measure. On a GPU, each trains in one process.

    On a CPU, our trainer is measured with one process per core and, if there are several cores, with one process.
    """
    cores = available_cores()
    precision = choose_precision("auto", torch.device(select_device(device)), World())
    if device != "cpu":
        on_gpu = [TrainSettings(precision, threads=cores, attention=name, device=device) for name in ("eager", "sdpa")]
        return [TrainRow("ours", on_gpu[0]), *(TrainRow("transformers", settings) for settings in on_gpu)]
    rows = [TrainRow("ours", TrainSettings(precision, processes=cores, threads=1))]
    if cores > 1:
        rows.append(TrainRow("ours", TrainSettings(precision, processes=1, threads=cores)))
    for dtype, attention in sorted({(precision, "eager"), (precision, "sdpa"), ("float32", "sdpa")}):
        settings = TrainSettings(dtype, threads=cores, attention=attention)
        rows += [TrainRow("transformers", settings, keeps) for keeps in (False, True)]
    return rows


def is_wanted(row: TrainRow, only: Sequence[str] | None) -> bool:
    return not only or any(text in f"{row.name} {row.label}" for text in only)


def prepare_task(recipe: Recipe, options: argparse.Namespace, folder: Path) -> TrainTask:
    """Prepare the data of the recipe, and write all batches of the benchmark to `folder`. Return the training task.

    Raises: DataError if encoder and decoder have different numbers of layers.
    """
    model = recipe.model
    if model.encoder_layers != model.decoder_layers:
        raise DataError(
            f"the recipe's model has {model.encoder_layers} encoder layers and {model.decoder_layers} decoder layers; "
            "accepted: equal numbers"
        )
    prepared = prepare(recipe, options.output / "prepared")
    data = load_prepared(prepared)
    stream = UpdateStream(data.train, data.tokenizer, recipe, World()).updates(Position())
    arrays = {}
    for number, update in enumerate(islice(stream, options.warm + options.rounds * options.updates)):
        for place, batch in enumerate(update.batches):
            for side in ("source", "target", "labels"):
                arrays[f"{side}_{number}_{place}"] = getattr(batch, side).numpy()
    np.savez(folder / "batches.npz", **arrays)
    save_recipe(recipe, folder / "recipe.toml")
    return TrainTask(
        recipe=str(folder / "recipe.toml"),
        prepared=str(prepared.resolve()),
        batches=str(folder / "batches.npz"),
        vocabulary=len(data.tokenizer),
        d_model=model.d_model,
        d_ff=model.d_ff,
        heads=model.heads,
        layers=model.encoder_layers,
        dropout=model.dropout,
        smoothing=recipe.training.label_smoothing,
        rate=options.rate,
        warmup=options.warm + options.rounds * options.updates // 2,
        clip=recipe.training.clip_norm,
    )


def compare(rows: Sequence[TrainRow], task: TrainTask, options: argparse.Namespace, console: Console) -> None:
    """Start all contenders, and measure them in turn. The results are added to the rows."""
    running: list[tuple[TrainRow, Contender]] = []
    with ExitStack() as stack:
        for row in rows:
            try:
                contender = stack.enter_context(row.start(task, options.output / f"{row.name}.log"))
                row.results.append(TrainResult(**contender.ask(options.warm)))
            except ContenderError as error:
                row.problem = str(error)
                console.print(f"{row.label}: {row.problem}", markup=False, highlight=False)
            else:
                running.append((row, contender))

        def measure(entry: tuple[TrainRow, Contender]) -> tuple[TrainResult, float | None]:
            results: list[TrainResult] = []
            with watching(lambda: results[0].cpu_seconds) as other_load:
                results.append(TrainResult(**entry[1].ask(options.updates)))
            return results[0], other_load.cores

        for (row, _), (result, cores) in alternate(running, options.rounds, measure):
            row.results.append(result)
            row.other_cores += [] if cores is None else [cores]
            console.print(f"  {row.name}, {row.label}: {row.speeds[-1]:,.0f}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
