"""Compare short training runs: pre-norm and post-norm, with and without warm-up, label smoothing, tied embeddings.

    mt-service fetch phrasebook
    mt-service benchmark trainings --rounds 3 --output benchmarks/trainings

Each round has another seed. A training run takes about a minute on one core. Runs that are finished in --runs are not
repeated: after an interruption, the same command continues. The results are a table, `trainings.json`, and the pictures
`trainings.svg` (validation loss) and `rates.svg` (learning rate).
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mt.cli.command import CommandParser, count
from mt.errors import MTError
from mt.insight.chart import Series, line_chart

from .report import conditions, show, table, write_json

NO_WARMUP = "training.warmup_updates=1"
PEAK = 3e-3  # learning rate at the end of the warm-up

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "pre-norm": (),
    "post-norm": ("model.norm=post",),
    "pre-norm-no-warm-up": (NO_WARMUP,),
    "post-norm-no-warm-up": ("model.norm=post", NO_WARMUP),
    "no-label-smoothing": ("training.label_smoothing=0",),
}
"""Variants by name, with the recipe values that differ from those of the first variant."""

MODEL = (
    *("model.encoder_layers=4", "model.decoder_layers=4", "model.d_model=64", "model.d_ff=256"),
    *("training.optimizer=adam", "training.average_checkpoints=1"),
    *("training.update_tokens=800", "training.batch_tokens=800", "training.validate_sentences=100"),
    *("decoding.beam_size=1", "decoding.max_length_factor=1", "data.test=[]"),
)


@dataclass(frozen=True)
class TrainingResult:
    """Metrics of one training run.

    `losses` and `rates` are the curves of the validation loss and the learning rate, as (update, value). `loss`, in
    nats per token, and `bleu` are from the last validation. `minutes` is the wall time.
    """

    variant: str
    seed: int
    losses: list[tuple[int, float]]
    rates: list[tuple[int, float]]
    loss: float
    bleu: float
    minutes: float


def add_arguments(parser: CommandParser) -> None:
    add = parser.more.add_argument
    add("--recipe", default="scripts/recipes/phrasebook.toml", metavar="RECIPE", help="recipe (default: %(default)s)")
    add("--updates", type=count, default=400, metavar="N", help="updates of a run, at least 40 (default: %(default)s)")
    add("--runs", type=Path, default=Path("runs/trainings"), metavar="DIR", help="folder of the runs (%(default)s)")
    add("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="NAME", help="default: all")


def run(options: argparse.Namespace) -> None:
    """Train each variant with each seed, print the table, and write the results.

    Raises: MTError if --updates is too small or a training run fails.
    """
    if options.updates < 40:
        raise MTError(f"--updates is {options.updates}; accepted: at least 40")
    before = conditions()
    results = [trained(variant, seed, options) for seed in range(1, options.rounds + 1) for variant in options.variants]
    by_variant = {name: [result for result in results if result.variant == name] for name in options.variants}
    parts: list[Table | str] = [
        results_table(by_variant),
        f"{options.updates} updates, seeds 1 to {options.rounds}. ± is the standard deviation.",
    ]
    options.output.mkdir(parents=True, exist_ok=True)
    show(parts, options.output / "table.txt")
    write_json(
        options.output / "trainings.json", {"conditions": before, "runs": [asdict(result) for result in results]}
    )
    losses = line_chart(
        "Validation loss, nats a target token", "updates", [loss_series(*item) for item in by_variant.items()]
    )
    rates = line_chart("Learning rate", "updates", rate_series(by_variant))
    for name, drawing in (("trainings", losses), ("rates", rates)):
        (options.output / f"{name}.svg").write_text(drawing.adaptive_svg(), encoding="utf-8")


def trained(variant: str, seed: int, options: argparse.Namespace) -> TrainingResult:
    """Return the result of a training run. If the run has not finished, train first.

    Raises: MTError if the training fails.
    """
    folder = options.runs / f"{variant}-{seed}"
    records = finished_metrics(folder, options.updates)
    if not records:
        quarter, tenth = options.updates // 4, options.updates // 10
        lengths = {"max_updates": options.updates, "warmup_updates": quarter, "cooldown_updates": quarter}
        lengths |= {"validate_every": tenth, "save_every": options.updates}
        keys = [f"seed={seed}", *MODEL, *(f"training.{name}={value}" for name, value in lengths.items())]
        # Without a warm-up, the rate has the same curve as 1 / sqrt(update) from the first update on: a higher peak.
        peak = PEAK * quarter**0.5 if NO_WARMUP in VARIANTS[variant] else PEAK
        keys.append(f"training.learning_rate={peak:.4g}")
        place = ["--run", str(folder), "--device", "cpu", "--processes", "1", "--threads", "1"]
        command = [sys.executable, "-m", "mt", "train", options.recipe, *place, *keys, *VARIANTS[variant]]
        Console(stderr=True).print(f"{variant}, seed {seed}", highlight=False)
        done = subprocess.run(command, capture_output=True, text=True)
        records = finished_metrics(folder, options.updates)
        if not records:
            raise MTError(f"{variant}, seed {seed}: the training failed\n{done.stderr[-2000:]}")
    valid = [record for record in records if "valid_loss" in record]
    began, ended = ((folder / name).stat().st_mtime for name in ("recipe.toml", "metrics.jsonl"))
    return TrainingResult(
        variant=variant,
        seed=seed,
        losses=[(int(record["update"]), record["valid_loss"]) for record in valid],
        rates=[(int(record["update"]), record["train_rate"]) for record in records if "train_rate" in record],
        loss=valid[-1]["valid_loss"],
        bleu=valid[-1]["valid_bleu"],
        minutes=(ended - began) / 60,
    )


def finished_metrics(folder: Path, updates: int) -> list[dict[str, float]]:
    """Return the records in `metrics.jsonl` of a run, or [] if the run has not been validated at update `updates`."""
    path = folder / "metrics.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    is_finished = bool(records) and records[-1]["update"] == updates and "valid_loss" in records[-1]
    return records if is_finished else []


def results_table(by_variant: Mapping[str, Sequence[TrainingResult]]) -> Table:
    """Return a table with the losses by seed, the mean loss, BLEU and minutes of each variant."""
    rows = []
    for name, results in by_variant.items():
        losses, scores = [result.loss for result in results], [result.bleu for result in results]
        minutes = statistics.fmean(result.minutes for result in results)
        seeds = ", ".join(f"{loss:.2f}" for loss in losses)
        rows.append([name, seeds, spread(losses, 2), spread(scores, 1), f"{minutes:.1f}"])
    return table("Short trainings", ("variant", "loss by seed", "loss", "BLEU", "minutes"), rows)


def spread(values: Sequence[float], digits: int) -> str:
    """Return the mean and, for several values, the standard deviation as text, such as "2.13 ± 0.02"."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def loss_series(name: str, results: Sequence[TrainingResult]) -> Series:
    """Return the curve of the validation loss of a variant: the mean of all seeds, and the curve of each seed."""
    curves = [result.losses for result in results]
    mean = [(points[0][0], statistics.fmean(loss for _, loss in points)) for points in zip(*curves, strict=True)]
    return Series(name, mean, curves if len(curves) > 1 else ())


def rate_series(by_variant: Mapping[str, Sequence[TrainingResult]]) -> list[Series]:
    """Return the curves of the learning rate. Variants with equal learning rates share one curve."""
    names: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for name, results in by_variant.items():
        names.setdefault(tuple(results[0].rates), []).append(name)
    return [
        Series("without warm-up" if "no-warm-up" in of[0] else "with warm-up", rates) for rates, of in names.items()
    ]
