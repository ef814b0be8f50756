"""Write a model of ours in the format of another tool."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from mt.errors import MTError
from mt.interop.ctranslate2 import QUANTIZATIONS, export_ctranslate2

FORMATS: Mapping[str, Callable[[Path, Path, str | None], None]] = {"ctranslate2": export_ctranslate2}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a model directory")
    parser.add_argument("--to", required=True, choices=FORMATS, help="the format")
    parser.add_argument("out", type=Path, help="the folder to write; one that is there is replaced")
    parser.add_argument("--quantization", choices=QUANTIZATIONS, help="how to keep the weights (as they are)")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    try:
        FORMATS[arguments.to](arguments.model, arguments.out, arguments.quantization)
    except MTError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    console.print(f"{arguments.out}: exported", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
