"""Train a model from a recipe: `torchrun --nproc-per-node N scripts/train.py ...` for N GPUs or processes."""

import argparse
import sys
from pathlib import Path

import torch
from prepare import RUNS, prepare_with_progress
from rich.console import Console

from mt import evaluation
from mt.checkpoint import save_model
from mt.config import Recipe, load_recipe, save_recipe
from mt.data.dataset import Prepared, load_prepared, prepared_folder, read_corpus
from mt.distributed import World, barrier, joined
from mt.engine.translator import Translator, select_device
from mt.errors import MTError, TrainingError
from mt.training.card import write_card
from mt.training.report import Reporter
from mt.training.trainer import Trainer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path, help="a recipe, such as scripts/recipes/multi30k-en-de.toml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as training.max_updates=1000")
    parser.add_argument("--run", type=Path, help=f"the run's folder ({RUNS}/<recipe's name>-<directions>)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint, if there is one")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda (%(default)s)")
    parser.add_argument("--threads", type=int, help="CPU threads (all cores)")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    try:
        if arguments.threads:
            torch.set_num_threads(arguments.threads)
        recipe = load_recipe(arguments.recipe, arguments.overrides)
        run = arguments.run or RUNS / recipe.run_name
        device = select_device(arguments.device)
        with joined(device.type) as world:
            if device.type == "cuda":
                device = torch.device("cuda", world.local_rank)
                torch.cuda.set_device(device)
            train(recipe, run, device, world, arguments.resume, console)
    except MTError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("stopped; --resume goes on from the last checkpoint", style="yellow")
        return 130
    return 0


def train(recipe: Recipe, run: Path, device: torch.device, world: World, resume: bool, console: Console) -> None:
    """Prepare the data if need be, train, and write the model directory."""
    claim_run(recipe, run, resume, world)
    if world.leads:
        prepare_with_progress(recipe, RUNS / "prepared", console)
    barrier(world)
    data = load_prepared(prepared_folder(recipe, RUNS / "prepared"))
    trainer = Trainer(recipe, data, run, device, world)
    resumed = resume and trainer.resume()
    with Reporter(run, recipe.run_name, recipe.training.max_updates, trainer.progress.updates, not world.leads) as report:
        if resumed:
            report.say(f"resumed at update {trainer.progress.updates:,}")
        report.say(
            f"{sum(p.numel() for p in trainer.model.parameters()):,} parameters, {len(data.train):,} pairs, "
            f"{world.size} process(es) on {device}, {torch.get_num_threads()} thread(s) each"
        )
        trainer.train(report)
        if world.leads:
            publish(recipe, data, trainer, report)


def claim_run(recipe: Recipe, run: Path, resume: bool, world: World) -> None:
    """Keep the recipe as used beside the run. Raises TrainingError if another run's results would be overwritten."""
    kept = run / "recipe.toml"
    if kept.exists() and not resume:
        raise TrainingError(f"{run} holds a run already; accepted: --resume to go on with it, or another --run")
    if kept.exists():
        before = load_recipe(kept)
        changed = [key for key in ("seed", "data", "cleaning", "tokenizer", "model") if getattr(before, key) != getattr(recipe, key)]
        if changed:
            raise TrainingError(
                f"{run} was begun with other values in {', '.join(changed)}; accepted: those of {kept}, or another --run"
            )
    if world.leads:
        run.mkdir(parents=True, exist_ok=True)
        save_recipe(recipe, kept)


def publish(recipe: Recipe, data: Prepared, trainer: Trainer, report: Reporter) -> None:
    """Choose the weights, score them on the test set and write the model directory."""
    weights, origin, valid_bleu = trainer.finish(report)
    trainer.model.load_state_dict(weights)
    trainer.model.eval()
    translator = Translator(trainer.model, data.tokenizer, trainer.describe())
    scores = score_test_sets(recipe, translator)
    card = write_card(recipe, data, trainer.progress, origin, valid_bleu, scores)
    save_model(trainer.run / "model", weights, data.tokenizer, trainer.describe(), card)
    for direction, scored in scores.items():
        for score in scored.scores:
            report.say(f"{direction} test: {score.name} {score.value:.2f}  {score.signature}")
    report.say(f"the model is in {trainer.run / 'model'}")


def score_test_sets(recipe: Recipe, translator: Translator) -> dict[str, evaluation.Report]:
    """A report for each direction that has test corpora."""
    reports = {}
    for direction in recipe.data.directions:
        pairs = [pair for corpus in recipe.data.test for pair in read_corpus(corpus, recipe.data.root, direction)]
        if pairs:
            source, target = direction.split("-")
            translations = translator.translate([pair.source for pair in pairs], source=source, target=target)
            reports[direction] = evaluation.evaluate(
                [translation.text for translation in translations],
                [pair.target for pair in pairs],
                target_language=target,
            )
    return reports


if __name__ == "__main__":
    sys.exit(main())
