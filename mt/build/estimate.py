"""Estimates of time, from one short training, and the number of updates that fits into a budget."""

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from mt.build.config import BuildConfig
from mt.build.recipes import all_directions, pair_of
from mt.build.stage import TEXT_FOLDER, Stage
from mt.config import Recipe
from mt.data.corpus import read_lines
from mt.errors import BuildError
from mt.section import Section
from mt.tokenizer import load_tokenizer

START_SECONDS = 8.0  # start of a program, and loading of a model
VALIDATION = 1.1  # time of updates and validations, relative to the time of the updates alone
SAMPLE = 1000  # number of lines from which the mean length is computed
LEAST_UPDATES = 100


class Measurement(Section):
    """The content of `plan.json`. It is measured once, so that a resumed build has the same plan."""

    settings: str
    """Digest of the recipe without its corpora. If it changes, a new plan is made."""
    device: str
    processes: int
    updates: int
    """Number of updates of each training."""
    tokens_per_second: float
    """Rate of training in target tokens; translation with beam search is about as fast (experiment 085)."""
    training_seconds: float
    """Seconds of a training other than those of its updates: preparation, the final validation, calibration."""
    tokens_per_line: float
    lines: dict[str, int]
    """Number of lines of each text, by the names in `Workload.texts`."""


def settings_digest(recipe: Recipe, build: BuildConfig) -> str:
    """Return a digest of all keys except the corpora and the seed."""
    keys = recipe.model_dump_json(exclude={"data", "seed", "name"})
    return hashlib.sha256(f"{keys} {recipe.data.directions} {build.model_dump_json()}".encode()).hexdigest()


def measured_rate(folder: Path, update_tokens: int) -> tuple[float, float]:
    """Return the target tokens per second of the training in `folder`, and the seconds of its updates."""
    state = json.loads(max(folder.glob("checkpoints/*/state.json")).read_text(encoding="utf-8"))
    records = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    speeds = sorted(record["train_speed"] for record in records if "train_speed" in record)
    mean = state["updates"] * update_tokens / state["seconds"]
    return (speeds[len(speeds) // 2] if speeds else mean), state["seconds"]


def text_sizes(work: Path, recipe: Recipe, build: BuildConfig) -> tuple[float, dict[str, int]]:
    """Return the mean number of tokens of a training source, and the number of lines of each text."""
    directions = all_directions(recipe, build)
    tokenizer = load_tokenizer(work / TEXT_FOLDER)
    lines: dict[str, int] = {}
    sample: list[str] = []
    for pair in dict.fromkeys(pair_of(direction, directions) for direction in directions):
        file = work / TEXT_FOLDER / f"train.{pair}.{pair.source}"
        lines[str(pair)] = _count(file)
        sample += islice(read_lines(file), SAMPLE)
        lines["test"] = _count(work / TEXT_FOLDER / f"valid.{pair}.tsv")
    for corpus in build.monolingual:
        lines[corpus.path] = _count(recipe.data.root / corpus.path)
    return sum(map(len, tokenizer.encode_many(sample))) / len(sample) + 1, lines


def estimate(stage: Stage, measured: Measurement, update_tokens: int) -> float:
    """Return the estimated seconds of a stage."""
    if stage.kind == "choose":
        return 0.0
    if stage.kind == "train":
        return (
            measured.training_seconds + VALIDATION * stage.workload.updates * update_tokens / measured.tokens_per_second
        )
    tokens = sum(measured.lines[text] for text in stage.workload.texts) * measured.tokens_per_line
    return START_SECONDS + tokens / measured.tokens_per_second


def updates_in(minutes: float, seconds_of: Callable[[int], float]) -> int:
    """Return the number of updates of each training, chosen so that the build takes `minutes`.

    `seconds_of` returns the seconds of the build for a number of updates; it must be a linear function.
    Raises: BuildError if the budget is too small.
    """
    few = seconds_of(LEAST_UPDATES)
    slope = (seconds_of(11 * LEAST_UPDATES) - few) / (10 * LEAST_UPDATES)
    updates = LEAST_UPDATES + int((60 * minutes - few) / slope)
    if updates < LEAST_UPDATES:
        raise BuildError(
            f"build.minutes is {minutes:g}; accepted: at least {few / 60:.1f}, the estimated time of this build with "
            f"{LEAST_UPDATES} updates of each model"
        )
    return updates


def read_measurement(path: Path, settings: str) -> Measurement | None:
    """Return the content of `plan.json`, or None if the file is missing or was made for other settings."""
    try:
        measured = Measurement.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return measured if measured.settings == settings else None


def _count(file: Path) -> int:
    return sum(1 for _ in read_lines(file))


def total(stages: Sequence[Stage], measured: Measurement, update_tokens: int) -> float:
    """Return the estimated seconds of all stages."""
    return sum(estimate(stage, measured, update_tokens) for stage in stages)
