"""Write a model of ours in the format of another tool."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from shell.command import command

from mt.interop.ctranslate2 import QUANTIZATIONS, export_ctranslate2
from mt.interop.marian_mt import export_huggingface
from mt.interop.onnx import export_onnx

FORMATS = {
    "huggingface": "a MarianMT directory, which transformers load; of post-norm models",
    "ctranslate2": "a model of CTranslate2",
    "onnx": "encoder and decoder step, for onnxruntime",
}


@command
def main(arguments: Sequence[str]) -> int:
    listed = "\n".join(f"  {name:12} {what}" for name, what in FORMATS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n\nformats, each with its tokenizer and a README that runs:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a model directory")
    parser.add_argument("out", type=Path, help="the folder to write; a model that is there is replaced")
    parser.add_argument("--to", required=True, choices=FORMATS, help="the format")
    parser.add_argument(
        "--quantization", choices=QUANTIZATIONS, help="how CTranslate2 is to keep the weights (as they are)"
    )
    options = parser.parse_args(arguments)
    if options.quantization and options.to != "ctranslate2":
        parser.error(f"--quantization {options.quantization}: only with --to ctranslate2")
    exporters: Mapping[str, Callable[[Path, Path], None]] = {
        "huggingface": export_huggingface,
        "ctranslate2": partial(export_ctranslate2, quantization=options.quantization),
        "onnx": export_onnx,
    }
    console = Console(stderr=True)
    exporters[options.to](options.model, options.out)
    console.print(f"{options.out}: exported", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
