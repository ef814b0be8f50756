"""Measure Table 1 of "Attention Is All You Need": self-attention, recurrent and convolutional layers.

    python -m scripts.benchmark.layers --output benchmarks/layers

Time and operations of a forward pass are measured on one CPU thread for several lengths n and widths d. The exponents a
and b of n^a and d^b are fitted to them. Path lengths are determined from gradients. Of --rounds rounds, the fastest is
used.

The input and the output of a layer are [1, n, d]: n positions with d values each. Self-attention is only equation 1 of
the paper, with the input as queries, keys and values, because the table does not count projections.
"""

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from mt.cli.command import command, count
from mt.errors import MTError
from mt.training.memory import keep_freed_memory

from .layer_types import LayerType, chain_length, layer_types, measured_path
from .measure import conditions, table, write_results

STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5% quantiles of Student's t-distribution, for 1 to 10 degrees of freedom."""

METRICS = ("operations", "seconds")

PATH_LENGTHS = (5, 17, 33, 65)  # lengths n whose paths are counted

ROUND_SECONDS = 0.02  # shortest round: a layer that is faster runs several times


def seconds(layer: nn.Module, x: Tensor, rounds: int) -> float:
    """Return the seconds of a forward pass in the fastest of `rounds` rounds. A round takes at least ROUND_SECONDS."""
    with torch.inference_mode():
        layer(x)
        best, repeats = math.inf, 1
        for _ in range(rounds):
            while True:
                began = time.perf_counter()
                for _ in range(repeats):
                    layer(x)
                taken = time.perf_counter() - began
                best = min(best, taken / repeats)
                if taken >= ROUND_SECONDS:
                    break
                repeats *= 2
    return best


def operations(layer: nn.Module, x: Tensor) -> int:
    """Return the number of floating-point operations in the matrix products of a forward pass.

    A multiply-add counts as two operations.
    """
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(x)
    return int(counter.get_total_flops())


@dataclass(frozen=True)
class Point:
    """Costs of a forward pass at length n and width d."""

    n: int
    d: int
    operations: float
    seconds: float


@dataclass(frozen=True)
class PathCount:
    """Maximum path length of a layer with n positions, and length of its longest chain of dependent operations.

    `measured` is the path length that was determined from gradients, `exact` the one that a formula gives.
    """

    n: int
    chain: int
    measured: int
    exact: int


@dataclass(frozen=True)
class Exponent:
    """Exponent of a power law, with its 95% confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.high - self.value:.2f}"


def fit(sizes: Sequence[float], costs: Sequence[float]) -> Exponent:
    """Fit log(cost) = a + b log(size) by least squares. Return b with its 95% confidence interval (Student's t)."""
    x, y = np.log(sizes), np.log(costs)
    (slope, offset), spread = np.polyfit(x, y, 1), ((x - x.mean()) ** 2).sum()
    freedom = len(sizes) - 2
    error = np.sqrt(((y - slope * x - offset) ** 2).sum() / freedom / spread)
    reach = STUDENT_T[min(freedom, len(STUDENT_T)) - 1] * error
    return Exponent(float(slope), float(slope - reach), float(slope + reach))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. Raises: MTError if --lengths or --widths cannot be used."""
    parser = argparse.ArgumentParser(
        prog="layers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the results")
    add("--rounds", type=count, default=5, help="measurements of each layer (default: 5)")
    for name, default, meaning in (
        ("--lengths", [256, 512, 1024, 2048, 4096], "lengths n, with the smallest d; at least three"),
        ("--widths", [64, 128, 256, 512, 1024], "widths d, with the smallest n; at least three multiples of 16"),
    ):
        shown = " ".join(map(str, default))
        add(name, type=count, nargs="+", default=default, metavar="N", help=f"{meaning} (default: {shown})")
    add(
        "--neighbourhood",
        type=odd,
        default=9,
        metavar="R",
        help="positions that restricted attention reads, odd (default: %(default)s)",
    )
    add("--kernel", type=odd, default=3, metavar="K", help="width of convolutions, odd (default: %(default)s)")
    options = parser.parse_args(argv)
    if wrong := [d for d in options.widths if d % 16]:
        raise MTError(f"--widths has {wrong}; accepted: multiples of 16, the maximum number of heads")
    if min(len({*options.lengths}), len({*options.widths})) < 3:
        raise MTError("--lengths or --widths has fewer than three numbers; accepted: at least three, for a fit")
    return options


def odd(text: str) -> int:
    """Return the value of an option as an integer. Raises: ArgumentTypeError if it is even or less than 3."""
    value = int(text)
    if value < 3 or value % 2 == 0:
        raise argparse.ArgumentTypeError(f"{text}; accepted: an odd number of at least 3")
    return value


@command
def main(argv: Sequence[str]) -> int:
    """Run the benchmark, print the tables, and write `table.txt` and `results.json`.

    Raises: MTError if --lengths or --widths cannot be used.
    """
    options = parse(argv)
    before, threads = conditions(), torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()  # pages that the system maps anew would take most of the time of large scores
    try:
        kinds = layer_types(options.neighbourhood, options.kernel)
        points = {kind.name: measure(kind, options) for kind in kinds}
        paths = {kind.name: [count_path(kind, n) for n in PATH_LENGTHS] for kind in kinds}
    finally:
        torch.set_num_threads(threads)
    exponents = {name: fits(of_kind, options) for name, of_kind in points.items()}
    parts: list[Table | str] = [
        *exponent_tables(kinds, exponents, options),
        path_table(kinds, paths),
        f"Fastest of {options.rounds} rounds, float32, one thread.",
    ]
    values = {
        "conditions": {**before, "threads": 1, "rounds": options.rounds},
        "points": {name: [asdict(point) for point in of_kind] for name, of_kind in points.items()},
        "exponents": {name: {key: asdict(value) for key, value in of.items()} for name, of in exponents.items()},
        "paths": {name: [asdict(path) for path in of_kind] for name, of_kind in paths.items()},
    }
    write_results(options.output, parts, values)
    return 0


def exponent_tables(
    kinds: Sequence[LayerType], exponents: Mapping[str, Mapping[str, Exponent]], options: argparse.Namespace
) -> list[Table]:
    """Return a table of the exponents of n and a table of the exponents of d, with the complexities in the paper."""
    fixed = (f"n, with d = {min(options.widths)}", f"d, with n = {min(options.lengths)}")
    return [
        table(
            f"Exponents of {fixed[index]}, with 95% intervals",
            ("layer", "paper", "", "operations", "time"),
            [
                [
                    *(kind.name, kind.complexity, str(kind.exponents[index])),
                    *(str(exponents[kind.name][f"{metric} {size}"]) for metric in METRICS),
                ]
                for kind in kinds
            ],
        )
        for index, size in enumerate("nd")
    ]


def path_table(kinds: Sequence[LayerType], paths: Mapping[str, Sequence[PathCount]]) -> Table:
    """Return a table of sequential operations and maximum path lengths, as measured and as in the paper."""
    rows = []
    for kind in kinds:
        columns = zip(*((path.chain, path.measured, path.exact) for path in paths[kind.name]), strict=True)
        chain, measured, exact = (", ".join(map(str, column)) for column in columns)
        rows.append([kind.name, kind.sequential, chain, kind.path, measured, exact])
    title = f"Sequential operations and maximum path length, n = {', '.join(map(str, PATH_LENGTHS))}"
    return table(title, ("layer", "paper", "chain of operations", "paper", "path", "exact"), rows)


def measure(kind: LayerType, options: argparse.Namespace) -> list[Point]:
    """Return the costs of a layer for all lengths with the smallest width, and all widths with the smallest length."""
    sizes = [(n, min(options.widths)) for n in options.lengths] + [(min(options.lengths), d) for d in options.widths]
    return [measure_point(kind.layer(n, d), n, d, options.rounds) for n, d in dict.fromkeys(sizes)]


def measure_point(layer: torch.nn.Module, n: int, d: int, rounds: int) -> Point:
    x = torch.randn(1, n, d, generator=torch.Generator().manual_seed(1))
    return Point(n, d, operations(layer, x), seconds(layer, x, rounds))


def count_path(kind: LayerType, n: int) -> PathCount:
    chain = chain_length(kind.layer(n, 16)(torch.randn(1, n, 16, requires_grad=True)))
    return PathCount(n, chain, measured_path(kind, n), kind.path_length(n))


def fits(points: Sequence[Point], options: argparse.Namespace) -> dict[str, Exponent]:
    """Return the exponents of n and d for each of METRICS. The keys are texts such as "seconds n"."""
    by_n = [point for point in points if point.d == min(options.widths)]
    by_d = [point for point in points if point.n == min(options.lengths)]
    return {
        f"{metric} {size}": fit(
            [getattr(point, size) for point in chosen], [getattr(point, metric) for point in chosen]
        )
        for size, chosen in (("n", by_n), ("d", by_d))
        for metric in METRICS
    }


if __name__ == "__main__":
    sys.exit(main())
