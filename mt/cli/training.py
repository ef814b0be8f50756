"""The training of `mt-service train`, whose options are checked in `mt.cli.train` before torch is imported."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import torch
from rich.console import Console

from mt import evaluation
from mt.checkpoint import CALIBRATION_PAIRS, LoadedModel, save_model
from mt.cli.command import RUNS, stderr_console
from mt.cli.prepare import prepare_with_progress
from mt.cli.train import MAX_PROCESSES
from mt.config import Recipe
from mt.data.corpus import SentencePair
from mt.data.dataset import PreparedData, load_prepared
from mt.data.preparation import prepared_folder, read_corpus
from mt.distributed import World, barrier, join_process_group, local_rank, spawn_ranks
from mt.engine.backends.cpu import store_loss
from mt.engine.devices import available_cores, select_device
from mt.errors import DataError, TrainingError, problems
from mt.files import atomic_file, try_lock
from mt.languages import Direction
from mt.pipeline.translator import Translator
from mt.recipe import recipe_changes, save_recipe
from mt.source_bigrams import SourceBigrams, load_source_bigrams
from mt.training.card import Published, write_card
from mt.training.confidence import CONFIDENCE_PAIRS, fit_confidence
from mt.training.memory import keep_freed_memory
from mt.training.report import BLEU, Reporter
from mt.training.state import checkpoints, trained
from mt.training.trainer import Trainer
from mt.training.tuning import read_recipe

FIXED_SECTIONS = ("seed", "data", "cleaning", "tokenizer", "model", "tuning")  # --resume may not change them
NOT_RESUMED = "training begins at update 1: there is no checkpoint yet"
CHANGES = "recipe-changes.txt"  # in the folder of a run: keys that were changed with --resume
USEFUL_BLEU = 5  # below, a model has not learned to translate
Tests = dict[Direction, list[SentencePair]]  # test pairs by direction


def run_training(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Train with the options of the verb, in as many processes as it asks for. Return the exit status.

    `argv` are the arguments of the verb, with which further processes are started.
    """
    console = stderr_console()
    recipe = read_recipe(options.recipe, options.overrides)
    run = options.run or RUNS / recipe.run_name
    device = torch.device(select_device(options.device, local_rank()))
    processes = share_cores(device, options.processes, options.threads)
    keep_freed_memory()
    ranks = spawn_ranks([sys.executable, "-m", "mt", "train", *argv], processes)
    try:
        with ranks, join_process_group(device.type) as world, lock_run(run, world):
            if device.type == "cuda":
                device = torch.device("cuda", world.local_rank if world.size > 1 else device.index or 0)
                torch.cuda.set_device(device)
            finished = train(recipe, run, options.prepared, device, world, options.resume, console)
    except KeyboardInterrupt:
        finished = False
    if not finished:
        saved = checkpoints(run / "checkpoints")
        advice = "--resume continues from the last checkpoint" if saved else "no checkpoint exists; start the run again"
        console.print(f"stopped; {advice}", style="yellow")
        return 130
    return 0


def share_cores(device: torch.device, processes: int | None, threads: int | None) -> int:
    """Set the number of threads of this process, and return the number of training processes, including this one.

    `processes` and `threads` are the values of the options, None if they are not given. By default, a CPU has one
    process per core: processes synchronise once per update, but threads at each operation, so that several processes
    with one thread are faster than one process with several threads.
    """
    started = "RANK" in os.environ  # torchrun or rank 0 has started this process
    if processes is None or started:
        single = started or threads is not None or device.type != "cpu"
        processes = 1 if single else min(available_cores(), MAX_PROCESSES)
    if threads is None and processes > 1:
        threads = max(1, available_cores() // processes)
        os.environ["OMP_NUM_THREADS"] = str(threads)  # the other ranks read it
    if threads is not None:
        torch.set_num_threads(threads)
    return processes


def train(
    recipe: Recipe, run: Path, prepared: Path, device: torch.device, world: World, resume: bool, console: Console
) -> bool:
    """Prepare the data, train, and write the model directory.

    If a signal stopped the training, no model directory is written, and the result is False.
    """
    recipe_file = run / "recipe.toml"
    changes = check_run(recipe, recipe_file, resume)
    if world.is_main:
        prepare_with_progress(recipe, prepared, console)
    barrier(world)
    data = load_prepared(prepared_folder(recipe, prepared))
    tests = read_tests(recipe, data)
    trainer = Trainer(recipe, data, run, device, world)
    resumed = resume and trainer.resume()
    changes = [f"from update {trainer.progress.updates + 1:,} on: {change}" for change in changes if resumed]
    if world.is_main:
        run.mkdir(parents=True, exist_ok=True)
        with (run / CHANGES).open("a" if resumed else "w", encoding="utf-8") as file:
            file.writelines(f"{change}\n" for change in changes)
        with atomic_file(recipe_file) as temporary:
            save_recipe(recipe, temporary)
    with Reporter(run, recipe.run_name, recipe.training, trainer.progress.updates, not world.is_main) as report:
        if resume:
            report.print(f"resumed at update {trainer.progress.updates:,}" if resumed else NOT_RESUMED)
        for change in changes:
            report.print(f"changed {change}")
        parameters = sum(p.numel() for p in trainer.model.parameters())
        changing = sum(p.numel() for p in trained(trainer.model).values())
        report.print(
            f"{parameters:,} parameters{f', {changing:,} of them trained' if changing < parameters else ''}, "
            f"{trainer.batches.summary}, processes: {world.size} on {device}, threads of each: "
            f"{torch.get_num_threads()}, in {trainer.precision}"
        )
        with signals_stop(trainer, world):
            finished = trainer.train(report)
        if finished and world.is_main:
            publish(recipe, data, tests, trainer, report)
    return finished


@contextmanager
def signals_stop(trainer: Trainer, world: World) -> Iterator[None]:
    """Stop the training after the current update if SIGINT or SIGTERM arrives during the context.

    With a single process, a second SIGINT stops the training at once. With several, it has no effect: torchrun forwards
    signals, so that a process may receive the same SIGINT twice.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if signal.SIGINT in received and number == signal.SIGINT and world.size == 1:
            raise KeyboardInterrupt
        received.append(number)
        trainer.stop()
        os.write(sys.stderr.fileno(), b"\nstopping after this update; a checkpoint is written\n")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def lock_run(run: Path, world: World) -> Iterator[None]:
    """Lock the run directory during the context, in rank 0. Raises: TrainingError if another process trains in it."""
    if not world.is_main:
        yield
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    with try_lock(run) as locked:
        if not locked:
            raise TrainingError(
                f"another process trains in {run}. Give another --run, or wait until that process has ended"
            )
        yield


def check_run(recipe: Recipe, recipe_file: Path, resume: bool) -> list[str]:
    """Check that `recipe_file` does not exist, or that its run may be resumed with `recipe`.

    Return a line for each key whose value in the file differs. Raises: TrainingError if the file exists and `resume` is
    false, or if `recipe` changes values of the file that a resumed run must keep.
    """
    if not recipe_file.exists():
        return []
    if not resume:
        raise TrainingError(
            f"{recipe_file.parent} already holds a run. Give --resume to continue that run, or another --run"
        )
    before = read_recipe(recipe_file)
    changed = [key for key in FIXED_SECTIONS if getattr(before, key) != getattr(recipe, key)]
    if before.training.optimizer != recipe.training.optimizer:  # it cannot load the state of another optimizer
        changed.append("training.optimizer")
    if changed:
        raise TrainingError(
            f"the recipe differs from {recipe_file} in {', '.join(changed)}. Use the values of that file, or give "
            "another --run"
        )
    return recipe_changes(before, recipe)


def publish(recipe: Recipe, data: PreparedData, tests: Tests, trainer: Trainer, report: Reporter) -> None:
    """Select the best weights, evaluate them on the test corpora, and write the model directory."""
    weights, origin, metrics = trainer.finish(report)
    report.plot()  # a short run ends before its first validation
    published = Published(origin, metrics, str(trainer.device))
    model, description, folder = trainer.model_of(weights), trainer.describe(), trainer.run / "model"
    sources = [direction.source for direction in recipe.data.directions]
    known = load_source_bigrams(recipe.tuning.model, data.tokenizer) if recipe.tuning else None
    bigrams = None
    if known or not recipe.tuning:  # the text of a tuned model is that of both trainings, or else unknown
        bigrams = SourceBigrams.build(data.train.source, data.train.direction, sources, known)
    device = str(next(model.parameters()).device)
    calibration = tuple(trainer.validation.pairs(CALIBRATION_PAIRS))
    trained = LoadedModel(model, data.tokenizer, description, device, calibration, bigrams=bigrams)
    pairs = trainer.validation.pairs(CONFIDENCE_PAIRS)
    translator = Translator.from_loaded(trained)
    scores = score_tests(tests, translator)
    changes = (trainer.run / CHANGES).read_text(encoding="utf-8").splitlines()
    card = write_card(recipe, data, trainer.progress, published, scores, changes)
    try:
        confidence = fit_confidence(translator, pairs)
        trained = replace(trained, confidence=confidence)
    except DataError as error:  # the model can still be looked at
        report.print(f"no confidence.json: {error}")
    save_model(folder, trained, card)
    store_loss(folder)
    for direction, scored in scores.items():
        for score in scored.scores:
            report.print(f"{direction} test: {score.name} {score.value:.2f}  {score.signature}")
    report.print(f"the model is in {folder} and translates {recipe.directions}")
    if warning := weak_model_warning(metrics[BLEU]):
        report.print(warning)


def weak_model_warning(bleu: float) -> str:
    """Return a warning for a model with this BLEU on the validation set, or "" if the model may be useful."""
    if bleu >= USEFUL_BLEU:
        return ""
    return (
        f"warning: with {bleu:.2f} BLEU on the validation set the model is not useful; a model of less than "
        f"{USEFUL_BLEU} BLEU needs more updates, more text, or a correct alignment of the two sides (docs/train.md)"
    )


def read_tests(recipe: Recipe, data: PreparedData) -> Tests:
    """Return the pairs of the test corpora, by direction. They are read before training, to report problems early.

    Raises:
        DataError: if a corpus cannot be read, or a sentence is longer than model.max_length.
    """
    tests = {
        direction: [pair for corpus in recipe.data.test for pair in read_corpus(corpus, recipe.data.root, direction)]
        for direction in recipe.data.directions
    }
    limit = recipe.model.max_length
    too_long = [
        f"{pair.file}:{pair.line}: {length} tokens"
        for pairs in tests.values()
        for pair in pairs
        if (length := len(data.tokenizer.encode(pair.source)) + 2) > limit  # the length includes tag and EOS
    ]
    if too_long:
        raise DataError(
            problems(f"test sentences longer than model.max_length, {limit}", too_long)
            + "\nRemove these sentences or raise model.max_length"
        )
    return tests


def score_tests(tests: Tests, translator: Translator) -> dict[Direction, evaluation.Report]:
    """Translate the test corpora, and return the scores of each direction that has any."""
    reports = {}
    for direction, pairs in tests.items():
        if pairs:
            planner = translator.planner(source=direction.source, target=direction.target, sentences=True)
            translations = translator.run(planner, [pair.source for pair in pairs])
            reports[direction] = evaluation.evaluate(
                [translation.text for translation in translations],
                [pair.target for pair in pairs],
                target_language=direction.target,
            )
    return reports
