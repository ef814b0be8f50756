"""Convert a model directory to the format of another toolkit."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mt.cli.command import CommandParser, command, stderr_console
from mt.interop.ctranslate2 import QUANTIZATIONS, export_ctranslate2
from mt.interop.huggingface_export import export_huggingface
from mt.interop.onnx import export_onnx

FORMATS = {
    "huggingface": "a MarianMT directory for transformers (post-norm models only)",
    "ctranslate2": "a model of CTranslate2",
    "onnx": "encoder and decoder step for onnxruntime (greedy search)",
}


@command
def main(argv: Sequence[str]) -> int:
    formats = "\n".join(f"  {name:12} {description}" for name, description in FORMATS.items())
    parser = CommandParser(
        "export",
        f"{__doc__}\n\nFormats (the tokenizer and a README with an example program are added to each):\n{formats}",
    )
    parser.add_argument("model", type=Path, help="model directory")
    parser.add_argument("out", type=Path, help="folder to write; an existing model is replaced")
    parser.common.add_argument("--to", required=True, choices=FORMATS, help="format to write")
    parser.more.add_argument(
        "--quantization", choices=QUANTIZATIONS, help="data type of the weights for CTranslate2 (default: unchanged)"
    )
    options = parser.parse_args(argv)
    if options.quantization and options.to != "ctranslate2":
        parser.error(f"--quantization {options.quantization} requires --to ctranslate2")
    exporters: Mapping[str, Callable[[Path, Path], None]] = {
        "huggingface": export_huggingface,
        "ctranslate2": partial(export_ctranslate2, quantization=options.quantization),
        "onnx": export_onnx,
    }
    exporters[options.to](options.model, options.out)
    stderr_console().print(f"{options.out}: exported", markup=False, highlight=False, soft_wrap=True)
    return 0
