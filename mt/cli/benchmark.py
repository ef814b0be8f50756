"""Run a benchmark: decoding, training and serving beside other toolkits, layers of Table 1 of the paper, and others.

    mt-service benchmark decode MODEL --source test.en --reference test.de --output benchmarks/decode
    mt-service benchmark train RECIPE --output benchmarks/train
    mt-service benchmark serve MODEL --source dev.en --output benchmarks/serve
    mt-service benchmark layers --output benchmarks/layers
    mt-service benchmark trainings --rounds 3 --output benchmarks/trainings
    mt-service benchmark gpu --part decoding --output benchmarks/gpu
    mt-service benchmark decode --help

The results are a table and a JSON file; `layers` and `trainings` also draw plots. A toolkit that is not installed has a
row with a message instead of results. Use a machine without other work; the results contain a warning if other programs
used it.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mt.cli.command import CommandParser, command, count

BENCHMARKS = ("decode", "train", "serve", "layers", "trainings", "gpu")


@command
def main(argv: Sequence[str]) -> int:
    overview = CommandParser("benchmark", __doc__)
    overview.add_argument("benchmark", choices=BENCHMARKS)
    name = overview.parse_args(argv[:1]).benchmark
    module = import_module(f"mt.cli.benchmarks.{name}")
    parser = CommandParser(f"benchmark {name}", module.__doc__)
    add = parser.common.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the results")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each row (default: %(default)s)")
    module.add_arguments(parser)
    module.run(parser.parse_args(argv[1:]))
    return 0
