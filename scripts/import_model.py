"""Turn a model of another tool into a model directory of ours: Hugging Face's MarianMT, as OPUS-MT publishes it."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from mt.errors import MTError
from mt.interop.huggingface import import_marian


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a directory with config.json, model.safetensors and source.spm")
    parser.add_argument("out", type=Path, help="the model directory to write; one that is there is replaced")
    parser.add_argument("--direction", required=True, metavar="SOURCE-TARGET", help="what it translates, such as en-de")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    try:
        import_marian(arguments.source, arguments.out, arguments.direction)
    except MTError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    console.print(f"{arguments.out}: imported", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
