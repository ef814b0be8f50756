"""List models of the Hugging Face hub that can be imported, and the installed models.

mt-service models              # the whole catalogue
mt-service models en-uk        # models that translate English to Ukrainian
mt-service models nllb         # models whose name contains nllb

`mt-service import NAME` installs a model; `mt-service serve --model hub:NAME` serves it, after installing it if
necessary. For a model of the hub that is not in the catalogue, NAME is OWNER/MODEL.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mt.cli.command import UNLIMITED_WIDTH, CommandParser, command, tell
from mt.errors import LanguageError, ModelError
from mt.interop.catalogue import Entry, catalogue, installed_folder, is_installed, is_non_commercial, models_folder
from mt.languages import Direction


@command
def main(argv: Sequence[str]) -> int:
    parser = CommandParser("models", __doc__)
    parser.add_argument("wanted", nargs="?", default="", help="direction such as en-de, or a part of a name")
    parser.common.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="folder of installed models (default: MT_MODELS, or else ~/.local/share/mt-service/models)",
    )
    options = parser.parse_args(argv)
    folder = options.models or models_folder()
    console = Console(width=None) if Console().is_terminal else Console(width=UNLIMITED_WIDTH)
    entries = [entry for entry in catalogue() if matches(entry, options.wanted)]
    known = {installed_folder(entry.repository, folder) for entry in catalogue()}
    others = [path for path in other_models(folder, known) if options.wanted.lower() in path.name.lower()]
    if not entries and not others:
        accepted = "a direction such as en-de, or a part of a name that `mt-service models` lists"
        raise ModelError(f"no model is called or translates {options.wanted!r}; accepted: {accepted}")
    console.print(listing(entries, folder))
    for line in [
        *(f"installed, not in the catalogue: {path}" for path in others),
        "Memory: of the weights, in float32 and in int8 (CPU). NC: no commercial use. -: the card states no licence.",
        "Quality: depends on your text; measure it there, by `mt-service import NAME` and `mt-service evaluate`.",
        f"Source: the cards of the repositories on the Hugging Face hub. Installed models: {folder}",
    ]:
        tell(console, line)
    return 0


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
