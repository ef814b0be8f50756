"""Train the bundled model in a fixed time on one GPU: a teacher, its translations, and a student trained on both.

    python -m scripts.starter corpora DATA data/starter                       # the text (scripts/starter_corpora.py)
    python -m scripts.starter pack runs/prepared/starter-... starter-pack     # where the corpora are
    python -m scripts.starter train starter-pack runs/starter --minutes 14    # where the GPU is
    python -m scripts.starter collect runs/starter OUT                        # files of at most 15 MiB

`pack` compresses prepared data (`mt-service prepare`): each text once, with the tokenizer. `train` expands it to the
same prepared data. It can be killed and started again: it continues with the newest checkpoint of the present stage,
and the time in which it did not run does not count. `collect` writes what exists: the student in float16 and int8, or
the newest checkpoint of its training, the metrics, and with --teacher the teacher in int8.
"""

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mt.arrays import load_arrays, save_arrays
from mt.checkpoint import LoadedModel, load_model, save_model
from mt.cli.command import command
from mt.config import Recipe
from mt.data.batching import direction_prefixes, source_prefixes
from mt.data.dataset import PreparedData, load_prepared
from mt.distributed import World
from mt.engine.devices import select_device
from mt.engine.requests import Request
from mt.pipeline.translator import Translator
from mt.source_bigrams import SourceBigrams
from mt.tokenizer import EOS
from mt.training.report import BLEU, Reporter
from mt.training.state import checkpoints
from mt.training.trainer import Trainer
from mt.training.tuning import read_recipe
from mt.training.validation import Validation
from scripts.starter_corpora import write_corpora
from scripts.starter_data import (
    distillation_order,
    expand,
    joined,
    pack,
    save_translations,
    student_data,
    with_corpora,
    with_dropout,
)

SHARES = {"teacher": 0.44, "distil": 0.2, "student": 0.36}
"""Shares of the stages in the time that is left after the start."""

TEACHER = [
    "model.encoder_layers=6",
    "model.decoder_layers=6",
    "model.d_model=512",
    "model.d_ff=2048",
    "model.heads=8",
    "model.dropout=0.1",
    "training.learning_rate=0.002",
    "training.batch_tokens=32768",
    "training.update_tokens=32768",
    "training.warmup_updates=600",
    "decoding.beam_size=4",
]
STUDENT = [
    "training.batch_tokens=49152",
    "training.update_tokens=49152",
    "training.learning_rate=0.003",
    "training.warmup_updates=600",
    "model.dropout=0.0",
]
AHEAD = 4096  # requests in the engine
RESULTS_EVERY = 10  # seconds between files of translations
PART_BYTES = 15 << 20  # size of the largest file that `collect` writes


# Stages


class ValidationByLoss(Validation):
    """Validation by the loss alone: a translation of the validation set would take seconds of the GPU."""

    def metrics(self, model: Any, float32_model: Any) -> dict[str, float]:
        losses = self.losses(model)
        return {**losses, BLEU: -losses["valid_loss"]}  # of the name that the trainer compares


@dataclass
class Stages:
    """The state on the disk: seconds of each stage, and the stages that have ended."""

    folder: Path
    seconds: dict[str, float]
    ended: list[str]

    @classmethod
    def load(cls, folder: Path) -> "Stages":
        path = folder / "state.json"
        values = json.loads(path.read_text()) if path.exists() else {"seconds": {}, "ended": []}
        return cls(folder, **values)

    def save(self) -> None:
        path = self.folder / "state.json"
        path.with_suffix(".part").write_text(json.dumps({"seconds": self.seconds, "ended": self.ended}))
        path.with_suffix(".part").replace(path)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def say(self, text: str) -> None:
        line = f"[{time.strftime('%H:%M:%S')}, {self.total:.0f} s] {text}"
        print(line, flush=True)
        with (self.folder / "progress.log").open("a") as file:
            file.write(line + "\n")


def run_trainer(
    recipe: Recipe, data: PreparedData, folder: Path, device: torch.device, seconds: float
) -> tuple[Trainer, bool]:
    """Train for `seconds`, with the time before a resume. Return the trainer and whether it reached its limit."""
    training = recipe.training.model_copy(update={"max_minutes": max(seconds, 1.0) / 60})
    recipe = recipe.model_copy(update={"training": training})
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(recipe, data, folder, device, World())
    trainer.validation = ValidationByLoss(recipe, data, trainer.describe())
    trainer.resume()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: trainer.stop())
    with Reporter(folder, folder.name, recipe.training, trainer.progress.updates) as report:
        report.print(f"{sum(p.numel() for p in trainer.model.parameters()):,} parameters, {trainer.batches.summary}")
        finished = trainer.train(report)
        report.record(trainer.progress.updates, trainer.validation.metrics(trainer.working.model, trainer.model))
    return trainer, finished


def save_trained(trainer: Trainer, folder: Path) -> None:
    description = trainer.describe()
    model = LoadedModel(trainer.model.eval(), trainer.data.tokenizer, description, str(trainer.device))
    save_model(folder, model, f"# {description.name}\n")


def distil_worker(state: Path, packed: Path, device: str, worker: int, workers: int, until: float, backend: str) -> int:
    """Translate training sources with the teacher, in a random order in which weights count, until the time is over."""
    recipe, data = read_recipe(packed / "starter.toml"), load_prepared(state / "prepared")
    translator = Translator.load(state / "teacher-model", device, backend=backend)
    options = translator.options
    folder = state / "distilled"
    done = np.concatenate(
        [np.empty(0, np.int64), *(load_arrays(path)["rows"] for path in folder.glob("*.safetensors"))]
    )
    order = distillation_order(recipe, data.train)
    order = order[~np.isin(order, done)][worker::workers]
    prefixes = direction_prefixes(data.tokenizer, recipe)
    engine, rows = translator.engine, iter(order.tolist())
    waiting, results, begun, number = 0, [], time.monotonic(), len(list(folder.glob(f"{worker}-*")))
    while True:
        late = time.time() > until
        while not late and waiting < AHEAD and (row := next(rows, None)) is not None:
            [prefix] = source_prefixes(data.train, prefixes, np.array([row]), ())
            engine.submit(Request(row, (*prefix, *data.train.source[row].tolist(), EOS), options))
            waiting += 1
        if late or not waiting:
            break
        for result in engine.step():
            waiting -= 1
            if result.hypotheses and not result.problem:
                results.append((result.id, result.hypotheses[0].tokens))
        if results and time.monotonic() - begun > RESULTS_EVERY:
            save_translations(folder / f"{worker}-{number}.safetensors", results)
            tokens = sum(len(tokens) for _, tokens in results)
            print(
                f"worker {worker}: {len(results):,} translations, {tokens / (time.monotonic() - begun):,.0f} tokens/s"
            )
            sys.stdout.flush()
            results, begun, number = [], time.monotonic(), number + 1
    save_translations(folder / f"{worker}-{number}.safetensors", results)
    os._exit(0)  # requests are left in the engine


def distil(state: Stages, packed: Path, device: str, seconds: float, workers: int) -> None:
    """Run `workers` processes of `distil_worker`. If all of them fail, try once more with the plain backend."""
    (state.folder / "distilled").mkdir(exist_ok=True)
    begun = time.monotonic()
    for backend in ("auto", "torch"):
        left = seconds - (time.monotonic() - begun)
        command = [
            sys.executable,
            "-m",
            "scripts.starter",
            "distil-worker",
            str(packed),
            str(state.folder),
            "--device",
            device,
        ]
        command += ["--workers", str(workers), "--until", f"{time.time() + left:.1f}", "--backend", backend, "--worker"]
        processes = [subprocess.Popen([*command, str(worker)]) for worker in range(workers)]
        signal.signal(signal.SIGTERM, partial(kill_all, processes))
        codes = [wait(process, left + 30) for process in processes]
        state.say(f"distil: backend {backend}, exit codes {codes}")
        if not all(codes):
            break


def kill_all(processes: Sequence[subprocess.Popen[bytes]], *_: object) -> None:
    for process in processes:
        process.kill()
    os._exit(1)


def wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(max(1.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def train(options: argparse.Namespace) -> int:
    """Run the stages that have not ended."""
    began = time.monotonic()
    folder, packed = options.state, options.pack
    device = torch.device(select_device(options.device))
    folder.mkdir(parents=True, exist_ok=True)
    state = Stages.load(folder)
    threads = os.cpu_count() or 1
    total = 60 * options.minutes - options.spent
    before = state.total
    recipe = read_recipe(packed / "starter.toml", options.overrides)
    if not (folder / "prepared").exists():
        expand(packed, folder / "prepared", threads)
        state.say("expanded the data")
    data = load_prepared(folder / "prepared")
    dropout = with_dropout(data.train, data.tokenizer, threads)
    state.say(f"{len(data.train):,} pairs, {int(data.train.target.offsets[-1]):,} target tokens")
    state.seconds["start"] = state.seconds.get("start", 0.0) + time.monotonic() - began
    state.save()
    budget = max(10.0, total - state.seconds["start"] - options.reserve)
    if "teacher" not in state.ended:
        doubled = joined(data.train, replace(data.train, source=dropout), len(recipe.data.train))
        large = with_corpora(
            read_recipe(packed / "starter.toml", [*TEACHER, *options.overrides, *options.teacher]), 0.5, 0.5
        )
        seconds = budget * SHARES["teacher"]
        trainer, finished = train_model(state, "teacher", large, replace(data, train=doubled), device, seconds)
        if not finished:
            return pause(state, "teacher", began, before)
        save_trained(trainer, folder / "teacher-model")
        end(state, "teacher", began, before)
        del trainer, doubled
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if "distil" not in state.ended:
        seconds = (total - options.reserve - elapsed(state, began, before)) * SHARES["distil"] / (1 - SHARES["teacher"])
        distil(state, packed, options.device, seconds, options.workers)
        end(state, "distil", began, before)
    if "student" not in state.ended:
        small = read_recipe(packed / "starter.toml", [*STUDENT, *options.overrides])
        small, mixed, translated = student_data(small, data, dropout, folder)
        state.say(f"student: {translated:,} translations of the teacher, {len(mixed.train):,} pairs")
        done = trained_seconds(folder / "student")
        seconds = total - options.reserve - elapsed(state, began, before) + done
        trainer, finished = train_model(state, "student", small, mixed, device, max(seconds, 5.0))
        if not finished:
            return pause(state, "student", began, before)
        save_trained(trainer, folder / "student-model")
        end(state, "student", began, before)
    (folder / "done").touch()
    state.say("done")
    return 0


def train_model(
    state: Stages, name: str, recipe: Recipe, data: PreparedData, device: torch.device, seconds: float
) -> tuple[Trainer, bool]:
    """Train with the optimizer of the recipe or, if that fails, with Adam in the time that is left."""
    state.say(f"{name}: {seconds:.0f} s")
    began = time.monotonic()
    try:
        return run_trainer(recipe, data, state.folder / name, device, seconds)
    except Exception as error:  # the time on the GPU is limited: nobody can repair the cause
        state.say(f"{name}: {type(error).__name__}: {error}; again with Adam")
    training = recipe.training.model_copy(update={"optimizer": "adam", "learning_rate": 1e-3})
    recipe = recipe.model_copy(update={"training": training})
    return run_trainer(recipe, data, state.folder / f"{name}-adam", device, seconds - (time.monotonic() - began))


def elapsed(state: Stages, began: float, before: float) -> float:
    return max(state.total, before + time.monotonic() - began)


def pause(state: Stages, name: str, began: float, before: float) -> int:
    """Add the time that no stage has counted yet to the stage `name`."""
    state.seconds[name] = state.seconds.get(name, 0.0) + elapsed(state, began, before) - state.total
    state.save()
    return 130


def end(state: Stages, name: str, began: float, before: float) -> None:
    pause(state, name, began, before)
    state.ended.append(name)
    state.save()
    state.say(f"{name} ended after {state.seconds[name]:.0f} s")


def trained_seconds(run: Path) -> float:
    saved = checkpoints(run / "checkpoints")
    return float(json.loads((saved[-1] / "state.json").read_text())["progress"]["seconds"]) if saved else 0.0


# Results


def collect(state: Path, out: Path, teacher: bool) -> int:
    """Write the results to `out`, in files of at most PART_BYTES bytes."""
    out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out / "metrics.tgz", "w:gz") as tar:
        for path in [*state.glob("*/metrics.jsonl"), *state.glob("*.log"), *state.glob("state.json")]:
            tar.add(path, path.relative_to(state))
    if teacher:
        loaded = load_model(state / "teacher-model")
        rounded = replace(loaded, description=loaded.description.with_weights("int8"))
        save_model(state / "teacher-int8", rounded, "# teacher\n")
        split(state / "teacher-int8", out / "teacher-int8.tar")
        return 0
    folder = state / "student-model"
    saved = checkpoints(state / "student" / "checkpoints")
    if not folder.exists() and saved:
        print(f"the student has not ended; its newest checkpoint is {saved[-1].name}")
        (out / "checkpoint.txt").write_text(saved[-1].name)
        folder = saved[-1]
    if not folder.exists():
        print("there is no student yet")
        return 1
    weights = {
        name: np.asarray(array).astype(np.float16) for name, array in load_arrays(folder / "model.safetensors").items()
    }
    half = state / "student-float16"
    half.mkdir(exist_ok=True)
    save_arrays(half / "model.safetensors", weights)
    for path in folder.iterdir():
        if path.is_file() and path.name not in ("model.safetensors", "optimizer.safetensors"):
            shutil.copy(path, half / path.name)
    split(half, out / "student-float16.tar")
    if folder.name == "student-model":
        loaded, data = load_model(folder), load_prepared(state / "prepared")
        languages = [direction.partition("-")[0] for direction in data.meta["directions"]]
        description = loaded.description.with_weights("int8").model_copy(update={"name": "starter"})
        bigrams = SourceBigrams.build(data.train.source, data.train.direction, languages)
        save_model(state / "student-int8", replace(loaded, description=description, bigrams=bigrams), "# starter\n")
        split(state / "student-int8", out / "student-int8.tar")
    return 0


def split(folder: Path, path: Path) -> None:
    """Write `folder` as a tar archive to the files PATH.0, PATH.1 and so on."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(folder, folder.name)
    content = buffer.getvalue()
    for number, begin in enumerate(range(0, len(content), PART_BYTES)):
        path.with_name(f"{path.name}.{number}").write_bytes(content[begin : begin + PART_BYTES])


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("corpora")
    verb.add_argument("data", type=Path)
    verb.add_argument("out", type=Path)
    verb = verbs.add_parser("pack")
    verb.add_argument("prepared", type=Path)
    verb.add_argument("out", type=Path)
    for name in ("train", "distil-worker"):
        verb = verbs.add_parser(name)
        verb.add_argument("pack", type=Path)
        verb.add_argument("state", type=Path)
        verb.add_argument("--device", default="cuda")
        verb.add_argument("--workers", type=int, default=3)
        verb.add_argument("--worker", type=int, default=0)
        verb.add_argument("--until", type=float, default=0.0)
        verb.add_argument("--backend", default="auto")
        verb.add_argument("--minutes", type=float, default=14)
        verb.add_argument("--spent", type=float, default=0, help="seconds of --minutes that passed before the start")
        verb.add_argument("--reserve", type=float, default=15, help="seconds to leave at the end")
        verb.add_argument("--teacher", nargs="*", default=[], help="key=value of the teacher's recipe")
        verb.add_argument("--overrides", nargs="*", default=[], help="key=value of both recipes")
    verb = verbs.add_parser("collect")
    verb.add_argument("state", type=Path)
    verb.add_argument("out", type=Path)
    verb.add_argument("--teacher", action="store_true")
    return parser.parse_args(argv)


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    if options.verb == "corpora":
        write_corpora(options.data, options.out)
        return 0
    if options.verb == "pack":
        pack(options.prepared, options.out)
        return 0
    if options.verb == "collect":
        return collect(options.state, options.out, options.teacher)
    if options.verb == "distil-worker":
        o = options
        return distil_worker(o.state, o.pack, o.device, o.worker, o.workers, o.until, o.backend)
    return train(options)


if __name__ == "__main__":
    sys.exit(main())
