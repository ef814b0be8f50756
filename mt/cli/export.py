"""Convert a model directory to int8 weights, or to the format of another toolkit."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mt.cli.command import CommandParser, command, stderr_console, tell
from mt.interop.catalogue import model_path
from mt.interop.ctranslate2 import export_ctranslate2
from mt.interop.huggingface_export import export_huggingface
from mt.interop.int8 import export_int8

FORMATS = {
    "int8": "a model directory with int8 weights, a quarter of the size; translates as `--dtype int8` does",
    "huggingface": "a directory for transformers: PEGASUS for a pre-norm model, MarianMT for a post-norm model",
    "ctranslate2": "a model of CTranslate2",
}


@command
def main(argv: Sequence[str]) -> int:
    formats = "\n".join(f"  {name:12} {description}" for name, description in FORMATS.items())
    parser = CommandParser(
        "export",
        f"{__doc__}\n\nFormats (each contains the tokenizer and a README; for other toolkits, the README has an "
        f"example program):\n{formats}",
    )
    parser.add_argument("model", type=model_path, help="model directory, or `starter`")
    parser.add_argument("out", type=Path, help="folder to write; an existing model is replaced")
    parser.common.add_argument("--to", required=True, choices=FORMATS, help="format to write")
    parser.more.add_argument(
        "--keep-float",
        action="store_true",
        help="with --to int8, also store the float32 weights, for GPUs, --dtype float32 and tuning",
    )
    options = parser.parse_args(argv)
    if options.keep_float and options.to != "int8":
        parser.error("--keep-float requires --to int8")
    exporters: Mapping[str, Callable[[Path, Path], None]] = {
        "int8": partial(export_int8, keep_float=options.keep_float),
        "huggingface": export_huggingface,
        "ctranslate2": export_ctranslate2,
    }
    exporters[options.to](options.model, options.out)
    tell(stderr_console(), f"{options.out}: exported")
    return 0
