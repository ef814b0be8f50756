"""Training speed compared with transformers, with the same model size, batches, optimiser and learning rates.

    mt-service benchmark train scripts/recipes/multi30k-en-de.toml model.size=small model.d_ff=1024 \\
        tokenizer.vocabulary_size=8000 training.batch_tokens=4096 training.update_tokens=4096 --output benchmarks/train

Each contender is a process that trains a few updates on request and otherwise waits. Our trainer runs with the settings
and the number of processes that `mt-service train` chooses on this machine. Other libraries are measured with several
settings, and compared with their fastest setting. --device cuda measures one GPU. Another library may run with another
Python interpreter: --python transformers=/elsewhere/bin/python.
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
from typing import Any

import numpy as np
import torch
from rich.console import Console

from mt.cli.command import CommandParser
from mt.config import Recipe
from mt.data.batching import Position, UpdateStream
from mt.data.dataset import load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.engine.devices import available_cores, select_device
from mt.errors import DataError, MTError
from mt.recipe import load_recipe, save_recipe
from mt.training.precision import choose_precision

from .contender import ContenderProcess
from .measure import Ratio, alternate, noise, ratio, spread, watching
from .report import conditions, show, table, write_json
from .train_contender import TrainResult, TrainSettings, TrainTask

COLUMNS = (
    *("contender", "settings", "target tokens/s", "ours / this (rounds)", "per CPU second", "loss first", "loss last"),
    "peak MB a process",
)
# Settings of the memory allocator that our trainer sets by itself; other libraries get them as environment variables.
DEVICES = ("cpu", "cuda")
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}


@dataclass(frozen=True)
class TrainEntry:
    """A contender with one setting. If `keeps_freed_memory` is true, its process gets the variables KEPT_MEMORY."""

    name: str
    module: str
    settings: TrainSettings
    keeps_freed_memory: bool = False

    @property
    def label(self) -> str:
        settings = self.settings
        attention = f", {settings.attention} attention" if self.name == "transformers" else ""
        place = f"{settings.processes}x{settings.threads}" if settings.device == "cpu" else settings.device
        return f"{settings.precision}, {place}{attention}{', malloc kept' if self.keeps_freed_memory else ''}"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "module": self.module, "way": asdict(self.settings), "kept": self.keeps_freed_memory}


@dataclass
class TrainRow:
    """Results of one contender with one setting.

    `results` has the results of the warm-up and of each round. If the contender failed, `problem` is the error.
    """

    entry: TrainEntry
    problem: str = ""
    results: list[TrainResult] = field(default_factory=list)
    other_cores: list[float] = field(default_factory=list)
    ratio: Ratio | None = None  # our speed / the speed of this entry

    @property
    def speeds(self) -> list[float]:
        return [sum(result.tokens) / result.seconds for result in self.results]

    @property
    def curve(self) -> list[float]:
        """Loss of each update, in nats per target token."""
        pairs = (
            (loss, tokens) for result in self.results for loss, tokens in zip(result.losses, result.tokens, strict=True)
        )
        return [loss / tokens for loss, tokens in pairs]


class TrainContender(ContenderProcess):
    """A running process of a contender, which trains a number of updates on request."""

    def __init__(self, entry: TrainEntry, task: TrainTask, python: str, log: Path) -> None:
        """Start the process with the interpreter `python`, and wait until the model is built."""
        environment = {"OMP_NUM_THREADS": str(entry.settings.threads)}
        super().__init__(
            entry.name,
            [python, "-c", f"from mt.cli.benchmarks.{entry.module} import main; main()"],
            environment | (KEPT_MEMORY if entry.keeps_freed_memory else {}),
            log,
            setup={"task": asdict(task), "settings": asdict(entry.settings)},
        )

    def learn(self, updates: int) -> TrainResult:
        answer = self.ask(updates)
        return TrainResult(**{**answer, "losses": tuple(answer["losses"]), "tokens": tuple(answer["tokens"])})


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("recipe", type=Path, help="recipe whose data, tokenizer and model are used")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as model.size=base")
    more = parser.more.add_argument
    more("--device", choices=DEVICES, default="cpu", help="device of all contenders (default: cpu)")
    more("--updates", type=int, default=4, help="updates in each round (%(default)s)")
    more("--warm", type=int, default=3, help="updates before the first round (%(default)s)")
    more("--rate", type=float, default=1e-3, help="learning rate after the warm-up (%(default)s)")
    more("--python", action="append", default=[], metavar="PEER=PYTHON", help="Python interpreter of a peer")
    more("--only", action="append", metavar="TEXT", help="run only entries whose name or settings contain TEXT")


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, and write the results. If a contender fails, the table has a row with the error.

    Raises: MTError if the recipe cannot be used.
    """
    console = Console(stderr=True)
    options.output.mkdir(parents=True, exist_ok=True)
    recipe = load_recipe(options.recipe, options.overrides)
    pythons = dict(pair.split("=", 1) for pair in options.python if "=" in pair)
    about = {**conditions(), "options": {key: str(value) for key, value in vars(options).items()}}
    with tempfile.TemporaryDirectory() as folder:
        task = _prepare_task(recipe, options, Path(folder))
        rows = [TrainRow(entry) for entry in list_entries(options.device) if _wanted(entry, options.only)]
        _compare(rows, task, pythons, options, console)
    _write(options.output, rows, about)


def list_entries(device: str) -> list[TrainEntry]:
    """Return all contenders, each with the settings to measure. On a GPU, each trains in one process.

    On a CPU, our trainer is measured with one process per core and, if there are several cores, with one process.
    """
    count = available_cores()
    precision = choose_precision("auto", torch.device(select_device(device)), World())
    if device != "cpu":
        on_gpu = [TrainSettings(precision, threads=count, attention=name, device=device) for name in ("eager", "sdpa")]
        peers = [TrainEntry("transformers", "train_transformers", settings) for settings in on_gpu]
        return [TrainEntry("ours", "train_ours", on_gpu[0]), *peers]
    entries = [TrainEntry("ours", "train_ours", TrainSettings(precision, processes=count, threads=1))]
    if count > 1:
        entries.append(TrainEntry("ours", "train_ours", TrainSettings(precision, processes=1, threads=count)))
    combinations = {(precision, "eager"), (precision, "sdpa"), ("float32", "sdpa")}
    for dtype, attention in sorted(combinations):
        settings = TrainSettings(dtype, threads=count, attention=attention)
        entries += [TrainEntry("transformers", "train_transformers", settings, keeps) for keeps in (False, True)]
    return entries


def _wanted(entry: TrainEntry, only: Sequence[str] | None) -> bool:
    return not only or any(text in f"{entry.name} {entry.label}" for text in only)


def _prepare_task(recipe: Recipe, options: argparse.Namespace, folder: Path) -> TrainTask:
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
        prepared=str(prepared),
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


def _compare(
    rows: Sequence[TrainRow], task: TrainTask, pythons: dict[str, str], options: argparse.Namespace, console: Console
) -> None:
    with ExitStack() as stack:
        running: list[tuple[TrainRow, TrainContender]] = []
        for row in rows:
            entry = row.entry
            log = options.output / f"{entry.name}.log"
            try:
                contender = stack.enter_context(
                    TrainContender(entry, task, pythons.get(entry.name, sys.executable), log)
                )
                row.results.append(contender.learn(options.warm))
            except MTError as error:
                row.problem = str(error).splitlines()[0]
                console.print(f"{entry.label}: {row.problem}", markup=False, highlight=False)
            else:
                running.append((row, contender))

        def measure(pair: tuple[TrainRow, TrainContender]) -> tuple[TrainResult, float | None]:
            used: list[float] = [0.0]
            with watching(lambda: used[0]) as other_load:
                result = pair[1].learn(options.updates)
                used[0] = result.cpu_seconds
            return result, other_load.cores

        for number, place, (result, others) in alternate(running, options.rounds, measure):
            row = running[place][0]
            row.results.append(result)
            if others is not None:
                row.other_cores.append(others)
            speed = sum(result.tokens) / result.seconds
            console.print(f"round {number + 1}: {row.entry.name}, {row.entry.label}: {speed:,.0f}", highlight=False)


def _write(output: Path, rows: Sequence[TrainRow], about: dict[str, Any]) -> None:
    """Write the table and the JSON file. The warm-up before the first round counts only for the losses."""
    ran = [row for row in rows if not row.problem]
    ours = [row for row in ran if row.entry.name == "ours"]
    if ours:
        best = max(ours, key=lambda row: median(row.speeds[1:]))
        for row in ran:
            row.ratio = ratio(best.speeds[1:], row.speeds[1:])
    shown = table("Training", COLUMNS, [cells(row) for row in rows])
    spreads = {f"{row.entry.name}, {row.entry.label}": spread(row.speeds[1:]) for row in ran}
    other_cores = [value for row in ran for value in row.other_cores]
    warnings = noise(about["load_average"][0], other_cores, spreads)
    show([shown, *warnings], output / "table.txt")
    results = [
        {"entry": row.entry.to_json(), "problem": row.problem, "speeds": row.speeds, "losses": row.curve}
        | {"ratio": asdict(row.ratio) if row.ratio else None, "lessons": [asdict(result) for result in row.results]}
        for row in rows
    ]
    write_json(output / "results.json", {"about": about, "warnings": warnings, "rows": results})


def cells(row: TrainRow) -> list[str]:
    entry = row.entry
    if row.problem:
        return [entry.name, entry.label, row.problem[:80]]
    measured = row.results[1:]
    seconds = median(sum(result.tokens) / result.cpu_seconds for result in measured)
    ours = f"{row.ratio.value:.2f} ({row.ratio.low:.2f}-{row.ratio.high:.2f})" if row.ratio else ""
    return [
        entry.name,
        entry.label,
        f"{median(row.speeds[1:]):,.0f}",
        ours,
        f"{seconds:,.0f}",
        f"{row.curve[0]:.3f}",
        f"{row.curve[-1]:.3f}",
        f"{max(result.peak_bytes for result in row.results) / 1e6:,.0f}",
    ]
