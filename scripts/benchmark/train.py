"""Training speed compared with transformers, with the same model size, batches, optimiser and learning rates.

    python -m scripts.benchmark.train scripts/recipes/multi30k-en-de.toml model.size=small model.d_ff=1024 \\
        tokenizer.vocabulary_size=8000 training.batch_tokens=4096 training.update_tokens=4096 --output benchmarks/train

In each round, all contenders train the same updates, one after another, each in a process of its own; the first
updates are not measured. Ours is `mt-service train` with the settings that it chooses on this machine. transformers is
measured with several settings. --device cuda measures one GPU.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
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
from mt.training.trainer import RECORD_EVERY

from .measure import Ratio, conditions, noise, ratio, table, write_results
from .processes import ROOT

COLUMNS = ("contender", "target tokens/s", "ours / this (rounds)", "loss")
UPDATES = 2 * RECORD_EVERY  # of a round, of which the first half is not measured
RATE = 1e-3  # learning rate of the last update; it rises linearly
OURS = (
    *(f"training.learning_rate={RATE}", f"training.warmup_updates={UPDATES}", "training.cooldown_updates=0"),
    *("training.schedule=inverse_sqrt", "training.optimizer=adam", f"training.max_updates={100 * UPDATES}"),
)
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
"""Settings of the memory allocator that our trainer sets by itself; transformers also runs with them."""


@dataclass
class TrainRow:
    """A contender: its command, and the target tokens per second and the loss per token of each round.

    If it failed, `problem` is the last line of its output. `ratio` is our speed divided by the speed of this row.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    speeds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    problem: str = ""
    ratio: Ratio | None = None

    def cells(self) -> list[str]:
        if self.problem:
            return [self.name, self.problem[:80]]
        return [self.name, f"{median(self.speeds):,.0f}", str(self.ratio or ""), f"{self.losses[-1]:.3f}"]

    def measure(self, metrics: Path) -> None:
        """Run the command until `metrics` has records of all updates, and add the last one to the results.

        The folder of `metrics` is emptied at the beginning.
        """
        shutil.rmtree(metrics.parent, ignore_errors=True)
        metrics.parent.mkdir()
        with metrics.parent.with_name("log.txt").open("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
            )
            while (records := _records(metrics)) is None and process.poll() is None:
                time.sleep(0.1)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if records is None:
                log.seek(0)
                self.problem = next(reversed(log.read().splitlines()), "no output")
                return
        self.speeds.append(records[-1]["train_speed"])
        self.losses.append(records[-1]["train_loss"])


def _records(metrics: Path) -> list[dict[str, float]] | None:
    """Return the records in the file `metrics`, or None while some are missing."""
    lines = metrics.read_text(encoding="utf-8").split("\n")[:-1] if metrics.exists() else []
    records = [json.loads(line) for line in lines]
    return records if records and records[-1]["update"] >= UPDATES else None


@command
def main(argv: Sequence[str]) -> int:
    """Run the benchmark, and write the results. If a contender fails, the table has a row with the error.

    Raises: MTError if the recipe cannot be used.
    """
    options, console = parse(argv), Console(stderr=True)
    options.output.mkdir(parents=True, exist_ok=True)
    setup = {**conditions(), "options": vars(options)}
    recipe = load_recipe(options.recipe, options.overrides)
    folder = options.output.resolve()
    prepare_task(recipe, folder)
    rows = [row for row in list_rows(folder, options.device) if not options.only or row.name.startswith(options.only)]
    for _ in range(options.rounds):
        for row in rows:
            if not row.problem:
                row.measure(folder / row.name / "metrics.jsonl")
                console.print(f"{row.name}: {row.problem or f'{row.speeds[-1]:,.0f} target tokens/s'}", markup=False)
    ran = [row for row in rows if not row.problem]
    if ours := [row for row in ran if row.name == "ours"]:
        for row in ran:
            row.ratio = ratio(ours[0].speeds, row.speeds)
    warnings = noise(setup["load_average"][0], {row.name: row.speeds for row in ran})
    values = {"conditions": setup, "warnings": warnings, "rows": [asdict(row) for row in rows]}
    write_results(options.output, [table("training", COLUMNS, [row.cells() for row in rows]), *warnings], values)
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
    add("--only", metavar="NAME", help="run only contenders whose names begin with NAME (default: all)")
    return parser.parse_intermixed_args(argv)


def prepare_task(recipe: Recipe, folder: Path) -> None:
    """Prepare the data of the recipe in `folder`, and write the recipe and the batches of all updates.

    `batches.npz` has the size of the vocabulary, and the arrays source_u_n [B, S], target_u_n [B, T] and labels_u_n
    [B, T] of batch n of update u, padded with 0, for B pairs, source length S and target length T.

    Raises: DataError if encoder and decoder have different numbers of layers.
    """
    model = recipe.model
    if model.encoder_layers != model.decoder_layers:
        raise DataError(
            f"the recipe's model has {model.encoder_layers} encoder layers and {model.decoder_layers} decoder layers; "
            "accepted: equal numbers"
        )
    data = load_prepared(prepare(recipe, folder / "prepared"))
    stream = UpdateStream(data.train, data.tokenizer, recipe, World()).updates(Position())
    arrays = {
        f"{side}_{number}_{place}": getattr(batch, side).numpy()
        for number, update in enumerate(islice(stream, UPDATES))
        for place, batch in enumerate(update.batches)
        for side in ("source", "target", "labels")
    }
    np.savez(folder / "batches.npz", vocabulary=np.array(len(data.tokenizer)), **arrays)
    save_recipe(recipe, folder / "recipe.toml")


def list_rows(folder: Path, device: str) -> list[TrainRow]:
    """Return ours, and transformers with all its settings. Each writes its metrics to a folder with its name."""
    run = ["-m", "mt", "train", str(folder / "recipe.toml"), *OURS, "--prepared", str(folder / "prepared")]
    rows = [TrainRow("ours", [sys.executable, *run, "--run", str(folder / "ours"), "--device", device])]
    precision = choose_precision("auto", torch.device(select_device(device)), World())
    kinds = sorted({(precision, "eager"), (precision, "sdpa"), ("float32", "sdpa")})
    for dtype, attention in kinds:
        for environment in ({}, KEPT_MEMORY) if device == "cpu" else ({},):
            name = f"transformers {dtype}, {attention} attention{', malloc kept' if environment else ''}"
            module = ["-m", "scripts.benchmark.train_transformers", str(folder), str(folder / name)]
            words = [sys.executable, *module, dtype, attention, device, str(available_cores())]
            rows.append(TrainRow(name, words, environment))
    return rows


if __name__ == "__main__":
    sys.exit(main())
