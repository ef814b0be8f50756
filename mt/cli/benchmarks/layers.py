"""Measure Table 1 of "Attention Is All You Need": self-attention, recurrent and convolutional layers.

    mt-service benchmark layers --output benchmarks/layers

Time, operations and memory of a forward pass are measured on one CPU thread for several lengths n and widths d. The
exponents a and b of n^a and d^b are fitted to them. Path lengths are determined from gradients. Two further tables
compare one head with several, and scores with and without the division by sqrt(d_k). Of --rounds rounds, the fastest is
used.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from rich.table import Table

from mt.cli.command import CommandParser, count
from mt.errors import MTError
from mt.training.memory import keep_freed_memory

from .layer_types import (
    LayerType,
    SelfAttention,
    chain_length,
    layer_types,
    measured_path,
    operations,
    saved_bytes,
    seconds,
)
from .measure import watching
from .report import conditions, show, table, write_json

STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5% quantiles of Student's t-distribution, for 1 to 10 degrees of freedom."""

KEYS, QUERIES = 64, 500  # numbers of keys and queries for the table on the division of scores
METRICS = ("operations", "seconds", "bytes")


@dataclass(frozen=True)
class Point:
    """Costs of a forward pass at length n and width d. `bytes` is the memory that is kept for the backward pass."""

    n: int
    d: int
    operations: float
    seconds: float
    bytes: float


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


@dataclass(frozen=True)
class Softmax:
    """Statistics of scores and softmax for random queries and keys of width d_k.

    `scaled` tells whether the scores were divided by sqrt(d_k).
    """

    d_k: int
    scaled: bool
    variance: float  # variance of the scores
    gradient: float  # mean Frobenius norm of the Jacobian of softmax
    largest: float  # mean of the largest weight


def fit(sizes: Sequence[float], costs: Sequence[float]) -> Exponent:
    """Fit log(cost) = a + b log(size) by least squares. Return b with its 95% confidence interval (Student's t)."""
    x, y = np.log(sizes), np.log(costs)
    (slope, offset), spread = np.polyfit(x, y, 1), ((x - x.mean()) ** 2).sum()
    freedom = len(sizes) - 2
    error = np.sqrt(((y - slope * x - offset) ** 2).sum() / freedom / spread)
    reach = STUDENT_T[min(freedom, len(STUDENT_T)) - 1] * error
    return Exponent(float(slope), float(slope - reach), float(slope + reach))


def add_arguments(parser: CommandParser) -> None:
    add = parser.more.add_argument
    for name, default, meaning in (
        ("--lengths", [256, 512, 1024, 2048, 4096], "lengths n, with the smallest d; at least three"),
        ("--widths", [64, 128, 256, 512, 1024], "widths d, with the smallest n; at least three multiples of 16"),
        ("--paths", [5, 17, 33, 65], "lengths whose paths are counted"),
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


def odd(text: str) -> int:
    """Return the value of an option as an integer. Raises: ArgumentTypeError if it is even or less than 3."""
    value = int(text)
    if value < 3 or value % 2 == 0:
        raise argparse.ArgumentTypeError(f"{text}; accepted: an odd number of at least 3")
    return value


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, print the tables, and write `table.txt`, `layers.json` and `layers.png`.

    Raises: MTError if --lengths or --widths cannot be used.
    """
    if wrong := [d for d in options.widths if d % 16]:
        raise MTError(f"--widths has {wrong}; accepted: multiples of 16, the maximum number of heads")
    if min(len({*options.lengths}), len({*options.widths})) < 3:
        raise MTError("--lengths or --widths has fewer than three numbers; accepted: at least three, for a fit")
    before, threads = conditions(), torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()  # pages that the system maps anew would take most of the time of large scores
    try:
        with watching(time.process_time) as other_load:
            kinds = layer_types(options.neighbourhood, options.kernel)
            points = {kind.name: measure(kind, options) for kind in kinds}
            paths = {kind.name: [count_path(kind, n) for n in options.paths] for kind in kinds}
            length, width = sorted(options.lengths)[1], sorted(options.widths)[-2]
            heads = {h: measure_point(SelfAttention(h), length, width, options.rounds) for h in (1, 2, 4, 8, 16)}
            softmax = [softmax_of(d_k, scaled) for d_k in (4, 16, 64, 256, 1024) for scaled in (False, True)]
    finally:
        torch.set_num_threads(threads)
    exponents = {name: fits(of_kind, options) for name, of_kind in points.items()}
    parts: list[Table | str] = [
        *exponent_tables(kinds, exponents, options),
        path_table(kinds, paths, options.paths),
        heads_table(heads),
        softmax_table(softmax),
        f"Memory: tensors kept for the backward pass. Fastest of {options.rounds} rounds, float32, one thread. "
        f"Other processes used {other_load.cores or 0:.2f} cores.",
    ]
    options.output.mkdir(parents=True, exist_ok=True)
    show(parts, options.output / "table.txt")
    values = {
        "conditions": {**before, "threads": 1, "rounds": options.rounds, "neighbours_cores": other_load.cores},
        "points": {name: [asdict(point) for point in of_kind] for name, of_kind in points.items()},
        "exponents": {name: {key: asdict(value) for key, value in of.items()} for name, of in exponents.items()},
        "paths": {name: [asdict(path) for path in of_kind] for name, of_kind in paths.items()},
        "heads": {h: asdict(point) for h, point in heads.items()},
        "softmax": [asdict(row) for row in softmax],
    }
    write_json(options.output / "layers.json", values)
    plot(options.output / "layers.png", points, paths, softmax)


def exponent_tables(
    kinds: Sequence[LayerType], exponents: Mapping[str, Mapping[str, Exponent]], options: argparse.Namespace
) -> list[Table]:
    """Return a table of the exponents of n and a table of the exponents of d, with the complexities in the paper."""
    fixed = (f"n, with d = {min(options.widths)}", f"d, with n = {min(options.lengths)}")
    return [
        table(
            f"Exponents of {fixed[index]}, with 95% intervals",
            ("layer", "paper", "", "operations", "time", "memory"),
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


def path_table(kinds: Sequence[LayerType], paths: Mapping[str, Sequence[PathCount]], lengths: Sequence[int]) -> Table:
    """Return a table of sequential operations and maximum path lengths, as measured and as in the paper."""
    rows = []
    for kind in kinds:
        columns = zip(*((path.chain, path.measured, path.exact) for path in paths[kind.name]), strict=True)
        chain, measured, exact = (", ".join(map(str, column)) for column in columns)
        rows.append([kind.name, kind.sequential, chain, kind.path, measured, exact])
    title = f"Sequential operations and maximum path length, n = {', '.join(map(str, lengths))}"
    return table(title, ("layer", "paper", "chain of operations", "paper", "path", "exact"), rows)


def heads_table(heads: Mapping[int, Point]) -> Table:
    rows = [
        [str(h), f"{p.operations:,.0f}", f"{1e3 * p.seconds:.2f}", f"{p.bytes / 2**20:.1f}"] for h, p in heads.items()
    ]
    title = f"h heads, n = {heads[1].n}, d = {heads[1].d}"
    return table(title, ("h", "operations", "ms", "memory, MiB"), rows, left=0)


def softmax_table(rows: Sequence[Softmax]) -> Table:
    """Return a table that compares scores and softmax with and without the division by sqrt(d_k)."""
    cells = [
        [
            *(str(row.d_k), "q k / sqrt(d_k)" if row.scaled else "q k"),
            *(f"{value:.3g}" for value in (row.variance, row.gradient, row.largest)),
        ]
        for row in rows
    ]
    title = f"Softmax over {KEYS} keys, {QUERIES:,} random queries with components of variance 1"
    return table(title, ("d_k", "scores", "variance", "gradient", "largest weight"), cells)


def measure(kind: LayerType, options: argparse.Namespace) -> list[Point]:
    """Return the costs of a layer for all lengths with the smallest width, and all widths with the smallest length."""
    sizes = [(n, min(options.widths)) for n in options.lengths] + [(min(options.lengths), d) for d in options.widths]
    return [measure_point(kind.layer(n, d), n, d, options.rounds) for n, d in dict.fromkeys(sizes)]


def measure_point(layer: torch.nn.Module, n: int, d: int, rounds: int) -> Point:
    x = torch.randn(1, n, d, generator=torch.Generator().manual_seed(1))
    return Point(n, d, operations(layer, x), seconds(layer, x, rounds), saved_bytes(layer, x))


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


def softmax_of(d_k: int, scaled: bool) -> Softmax:
    """Measure the scores and the softmax of random queries and keys (section 3.2.1 of the paper, footnote 4).

    The Jacobian of softmax with the result p is diag(p) - p p^T. Its squared norm is
    sum p^2 - 2 sum p^3 + (sum p^2)^2.
    """
    generator = torch.Generator().manual_seed(d_k)
    queries = torch.randn(QUERIES, 1, d_k, generator=generator, dtype=torch.float64)
    keys = torch.randn(QUERIES, d_k, KEYS, generator=generator, dtype=torch.float64)
    scores = (queries @ keys).squeeze(1) / (d_k**0.5 if scaled else 1)
    p = scores.softmax(1)
    squares = p.pow(2).sum(1)
    gradient = (squares - 2 * p.pow(3).sum(1) + squares**2).clamp(min=0).sqrt()
    return Softmax(d_k, scaled, float(scores.var()), float(gradient.mean()), float(p.amax(1).mean()))


def plot(
    path: Path,
    points: Mapping[str, Sequence[Point]],
    paths: Mapping[str, Sequence[PathCount]],
    softmax: Sequence[Softmax],
) -> None:
    """Plot the times over n and over d, the path lengths over n, and the gradient of softmax over d_k."""
    matplotlib.use("Agg")
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    (by_n, by_d), (path_axis, softmax_axis) = figure.subplots(2, 2)
    for name, of_kind in points.items():
        for axis, size, fixed in ((by_n, "n", "d"), (by_d, "d", "n")):
            smallest = min(getattr(point, fixed) for point in of_kind)
            chosen = [point for point in of_kind if getattr(point, fixed) == smallest]
            axis.loglog([getattr(p, size) for p in chosen], [1e3 * p.seconds for p in chosen], marker=".", label=name)
            axis.set(xlabel=f"{size} ({fixed} = {smallest})", ylabel="ms of a forward pass")
        path_axis.loglog([p.n for p in paths[name]], [p.measured for p in paths[name]], marker=".")
    for axis in (by_n, by_d, path_axis):
        sizes = sorted({int(x) for line in axis.get_lines() for x in np.asarray(line.get_xdata())})
        axis.minorticks_off()
        axis.set_xticks(sizes, [str(size) for size in sizes])
    by_n.legend(fontsize=8)
    path_axis.set(xlabel="n", ylabel="maximum path length, layers or steps")
    for scaled, label in ((False, "q k"), (True, "q k / sqrt(d_k)")):
        rows = [row for row in softmax if row.scaled == scaled]
        softmax_axis.semilogx([row.d_k for row in rows], [row.gradient for row in rows], marker=".", label=label)
    softmax_axis.set(xlabel="d_k", ylabel="norm of the gradient of softmax")
    softmax_axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)
