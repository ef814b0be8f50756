"""Turn a model of another toolkit into a model directory of ours, which is used like any other."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from shell.command import command

from mt.interop.importer import import_model
from mt.interop.origin import Wishes


@command
def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "source",
        help="a folder of Marian, Hugging Face's MarianMT, fairseq or JoeyNMT, or on the hub owner/model[@revision]",
    )
    parser.add_argument("out", type=Path, help="the model directory to write; one that is there is replaced")
    parser.add_argument(
        "--direction",
        action="append",
        default=[],
        metavar="SOURCE-TARGET",
        help="what it translates, such as en-de; may be given several times, or left out if the model says it itself",
    )
    parser.add_argument("--allow-pickle", action="store_true", help="read weights from a pickle, and only those")
    parser.add_argument(
        "--as-marian",
        action="store_true",
        help="compute positions and LayerNorm exactly as Marian does; transformers' and CTranslate2's conversions of "
        "its models, to which ours are equal without this, differ a little from it",
    )
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    import_model(options.source, options.out, options.direction, Wishes(options.allow_pickle, options.as_marian))
    console.print(f"{options.out}: imported", markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
