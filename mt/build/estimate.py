"""Estimate of the duration of a build from one short training, and the number of updates for a given duration."""

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from mt.build.config import BuildConfig, all_directions
from mt.build.recipes import pair_of, training_texts
from mt.build.stage import TEXT_FOLDER, Stage
from mt.config import Recipe
from mt.data.corpus import read_lines
from mt.errors import BuildError
from mt.section import Section
from mt.tokenizer import load_tokenizer

START_SECONDS = 8.0  # start of a program, and loading of a model
VALIDATION = 1.1  # time of updates and validations, relative to the time of the updates alone
ENSEMBLE_COST = 7.5  # time per model of an ensemble on a CPU, relative to one model: torch in float32, without kernels
USEFUL_TOKENS = 5_000_000  # the starter model had 28 BLEU on Tatoeba en-fr after 8 million (experiment 115)
SAMPLE = 1000  # number of lines from which the mean length is computed
LEAST_UPDATES = 100


class Measurement(Section):
    """Content of `plan.json`: measured speeds and sizes. A resumed build reads them, so that its plan is the same."""

    settings: str
    """Result of `settings_digest`. If it differs from that of the current recipe, the build measures again."""
    device: str
    processes: int
    updates: int
    """Number of updates of each training."""
    tokens_per_second: float
    """Target tokens per second in training. Translation with beam search is about as fast (experiment 085)."""
    preparation_seconds: float
    """Seconds of the stage `text`, which runs before the plan is made."""
    training_seconds: float
    """Seconds of a training run outside the updates: preparation, final validation and calibration."""
    tokens: dict[str, int]
    """Number of tokens of each text, computed from a sample. The keys are the names that `Workload.texts` uses."""


def settings_digest(recipe: Recipe, build: BuildConfig) -> str:
    """Return a SHA-256 of all settings of the recipe except its name, its seed and its corpora."""
    keys = recipe.model_dump_json(exclude={"data", "seed", "name"})
    return hashlib.sha256(f"{keys} {recipe.data.directions} {build.model_dump_json()}".encode()).hexdigest()


def measured_rate(folder: Path, update_tokens: int) -> tuple[float, float]:
    """Return the target tokens per second of the training run in `folder`, and the total seconds of its updates.

    `update_tokens` is the number of target tokens of an update. It is used if the run recorded no speed.
    """
    state = json.loads(max(folder.glob("checkpoints/*/state.json")).read_text(encoding="utf-8"))
    metrics = folder / "metrics.jsonl"  # a run of a few updates on a busy machine has none
    records = map(json.loads, metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else ())
    speeds = sorted(record["train_speed"] for record in records if "train_speed" in record)
    mean = state["updates"] * update_tokens / state["seconds"]
    return (speeds[len(speeds) // 2] if speeds else mean), state["seconds"]


def text_sizes(work: Path, recipe: Recipe, build: BuildConfig) -> dict[str, int]:
    """Return the approximate number of tokens of each text by its name. The names are those of `Workload.texts`.

    `work` is the folder of the build.
    """
    directions = all_directions(recipe, build)
    tokenizer = load_tokenizer(work / TEXT_FOLDER)

    def size(file: Path) -> int:
        sample = list(islice(read_lines(file), SAMPLE))
        mean = sum(map(len, tokenizer.encode_many(sample))) / max(1, len(sample))
        return round((mean + 1) * sum(1 for _ in read_lines(file)))

    tokens: dict[str, int] = {}
    for pair in dict.fromkeys(pair_of(direction, directions) for direction in directions):
        for part in ("train", "sample") if build.translated_pairs else ("train",):
            for text in training_texts(recipe, pair, part):
                tokens[text.name] = size(work / f"{text.path}.{pair.source}")
        tokens["test"] = size(work / TEXT_FOLDER / f"valid.{pair}.{pair.source}")
    for corpus in build.monolingual:
        tokens[corpus.path] = size(recipe.data.root / corpus.path)
    return tokens


def estimate(stage: Stage, measured: Measurement, update_tokens: int) -> float:
    """Return the estimated seconds of a stage. `update_tokens` is the number of target tokens of an update."""
    if stage.kind == "choose":
        return 0.0
    if stage.kind == "prepare":
        return measured.preparation_seconds
    if stage.kind == "train":
        return (
            measured.training_seconds + VALIDATION * stage.workload.updates * update_tokens / measured.tokens_per_second
        )
    tokens = sum(measured.tokens[text] for text in stage.workload.texts)
    models = stage.workload.models
    cost = ENSEMBLE_COST * models if models > 1 else 1.0
    return START_SECONDS + cost * tokens / measured.tokens_per_second


def updates_in(minutes: float, seconds_of: Callable[[int], float]) -> int:
    """Return the number of updates of each training run with which the build takes about `minutes`.

    `seconds_of(updates)` returns the estimated seconds of the build, and must be a linear function.
    Raises: BuildError if `minutes` is too short for `LEAST_UPDATES` updates.
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


def short_training_warning(measured: Measurement, update_tokens: int, seconds_of: Callable[[int], float]) -> str:
    """Return a warning if the budget leaves few updates for each model, otherwise "".

    `seconds_of(updates)` returns the estimated seconds of the build.
    """
    trained = measured.updates * update_tokens
    if trained >= USEFUL_TOKENS:
        return ""
    minutes = seconds_of(-(-USEFUL_TOKENS // update_tokens)) / 60
    return (
        f"build.minutes leaves {trained / 1e6:.1f} million target tokens for the training of each model; models that "
        f"are trained on fewer than {USEFUL_TOKENS / 1e6:.0f} million are rarely useful. Recommended: at least "
        f"{minutes:,.0f} minutes, or fewer seeds, rounds and students"
    )


def read_measurement(path: Path, settings: str) -> Measurement | None:
    """Return the measurement in the file `path`, or None if the file is missing, invalid or of other `settings`."""
    try:
        measured = Measurement.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return measured if measured.settings == settings else None


def total(stages: Sequence[Stage], measured: Measurement, update_tokens: int) -> float:
    return sum(estimate(stage, measured, update_tokens) for stage in stages)
