"""Read a recipe's corpora, clean them, train its tokenizer and encode the text, once for all runs of it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from shell.command import command

from mt.config import Recipe
from mt.data.dataset import Prepared, load_prepared, prepare
from mt.training.tuning import read_recipe

RUNS = Path("runs")


@command
def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path, help="a recipe, such as scripts/recipes/multi30k-en-de.toml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as tokenizer.vocabulary_size=4000")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=RUNS / "prepared", help="where prepared data goes (%(default)s)"
    )
    options = parser.parse_intermixed_args(arguments)
    console = Console(stderr=True)
    recipe = read_recipe(options.recipe, options.overrides)
    show(prepare_with_progress(recipe, options.out, console), console)
    return 0


def prepare_with_progress(recipe: Recipe, out: Path, console: Console) -> Prepared:
    """`prepare` with a line that says what it does and how fast; the result, loaded."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,} pairs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("read", total=None)
        folder = prepare(
            recipe,
            out,
            threads=os.cpu_count() or 1,
            progress=lambda stage, pairs: bar.update(task, description=stage, completed=pairs),
        )
    return load_prepared(folder)


def show(data: Prepared, console: Console) -> None:
    """What there is, and what was dropped and why."""
    console.print(f"{data.folder}: {len(data.tokenizer):,} pieces", markup=False, highlight=False, soft_wrap=True)
    table = Table(
        "direction",
        "dropped because of",
        "pairs",
        "for example",
        title=f"{len(data.train):,} training and {len(data.valid):,} validation pairs",
    )
    dropped = data.meta["dropped"]
    assert isinstance(dropped, dict)
    for direction, rows in dropped.items():
        for row in rows:
            table.add_row(direction, row["reason"], f"{row['count']:,}", "".join(row["examples"][:1])[:100])
        if not rows:
            table.add_row(direction, "nothing", "0", "")
    console.print(table, markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
