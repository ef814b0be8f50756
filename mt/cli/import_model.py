"""Convert a model of another toolkit to a model directory, or list models that can be converted.

mt-service import --list                                         # all models of the catalogue, and the installed ones
mt-service import --list en-uk                                   # the models that translate English to Ukrainian
mt-service import opus-mt-en-de                                  # a name that --list shows
mt-service import Helsinki-NLP/opus-mt-en-de@main models/en-de   # any model of the Hugging Face hub
mt-service import nllb-200-distilled-600M --direction en-de --direction de-en
mt-service import path/to/marian models/en-de --direction en-de

Without OUT, a model of the hub becomes OWNER--MODEL in the folder of installed models, from which
`mt-service serve --model hub:MODEL` takes it. The folder is MT_MODELS, or else ~/.local/share/mt-service/models.
An interrupted download is continued by the same command. The data of the catalogue are from the public cards of the
models. The licence of a model is the one on its card; NC marks licences that forbid commercial use.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mt.cli.command import UNLIMITED_WIDTH, CommandParser, command, tell
from mt.errors import LanguageError
from mt.interop.catalogue import Entry, catalogue, installed_folder, is_installed, is_non_commercial, models_folder
from mt.languages import Direction


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    if options.list is not None:
        print_models(options.list)
    else:
        import_module("mt.cli.conversion").convert(options)  # imports torch, which takes seconds
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("import", __doc__)
    parser.add_argument(
        "source",
        nargs="?",
        help="folder of a Marian, MarianMT, M2M-100, NLLB-200 or mBART-50 model, or "
        "OWNER/MODEL[@REVISION] of the hub, or a name that --list shows",
    )
    parser.add_argument(
        "out", type=Path, nargs="?", help="model directory to write; an existing model is replaced (default: see above)"
    )
    add = parser.common.add_argument
    add(
        "--list",
        nargs="?",
        const="",
        metavar="WANTED",
        help="list models: all, or those with this part of a name or this direction",
    )
    add(
        "--direction",
        action="append",
        default=[],
        metavar="L-L",
        help="direction of the model, such as en-de; may be repeated; required if the model's files name none",
    )
    add("--allow-pickle", action="store_true", help="read weights from a pickle file; no code in it is run")
    add(
        "--keep-float",
        action="store_true",
        help="store the float32 weights beside those in int8, for GPUs and tuning (default: store int8 only, unless it "
        "diverges too much from float32)",
    )
    parser.more.add_argument(
        "--as-marian",
        action="store_true",
        help="compute positions and LayerNorm exactly as Marian does (default: as transformers and CTranslate2 do, "
        "which differs slightly)",
    )
    options = parser.parse_args(argv)
    if (options.source is None) == (options.list is None):
        parser.error("give a model, or --list")
    return options


def print_models(wanted: str) -> None:
    """Print the models of the catalogue, and other installed models, whose name contains `wanted`.

    `wanted` may also be a direction; an empty text prints all models.
    """
    folder = models_folder()
    console = Console(width=None) if Console().is_terminal else Console(width=UNLIMITED_WIDTH)
    entries = [entry for entry in catalogue() if matches(entry, wanted)]
    console.print(listing(entries, folder))
    known = {installed_folder(entry.repository, folder) for entry in catalogue()}
    others = [path for path in other_models(folder, known) if wanted.lower() in path.name.lower()]
    for line in [
        *(f"installed, not in the catalogue: {path}" for path in others),
        "Memory: of the weights, in float32 and in int8 (CPU). NC: no commercial use. -: the card states no licence.",
        f"Source: the cards of the repositories on the Hugging Face hub. Installed models: {folder}",
    ]:
        tell(console, line)


def matches(entry: Entry, wanted: str) -> bool:
    """Return whether `wanted` is a part of the name of a model, or a direction that the model translates."""
    if wanted.lower() in entry.repository.lower():
        return True
    try:
        return Direction.parse(wanted) in entry.directions
    except LanguageError:
        return False


def listing(entries: Sequence[Entry], folder: Path) -> Table:
    """Return a table of `entries`. `folder` is the folder of installed models."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "translates", "parameters", "memory", "licence", "installed", "strengths", "source"):
        table.add_column(column, no_wrap=column in ("name", "translates"))
    for entry in entries:
        licence = (entry.licence or "-") + (" NC" if is_non_commercial(entry.licence) else "")
        row = [entry.name, entry.languages, f"{entry.parameters}M", f"{entry.memory(4)}, {entry.memory(1)}", licence]
        installed = "yes" if is_installed(installed_folder(entry.repository, folder)) else "no"
        table.add_row(*row, installed, entry.strengths, entry.repository)
    return table


def other_models(folder: Path, known: set[Path]) -> list[Path]:
    """Return the model directories in `folder`, in alphabetical order, without those in `known`."""
    if not folder.is_dir():
        return []
    models = (path for path in folder.iterdir() if not path.name.startswith(".") and is_installed(path))
    return sorted(path for path in models if path not in known)
