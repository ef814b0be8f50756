"""Make a model's shortlist: which tokens may come out of a sentence, learnt from the training text of a recipe.

    python scripts/shortlist.py runs/multi30k-en-de/model scripts/recipes/multi30k-en-de.toml
    python scripts/translate.py runs/multi30k-en-de/model news.en --shortlist

It is written into the model directory as shortlist.safetensors, and used where it is asked for. A smaller one is faster
and may cost quality: scripts/evaluate.py with --shortlist and without says how much.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from prepare import RUNS, prepare_with_progress
from rich.console import Console
from shell.command import command

from mt.checkpoint import load_model, save_shortlist
from mt.data.dataset import ParallelDataset, Prepared
from mt.data.lexicon import Flat, Lexicon, learn_lexicon
from mt.engine.translator import select_device
from mt.errors import DataError, ModelError
from mt.kernels.shortlist import Shortlist
from mt.tokenizer import EOS, Tokenizer
from mt.training.tuning import read_recipe


@command
def main(arguments: Sequence[str]) -> int:
    run(parse(arguments), Console(stderr=True))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", type=Path, help="a model directory")
    parser.add_argument("recipe", type=Path, help="the recipe that it was trained by")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as data.root=/corpora")
    parser.add_argument(
        "--frequent", type=int, default=200, metavar="N", help="target tokens that always may come out (%(default)s)"
    )
    parser.add_argument(
        "--translations", type=int, default=50, metavar="N", help="of each source token, beside those (%(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=1_000_000, metavar="N", help="at most so many, evenly spaced (%(default)s)"
    )
    parser.add_argument(
        "--prepared", type=Path, default=RUNS / "prepared", metavar="DIR", help="prepared data (%(default)s)"
    )
    options = parser.parse_intermixed_args(arguments)
    for name in ("frequent", "translations", "pairs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; accepted: at least 1")
    return options


def run(options: argparse.Namespace, console: Console) -> None:
    """Raises MTError."""
    loaded = load_model(options.model, select_device("cpu"))
    pieces, targets = (side.pieces(range(len(side))) for side in (loaded.tokenizer, loaded.tokenizer.target))
    if pieces != targets:
        raise ModelError(f"{options.model}: source and target have a vocabulary each; accepted: one for both")
    recipe = read_recipe(options.recipe, options.overrides)
    unknown = [direction for direction in loaded.description.directions if direction not in recipe.data.directions]
    if unknown:
        raise DataError(
            f"{options.recipe} has no text for {', '.join(unknown)}; accepted: a recipe with the model's directions"
        )
    data = prepare_with_progress(recipe, options.prepared, console)
    frequent: set[int] = set()
    translations: set[tuple[int, int]] = set()
    for direction in loaded.description.directions:  # all of them share the list
        chosen = np.flatnonzero(data.train.direction == recipe.data.directions.index(direction))
        chosen = chosen[:: -(-len(chosen) // options.pairs)]
        with console.status(f"aligning {len(chosen):,} pairs, {direction}"):
            lexicon = learn(loaded.tokenizer, data, chosen)
        common = lexicon.frequent(options.frequent).tolist()
        frequent.update(common)
        likeliest = lexicon.best(options.translations, besides=common)
        translations.update(zip(*(ids.tolist() for ids in likeliest), strict=True))
    shortlist = Shortlist.build(pieces, EOS, frequent, translations)
    save_shortlist(options.model, shortlist, loaded.tokenizer)
    console.print(described(shortlist, loaded.tokenizer, data.valid), markup=False, highlight=False, soft_wrap=True)


def learn(tokenizer: Tokenizer, data: Prepared, chosen: np.ndarray) -> Lexicon:
    """From the prepared ids if they are this tokenizer's; else, as with an imported model, the text is encoded anew."""
    if tokenizer.digest == data.tokenizer.digest:
        return learn_lexicon(data.train.source, data.train.target, chosen, len(tokenizer))
    source = encoded(tokenizer, data.train, "source", chosen)
    target = encoded(tokenizer.target, data.train, "target", chosen)
    return learn_lexicon(source, target, np.arange(len(chosen)), len(tokenizer))


def encoded(tokenizer: Tokenizer, data: ParallelDataset, side: str, chosen: np.ndarray) -> Flat:
    return Flat.of(tokenizer.encode_many(data.texts(side, chosen)))


def described(shortlist: Shortlist, tokenizer: Tokenizer, valid: ParallelDataset) -> str:
    """How large it is on the validation text, and how much of the references it has."""
    everything = np.arange(len(valid))
    sizes, tokens, covered = [], 0, 0
    for source, target in zip(
        tokenizer.encode_many(valid.texts("source", everything)),
        tokenizer.target.encode_many(valid.texts("target", everything)),
        strict=True,
    ):
        ids = shortlist.ids(source)
        sizes.append(len(ids))
        tokens += len(target)
        covered += int(np.isin(target, ids.numpy()).sum())
    return (
        f"of {shortlist.vocabulary_size:,} tokens {len(shortlist.always):,} always may come out; on validation text "
        f"{np.mean(sizes):,.0f} a sentence, among them {covered / max(tokens, 1):.2%} of the references' tokens"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
