"""Clean the corpora of a recipe, train its tokenizer and encode the text.

`mt-service train` does this too, if necessary. Runs share prepared data if their recipes have equal data settings.

--text DIR also writes the tokenizer and, for each pair of languages such as en-de, the text with one sentence per line:
the first training corpus to train1.en-de.en and train1.en-de.de, the second to train2 and so on; the validation set to
valid.en-de.en, valid.en-de.de, and with both sides to valid.en-de.tsv. --sample N also writes at most N evenly spaced
pairs of each training corpus, to sample1, sample2 and so on.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mt.cli.command import RUNS, CommandParser, command, count, recipe_path, stderr_console, tell, warn
from mt.config import Recipe
from mt.data.dataset import PreparedData, load_prepared
from mt.data.export import export_text
from mt.data.preparation import DROPPED, prepare
from mt.recipe import read_values
from mt.training.tuning import complete_recipe


@command
def main(argv: Sequence[str]) -> int:
    parser = CommandParser("prepare", __doc__)
    parser.add_argument("recipe", type=recipe_path, help="recipe, such as scripts/recipes/multi30k-en-de.toml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as tokenizer.vocabulary_size=4000")
    parser.common.add_argument(
        "--prepared", type=Path, metavar="DIR", default=RUNS / "prepared", help="folder of prepared data (%(default)s)"
    )
    parser.more.add_argument("--text", type=Path, metavar="DIR", help="also write tokenizer and cleaned text to DIR")
    parser.more.add_argument("--sample", type=count, metavar="N", help="also write N pairs of each corpus to --text")
    options = parser.parse_intermixed_args(argv)
    if options.sample is not None and options.text is None:
        parser.error(f"--sample is {options.sample} and --text is missing; accepted: --sample with --text")
    console = stderr_console()
    values, known_problems = read_values(options.recipe, options.overrides)
    values.pop("build", None)  # the section of `mt-service build`, which does not change the preparation
    recipe = complete_recipe(options.recipe, values, known_problems)
    data = prepare_with_progress(recipe, options.prepared, console)
    show_summary(data, console)
    if options.text is not None:
        export_text(data, recipe.data.train, options.text, options.sample)
    return 0


def prepare_with_progress(recipe: Recipe, out: Path, console: Console) -> PreparedData:
    """Prepare the data of a recipe in a folder below `out`, and return the data. Print progress and warnings."""
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
    data = load_prepared(folder)
    for warning in data.meta["warnings"]:
        warn(console, warning)
    return data


def show_summary(data: PreparedData, console: Console) -> None:
    tell(console, f"{data.folder}: {len(data.tokenizer):,} pieces")
    table = Table(
        "direction",
        "reason",
        "dropped pairs",
        "example",
        title=f"{len(data.train):,} training and {len(data.valid):,} validation pairs",
        title_justify="left",
    )
    dropped = data.meta["dropped"]
    for direction, rows in dropped.items():
        for row in rows:
            table.add_row(direction, row["reason"], f"{row['count']:,}", "".join(row["examples"][:1])[:100])
        if not rows:
            table.add_row(direction, "none", "0", "")
    console.print(table, markup=False)
    if any(dropped.values()):
        path = data.folder / DROPPED
        tell(console, f"all dropped pairs: {path}")
