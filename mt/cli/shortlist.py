"""Compute the vocabulary shortlist of a model from the training text of a recipe.

    mt-service shortlist runs/multi30k-en-de/model scripts/recipes/multi30k-en-de.toml
    mt-service translate runs/multi30k-en-de/model news.en --shortlist

A shortlist makes decoding on a CPU faster: a translation may contain only the target tokens that the shortlist allows
for the tokens of the source. The shortlist is written to shortlist.safetensors in the model directory.
`mt-service translate` uses it only with --shortlist. A smaller shortlist is faster but may lower the quality: compare
`mt-service evaluate` with and without --shortlist.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from mt.checkpoint import load_model
from mt.cli.command import CommandParser, command, count, stderr_console
from mt.cli.prepare import RUNS, prepare_with_progress, recipe_path
from mt.data.dataset import ParallelDataset, PreparedData
from mt.data.translation_table import FlatSequences, TranslationTable, learn_translation_table
from mt.errors import DataError, ModelError
from mt.kernels.shortlist import Shortlist, save_shortlist
from mt.tokenizer import EOS, Tokenizer
from mt.training.tuning import read_recipe


@command
def main(argv: Sequence[str]) -> int:
    compute_shortlist(parse(argv), stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("shortlist", __doc__)
    parser.add_argument("model", type=Path, help="model directory")
    parser.add_argument("recipe", type=recipe_path, help="recipe with which the model was trained")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as data.root=/corpora")
    parser.common.add_argument(
        "--translations", type=count, default=50, metavar="N", help="allowed tokens per source token (%(default)s)"
    )
    parser.common.add_argument(
        "--frequent", type=count, default=200, metavar="N", help="frequent tokens that are always allowed (%(default)s)"
    )
    parser.more.add_argument(
        "--pairs",
        type=count,
        default=1_000_000,
        metavar="N",
        help="maximum number of sentence pairs to align (%(default)s)",
    )
    parser.more.add_argument(
        "--prepared", type=Path, default=RUNS / "prepared", metavar="DIR", help="folder of prepared data (%(default)s)"
    )
    return parser.parse_intermixed_args(argv)


def compute_shortlist(options: argparse.Namespace, console: Console) -> None:
    """Compute the shortlist, and write it into the model directory.

    Raises: MTError if the model or the recipe cannot be used.
    """
    loaded = load_model(options.model)
    pieces, targets = (side.pieces(range(len(side))) for side in (loaded.tokenizer, loaded.tokenizer.target))
    if pieces != targets:
        raise ModelError(
            f"{options.model}: source and target vocabularies differ; accepted: a model with one vocabulary"
        )
    recipe = read_recipe(options.recipe, options.overrides)
    unknown = [str(d) for d in loaded.description.directions if d not in recipe.data.directions]
    if unknown:
        raise DataError(
            f"{options.recipe} has no text for the model's {', '.join(unknown)}; accepted: a recipe with all "
            "directions of the model"
        )
    data = prepare_with_progress(recipe, options.prepared, console)
    frequent: set[int] = set()
    translations: set[tuple[int, int]] = set()
    for direction in loaded.description.directions:  # one shortlist serves all directions
        rows = np.flatnonzero(data.train.direction == list(recipe.data.directions).index(direction))
        rows = rows[:: -(-len(rows) // options.pairs)]
        with console.status(f"aligning {len(rows):,} pairs, {direction}"):
            lexicon = learn_table(loaded.tokenizer, data, rows)
        common = lexicon.frequent(options.frequent).tolist()
        frequent.update(common)
        likeliest = lexicon.best(options.translations, besides=common)
        translations.update(zip(*(ids.tolist() for ids in likeliest), strict=True))
    shortlist = Shortlist.build(pieces, EOS, frequent, translations)
    save_shortlist(options.model, shortlist, loaded.tokenizer)
    console.print(describe(shortlist, loaded.tokenizer, data.valid), markup=False, highlight=False, soft_wrap=True)


def learn_table(tokenizer: Tokenizer, data: PreparedData, rows: np.ndarray) -> TranslationTable:
    """Learn a translation table from the training pairs with the indices `rows`.

    If `tokenizer` differs from the tokenizer of `data`, the pairs are encoded again.
    """
    if tokenizer.digest == data.tokenizer.digest:
        return learn_translation_table(data.train.source, data.train.target, rows, len(tokenizer))
    source = FlatSequences.from_lists(tokenizer.encode_many(data.train.texts("source", rows)))
    target = FlatSequences.from_lists(tokenizer.target.encode_many(data.train.texts("target", rows)))
    return learn_translation_table(source, target, np.arange(len(rows)), len(tokenizer))


def describe(shortlist: Shortlist, tokenizer: Tokenizer, valid: ParallelDataset) -> str:
    """Return a text with the mean number of tokens that the shortlist allows for a sentence of the validation set.

    The text also states the percentage of the tokens of the references that the shortlist allows.
    """
    rows = np.arange(len(valid))
    sizes, tokens, covered = [], 0, 0
    for source, target in zip(
        tokenizer.encode_many(valid.texts("source", rows)),
        tokenizer.target.encode_many(valid.texts("target", rows)),
        strict=True,
    ):
        ids = shortlist.ids(source)
        sizes.append(len(ids))
        tokens += len(target)
        covered += int(np.isin(target, ids).sum())
    return (
        f"{len(shortlist.always):,} of {shortlist.vocabulary_size:,} tokens are always allowed; on validation text, "
        f"{np.mean(sizes):,.0f} tokens per sentence with {covered / max(tokens, 1):.2%} of the reference tokens"
    )
