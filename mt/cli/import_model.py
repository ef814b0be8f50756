"""Convert a model of another toolkit to a model directory.

mt-service import opus-mt-en-de                                  # a name that `mt-service models` lists
mt-service import Helsinki-NLP/opus-mt-en-de@main models/en-de   # any model of the Hugging Face hub
mt-service import nllb-200-distilled-600M --direction en-de --direction de-en
mt-service import path/to/marian models/en-de --direction en-de

Without OUT, a model of the hub becomes OWNER--MODEL in the folder of installed models, from which
`mt-service serve --model hub:MODEL` takes it. The folder is MT_MODELS, or else ~/.local/share/mt-service/models.
An interrupted download is continued by the same command.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mt.cli.command import CommandParser, command, stderr_console, tell
from mt.engine.backends.calibration import accepts
from mt.errors import ModelError
from mt.interop.catalogue import hub_name, installed_folder, models_folder
from mt.interop.importer import import_model, is_folder
from mt.interop.int8 import round_import
from mt.interop.origin import ImportOptions


@command
def main(argv: Sequence[str]) -> int:
    parser = CommandParser("import", __doc__)
    parser.add_argument(
        "source",
        help="folder of a Marian, MarianMT, M2M-100, NLLB-200 or mBART-50 model, or "
        "OWNER/MODEL[@REVISION] of the hub, or a name that `mt-service models` lists",
    )
    parser.add_argument(
        "out", type=Path, nargs="?", help="model directory to write; an existing model is replaced (default: see above)"
    )
    add = parser.common.add_argument
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
    options, console = parser.parse_args(argv), stderr_console()
    report = partial(tell, console)
    out = options.out or default_folder(options.source)
    how = ImportOptions(options.allow_pickle, options.as_marian)
    import_model(options.source, out, options.direction, how, report)
    report(f"{out}: imported")
    with console.status("comparing int8 with float32"):
        check = round_import(out, options.keep_float)
    if check is not None:
        selected = "int8" if accepts(check) else "float32"
        report(
            f"int8 diverges from float32 by {check.divergence:.5f} nats per token, by {check.worst_decile:.5f} in the "
            f"worst tenth of {check.sentences} sentences: on a CPU, --dtype auto selects {selected}"
        )
    return 0


def default_folder(source: str) -> Path:
    """Return the model directory, in the folder of installed models, for a model of the hub.

    Raises: ModelError if `source` is a local folder.
    """
    if is_folder(source):
        raise ModelError(f"{source} is a folder; accepted: with a second argument, the model directory to write")
    return installed_folder(hub_name(source), models_folder())
