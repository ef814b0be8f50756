"""Measure us and each installed peer side by side, in one run, alternating: a table, a JSON file and a plot.

    python scripts/benchmark.py decode MODEL --source test.en --reference test.de --output benchmarks/decode
    python scripts/benchmark.py serve MODEL --source dev.en --output benchmarks/serve
    python scripts/benchmark.py http MODEL --source dev.en --output benchmarks/http
    python scripts/benchmark.py VERB --help

A peer that is not installed is a row that says so. Run it on a quiet machine: it says when the machine was not.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from shell.command import command

PACKAGE = "scripts.benchmarks"
VERBS = ("decode", "train", "serve", "http")


@command
def main(arguments: Sequence[str]) -> int:
    chosen = parser().parse_args(arguments[:1])
    module = import_module(f"{PACKAGE}.{chosen.verb}")
    asked = argparse.ArgumentParser(
        prog=f"benchmark.py {chosen.verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    asked.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the results go")
    asked.add_argument("--rounds", type=int, default=5, help="of all contenders in turn (default: 5)")
    module.add_arguments(asked)
    module.run(asked.parse_args(arguments[1:]))
    return 0


def parser() -> argparse.ArgumentParser:
    """Of the first argument alone: each verb has its own."""
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    found.add_argument("verb", choices=verbs())
    return found


def verbs() -> list[str]:
    """Those whose module is there."""
    return [verb for verb in VERBS if find_spec(f"{PACKAGE}.{verb}")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
