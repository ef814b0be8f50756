"""Train a model from a recipe: on a CPU with a process a core; `torchrun --nproc-per-node N -- scripts/train.py ...`
for N GPUs."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from prepare import RUNS, prepare_with_progress
from rich.console import Console
from shell.command import command

from mt import evaluation
from mt.checkpoint import CALIBRATION_PAIRS, Description, LoadedModel, save_model
from mt.config import Recipe
from mt.data.corpus import Pair
from mt.data.dataset import Prepared, load_prepared, prepared_folder, read_corpus
from mt.distributed import SEPARATE_STORES, World, accompanied, barrier, joined, meets_the_dead, restarts
from mt.engine.language import LanguageScorer, perplexity
from mt.engine.translator import Translator, select_device
from mt.errors import DataError, TrainingError, problems
from mt.locks import held
from mt.model.transformer import LanguageModel
from mt.recipe import save_recipe
from mt.training.card import Perplexity, Published, write_card, write_language_model_card
from mt.training.confidence import CONFIDENCE_PAIRS, fit_confidence
from mt.training.memory import keep_freed_memory
from mt.training.report import Reporter
from mt.training.state import trained
from mt.training.trainer import Trainer
from mt.training.tuning import read_recipe
from mt.training.validation import TranslationValidation

UNCHANGEABLE = ("seed", "data", "cleaning", "tokenizer", "model", "tuning")  # parts of a recipe, once a run has begun
MOST_PROCESSES = 4  # with more, each has too small a part of an update
Tests = dict[str, list[Pair]]  # by direction


@command
def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path, help="a recipe, such as scripts/recipes/multi30k-en-de.toml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as training.max_updates=1000")
    parser.add_argument(
        "--run", type=Path, metavar="DIR", help=f"the run's folder ({RUNS}/<recipe's name>-<directions>)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint, if there is one")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda (%(default)s)")
    parser.add_argument(
        "--processes", type=int, metavar="N", help=f"on a CPU (a process a core, up to {MOST_PROCESSES})"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="of each process; given alone, of one process")
    options = parser.parse_intermixed_args(arguments)
    for name in ("processes", "threads"):
        if (value := getattr(options, name)) is not None and value < 1:
            parser.error(f"--{name} is {value}; accepted: at least 1")
    console = Console(stderr=True)
    check_restarts(options.resume)
    recipe = read_recipe(options.recipe, options.overrides)
    run = options.run or RUNS / recipe.run_name
    device = select_device(options.device)
    processes = share_cores(device, options.processes, options.threads)
    keep_freed_memory()
    helpers = accompanied([sys.executable, __file__, *arguments], processes)
    try:
        with helpers, joined(device.type) as world, alone_in(run, world):
            if device.type == "cuda":
                device = torch.device("cuda", world.local_rank if world.size > 1 else device.index or 0)
                torch.cuda.set_device(device)
            finished = train(recipe, run, device, world, options.resume, console)
    except KeyboardInterrupt:
        finished = False
    if not finished:
        console.print("stopped; --resume goes on from the last checkpoint", style="yellow")
        return 130
    return 0


def share_cores(device: torch.device, processes: int | None, threads: int | None) -> int:
    """How many processes to train in, this one included, whose number of threads is set here.

    Processes of one thread are faster than threads of one process: they meet once an update, not at each operation.
    """
    started = "RANK" in os.environ  # by torchrun, or by the first process
    if processes is None or started:
        alone = started or threads is not None or device.type != "cpu"
        processes = 1 if alone else min(cores(), MOST_PROCESSES)
    if threads is None and processes > 1:
        threads = max(1, cores() // processes)
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for the helpers
    if threads is not None:
        torch.set_num_threads(threads)
    return processes


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train(recipe: Recipe, run: Path, device: torch.device, world: World, resume: bool, console: Console) -> bool:
    """Prepare the data if need be, train, and write the model directory; False if a signal ended it before that."""
    kept = run / "recipe.toml"
    check_run(recipe, kept, resume)
    if world.leads:
        prepare_with_progress(recipe, RUNS / "prepared", console)
    barrier(world)
    data = load_prepared(prepared_folder(recipe, RUNS / "prepared"))
    tests = read_tests(recipe, data)
    if world.leads:
        keep_recipe(recipe, kept)
    trainer = Trainer(recipe, data, run, device, world)
    resumed = resume and trainer.resume()
    with Reporter(
        run, recipe.run_name, recipe.training.max_updates, trainer.progress.updates, not world.leads
    ) as report:
        if resumed:
            report.say(f"resumed at update {trainer.progress.updates:,}")
        parameters = sum(p.numel() for p in trainer.model.parameters())
        changing = sum(p.numel() for p in trained(trainer.model).values())
        epoch = round(float(trainer.batches.weights.sum()))
        report.say(
            f"{parameters:,} parameters{f', {changing:,} of them trained' if changing < parameters else ''}, "
            f"{len(trainer.batches.usable):,} of {len(data.train):,} pairs are short enough, "
            f"{f'an epoch has about {epoch:,}, ' if epoch != len(trainer.batches.usable) else ''}"
            f"{world.size} process(es) on {device}, {torch.get_num_threads()} thread(s) each, "
            f"in {trainer.precision}"
        )
        with signals_stop(trainer, world):
            finished = trainer.train(report)
        if finished and world.leads:
            publish(recipe, data, tests, trainer, report)
    return finished


@contextmanager
def signals_stop(trainer: Trainer, world: World) -> Iterator[None]:
    """SIGINT (Ctrl-C) and SIGTERM end training after the update in progress; in one process a second SIGINT at once.

    torchrun hands on to its processes a signal that they may have had already, so there the second changes nothing.
    """
    heard: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if signal.SIGINT in heard and number == signal.SIGINT and world.size == 1:
            raise KeyboardInterrupt
        heard.append(number)
        trainer.stop()
        os.write(sys.stderr.fileno(), b"\nstopping: the update in progress ends, and a checkpoint is written\n")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_restarts(resume: bool) -> None:
    """Raises TrainingError if torchrun is to start this again after a failure, which then would not work."""
    found = []
    if not resume:
        found.append("the run would be in its own way; accepted: --resume, which begins a run where there is none")
    if meets_the_dead():
        found.append(f"new processes would look for dead ones; accepted: {SEPARATE_STORES} torchrun ...")
    if restarts() and found:
        raise TrainingError(problems("torchrun --max-restarts cannot start this again", found))


@contextmanager
def alone_in(run: Path, world: World) -> Iterator[None]:
    """Keep other processes out of a run's folder. Raises TrainingError if one is in it."""
    if not world.leads:
        yield
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    with held(run) as mine:
        if not mine:
            raise TrainingError(f"another process trains in {run}; accepted: its end, or another --run")
        yield


def check_run(recipe: Recipe, kept: Path, resume: bool) -> None:
    """Raises TrainingError if another run, whose recipe is `kept`, would be overwritten or gone on with."""
    if not kept.exists():
        return
    if not resume:
        raise TrainingError(f"{kept.parent} holds a run already; accepted: --resume to go on with it, or another --run")
    before = read_recipe(kept)
    changed = [key for key in UNCHANGEABLE if getattr(before, key) != getattr(recipe, key)]
    if before.training.optimizer != recipe.training.optimizer:  # what the one remembers is of no use to the other
        changed.append("training.optimizer")
    if changed:
        raise TrainingError(
            f"{kept.parent} was begun with other values in {', '.join(changed)}; accepted: those of {kept}, "
            "or another --run"
        )


def keep_recipe(recipe: Recipe, kept: Path) -> None:
    """Write the recipe as used beside the run, or as it is used from now on."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    aside = kept.with_suffix(".part")
    save_recipe(recipe, aside)
    aside.replace(kept)


def publish(recipe: Recipe, data: Prepared, tests: Tests, trainer: Trainer, report: Reporter) -> None:
    """Choose the weights, score them on the test set and write the model directory."""
    weights, origin, figures = trainer.finish(report)
    published = Published(origin, figures, str(trainer.device))
    model, about, folder = trainer.model_of(weights), trainer.describe(), trainer.run / "model"
    if isinstance(model, LanguageModel):
        perplexities = score_lines(tests, data, LanguageScorer(model, data.tokenizer, recipe.data.directions[0]))
        card = write_language_model_card(recipe, data, trainer.progress, published, perplexities)
        save_model(folder, weights, data.tokenizer, about, card)
        for each in perplexities:
            report.say(f"{each.text}: perplexity {each.value:.2f} of {each.tokens:,} tokens")
    else:
        assert isinstance(about, Description) and isinstance(trainer.validation, TranslationValidation)
        translator = Translator.over(LoadedModel(model, data.tokenizer, about))
        scores = score_tests(tests, translator)
        card = write_card(recipe, data, trainer.progress, published, scores)
        confidence = fit_confidence(translator, trainer.validation.pairs(CONFIDENCE_PAIRS))
        calibration = trainer.validation.pairs(CALIBRATION_PAIRS)
        save_model(folder, weights, data.tokenizer, about, card, calibration, confidence)
        for direction, scored in scores.items():
            for score in scored.scores:
                report.say(f"{direction} test: {score.name} {score.value:.2f}  {score.signature}")
    report.say(f"the model is in {folder}")


def read_tests(recipe: Recipe, data: Prepared) -> Tests:
    """The test corpora. Read before training, so that what is wrong with them is not found after it.

    Raises DataError for a corpus that cannot be used, or sentences that are longer than the model can read.
    """
    tests = {
        direction: [pair for corpus in recipe.data.test for pair in read_corpus(corpus, recipe.data.root, direction)]
        for direction in recipe.data.directions
    }
    limit, alone = recipe.model.max_length, recipe.data.language is not None  # alone: no sources
    too_long = [
        f"{pair.file}:{pair.line}: {length} tokens"
        for pairs in tests.values()
        for pair in pairs
        if (length := len(data.tokenizer.encode(pair.target if alone else pair.source)) + 2) > limit  # a tag, and EOS
    ]
    if too_long:
        raise DataError(
            problems(f"test sentences longer than model.max_length, {limit}", too_long)
            + "\naccepted: shorter ones, or a higher model.max_length"
        )
    return tests


def score_lines(tests: Tests, data: Prepared, scorer: LanguageScorer) -> list[Perplexity]:
    """Of the validation set's lines that the model can read, and of the test corpora if there are any."""
    valid = data.valid.texts("target", range(len(data.valid)))
    texts = {
        "validation": [text for text in valid if scorer.fits(text)],
        "test": [pair.target for pairs in tests.values() for pair in pairs],
    }
    scored = {name: scorer.score(lines) for name, lines in texts.items() if lines}
    return [Perplexity(name, sum(each.tokens for each in lines), perplexity(lines)) for name, lines in scored.items()]


def score_tests(tests: Tests, translator: Translator) -> dict[str, evaluation.Report]:
    """A report for each direction that has test corpora."""
    reports = {}
    for direction, pairs in tests.items():
        if pairs:
            source, target = direction.split("-")
            translations = translator.translate(
                [pair.source for pair in pairs], source=source, target=target, sentences=True
            )
            reports[direction] = evaluation.evaluate(
                [translation.text for translation in translations],
                [pair.target for pair in pairs],
                target_language=target,
            )
    return reports


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
