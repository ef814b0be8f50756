"""Convert a model of another toolkit to a model directory.

mt-service import Helsinki-NLP/opus-mt-en-de models/opus-mt-en-de
mt-service import facebook/nllb-200-distilled-600M models/nllb --direction en-de --direction de-en
mt-service import path/to/marian models/en-de --direction en-de
"""

from collections.abc import Sequence
from pathlib import Path

from mt.cli.command import CommandParser, command, stderr_console
from mt.engine.backends.calibration import accepts
from mt.interop.importer import import_model
from mt.interop.int8 import check_int8
from mt.interop.origin import ImportOptions


@command
def main(argv: Sequence[str]) -> int:
    parser = CommandParser("import", __doc__)
    parser.add_argument(
        "source",
        help="folder of a Marian, MarianMT, M2M-100, NLLB-200, mBART-50, fairseq or JoeyNMT model, or "
        "OWNER/MODEL[@REVISION]",
    )
    parser.add_argument("out", type=Path, help="model directory to write; an existing model is replaced")
    parser.common.add_argument(
        "--direction",
        action="append",
        default=[],
        metavar="L-L",
        help="direction of the model, such as en-de; may be repeated; required if the model's files name none",
    )
    parser.common.add_argument(
        "--allow-pickle", action="store_true", help="read weights from a pickle file; no code in it is run"
    )
    parser.more.add_argument(
        "--as-marian",
        action="store_true",
        help="compute positions and LayerNorm exactly as Marian does (default: as transformers and CTranslate2 do, "
        "which differs slightly)",
    )
    options = parser.parse_args(argv)
    import_model(options.source, options.out, options.direction, ImportOptions(options.allow_pickle, options.as_marian))
    console = stderr_console()
    console.print(f"{options.out}: imported", markup=False, highlight=False, soft_wrap=True)
    with console.status("comparing int8 with float32"):
        check = check_int8(options.out)
    if check is not None:
        selected = "int8" if accepts(check) else "float32"
        console.print(
            f"int8 diverges from float32 by {check.divergence:.5f} nats per token, by {check.worst_decile:.5f} in the "
            f"worst tenth of {check.sentences} sentences: on a CPU, --dtype auto selects {selected}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return 0
