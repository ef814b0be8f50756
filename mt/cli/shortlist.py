"""Create the vocabulary shortlist of a model, if translations are as good with it.

    mt-service shortlist runs/multi30k-en-de/model scripts/recipes/multi30k-en-de.toml
    mt-service shortlist models/opus-mt-en-de --tsv corpus.tsv en,de
    mt-service translate runs/multi30k-en-de/model news.en --no-shortlist

A shortlist makes decoding on a CPU faster: a translation may contain only the target tokens that the shortlist allows
for the tokens of the source. `mt-service train` creates the shortlist of its model. Use this command for imported
models, or to accept more loss of quality. The text is a recipe, whose validation set serves for the comparison, or
tab-separated files, of which about a thousand pairs are held out.

The shortlist is written to shortlist.safetensors in the model directory, if BLEU with it is not lower by more than
--largest-loss, and if it allows nearly all tokens that the model writes without it. Otherwise it is made wider twice,
and then given up. The model card states the figures. The shortlist of a model directory is used
unless --no-shortlist is given.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from mt.checkpoint import LoadedModel, load_model
from mt.cli.command import CommandParser, command, count, stderr_console, tell
from mt.cli.prepare import RUNS, prepare_with_progress, recipe_path
from mt.data.dataset import ParallelDataset
from mt.description import CalibrationPair
from mt.errors import DataError
from mt.languages import DirectionSet
from mt.training.confidence import CONFIDENCE_PAIRS
from mt.training.shortlist import (
    FREQUENT,
    LARGEST_EXCLUDED,
    LARGEST_LOSS,
    TRANSLATIONS,
    ShortlistOptions,
    find_shortlist,
    store_shortlist,
)
from mt.training.shortlist_text import ALIGNED_PAIRS, DirectionText, corpus_text, prepared_text
from mt.training.tuning import read_recipe


@command
def main(argv: Sequence[str]) -> int:
    compute_shortlist(parse(argv), stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("shortlist", __doc__)
    parser.add_argument("model", type=Path, help="model directory")
    parser.add_argument("recipe", type=recipe_path, nargs="?", help="recipe with which the model was trained")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as data.root=/corpora")
    parser.common.add_argument(
        "--tsv",
        nargs=2,
        action="append",
        default=[],
        metavar=("FILE", "LANGUAGES"),
        help="a tab-separated file instead of the recipe, and the languages of its columns, such as en,de; used in all "
        "directions of the model; can be repeated",
    )
    parser.common.add_argument(
        "--largest-loss",
        type=float,
        default=LARGEST_LOSS,
        metavar="X",
        help="accepted decrease of BLEU, as the mean of all directions (%(default)s)",
    )
    parser.common.add_argument(
        "--largest-excluded",
        type=float,
        default=LARGEST_EXCLUDED,
        metavar="X",
        help="accepted share of translations without the shortlist with a token that it does not allow (%(default)s)",
    )
    parser.more.add_argument(
        "--translations",
        type=count,
        default=TRANSLATIONS,
        metavar="N",
        help="allowed tokens per source token at first (%(default)s)",
    )
    parser.more.add_argument(
        "--frequent",
        type=count,
        default=FREQUENT,
        metavar="N",
        help="frequent tokens that are always allowed (%(default)s)",
    )
    parser.more.add_argument(
        "--pairs",
        type=count,
        default=ALIGNED_PAIRS,
        metavar="N",
        help="maximum number of sentence pairs of a direction to align (%(default)s)",
    )
    parser.more.add_argument(
        "--prepared", type=Path, default=RUNS / "prepared", metavar="DIR", help="folder of prepared data (%(default)s)"
    )
    options = parser.parse_intermixed_args(argv)
    if (options.recipe is None) == (not options.tsv):
        parser.error("give a RECIPE, or --tsv FILE LANGUAGES")
    return options


def compute_shortlist(options: argparse.Namespace, console: Console) -> None:
    """Create the shortlist, and write it into the model directory if it is accepted.

    Raises: MTError if the model, the recipe or a file cannot be used.
    """
    loaded = load_model(options.model)
    if options.tsv:
        directions = loaded.description.directions
        texts, pairs = corpus_text(loaded.tokenizer, options.tsv, directions, CONFIDENCE_PAIRS, options.pairs)
    else:
        texts, pairs = _recipe_text(options, loaded, console)
    report = partial(tell, console)
    how = ShortlistOptions(options.translations, options.frequent, options.largest_loss, options.largest_excluded)
    result = find_shortlist(loaded, texts, pairs, how, report=report)
    store_shortlist(options.model, loaded.tokenizer, result)
    report(result.summary)


def _recipe_text(
    options: argparse.Namespace, loaded: LoadedModel, console: Console
) -> tuple[list[DirectionText], list[CalibrationPair]]:
    """Return the training text of a recipe, and pairs of its validation set. Raises: DataError if a direction lacks."""
    recipe = read_recipe(options.recipe, options.overrides)
    directions = loaded.description.directions
    unknown = [str(d) for d in directions if d not in recipe.data.directions]
    if unknown:
        raise DataError(
            f"{options.recipe} has no text for the model's {', '.join(unknown)}; accepted: a recipe with all "
            "directions of the model"
        )
    data = prepare_with_progress(recipe, options.prepared, console)
    texts = prepared_text(loaded.tokenizer, data, recipe.data.directions, directions, options.pairs)
    return texts, _valid_pairs(data.valid, recipe.data.directions, directions)


def _valid_pairs(valid: ParallelDataset, known: DirectionSet, directions: DirectionSet) -> list[CalibrationPair]:
    """Return about `CONFIDENCE_PAIRS` evenly spaced pairs of `directions`. `known` are the directions of the recipe."""
    numbers = {list(known).index(direction): direction for direction in directions}
    rows = np.flatnonzero(np.isin(valid.direction, list(numbers)))
    rows = rows[:: max(1, -(-len(rows) // CONFIDENCE_PAIRS))]
    texts = zip(valid.direction[rows], valid.texts("source", rows), valid.texts("target", rows), strict=True)
    return [CalibrationPair(direction=numbers[int(n)], source=source, target=target) for n, source, target in texts]
