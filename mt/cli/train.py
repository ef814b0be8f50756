"""Train a model from a recipe.

    mt-service train scripts/recipes/multi30k-en-de.toml
    mt-service train my.toml training.max_updates=1000 --run runs/short
    torchrun --nproc-per-node 2 -m mt train my.toml      # two GPUs

On a CPU, one process trains on each core. The run directory holds the recipe, checkpoints, metrics and the model.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mt.cli.command import RUNS, CommandParser, command, count, recipe_path
from mt.recipe import read_values, validate_recipe

MAX_PROCESSES = 4  # with more processes, the part of an update that each one computes is too small


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    values, known_problems = read_values(options.recipe, options.overrides)
    if "tuning" not in values:  # with [tuning], the recipe is checked together with the model to tune
        validate_recipe(options.recipe, values, known_problems)
    return int(import_module("mt.cli.training").run_training(options, argv))  # imports torch, which takes seconds


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("train", __doc__)
    parser.add_argument("recipe", type=recipe_path, help="recipe, such as scripts/recipes/multi30k-en-de.toml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as training.max_updates=1000")
    add = parser.common.add_argument
    add("--run", type=Path, metavar="DIR", help=f"folder of the run (default: {RUNS}/NAME-DIRECTIONS)")
    add(
        "--resume",
        action="store_true",
        help="continue from the last checkpoint; if no checkpoint exists, start a new run",
    )
    parser.add_device()
    more = parser.more.add_argument
    more("--prepared", type=Path, default=RUNS / "prepared", metavar="DIR", help="prepared data (%(default)s)")
    more(
        "--processes",
        type=count,
        metavar="N",
        help=f"number of processes on a CPU (default: one per core, at most {MAX_PROCESSES})",
    )
    more(
        "--threads", type=count, metavar="N", help="CPU threads of each process; without --processes, one process runs"
    )
    return parser.parse_intermixed_args(argv)
