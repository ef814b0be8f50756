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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils.flop_counter import FlopCounterMode

from mt.cli.command import command, count
from mt.errors import MTError
from mt.model.attention import MultiHeadAttention, attention
from mt.training.memory import keep_freed_memory

from .measure import conditions, table, watching, write_results

STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5% quantiles of Student's t-distribution, for 1 to 10 degrees of freedom."""

METRICS = ("operations", "seconds")

HEADS = 8
ROUND_SECONDS = 0.02  # shortest round: a layer that is faster runs several times


class SelfAttention(nn.Module):
    """Self-attention over all positions, without projections, with one head."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the self-attention of x: [1, n, d] -> [1, n, d]."""
        head = x.unsqueeze(1)
        return attention(head, head, head).squeeze(1)


class ProjectedAttention(nn.Module):
    """Multi-head self-attention with the projections of queries, keys, values and output."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.inner = MultiHeadAttention(d_model, HEADS, attend=attention)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x)


class RestrictedAttention(nn.Module):
    """Self-attention of each position to the r = 2 * `reach` + 1 positions around it, without projections."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, x: Tensor) -> Tensor:
        """Return the self-attention of x, in which each position attends to its neighbours: [1, n, d] -> [1, n, d]."""
        width = 2 * self.reach + 1
        windows = nn.functional.pad(x, (0, 0, self.reach, self.reach)).unfold(1, width, 1)[0]  # [n, d, r]
        scores = (x[0].unsqueeze(1) @ windows).squeeze(1) / math.sqrt(x.shape[2])  # [n, r]
        key = torch.arange(x.shape[1]).unsqueeze(1) + torch.arange(-self.reach, self.reach + 1)
        weights = scores.masked_fill((key < 0) | (key >= x.shape[1]), -math.inf).softmax(1)
        return (windows @ weights.unsqueeze(2)).squeeze(2).unsqueeze(0)


class Recurrent(nn.Module):
    """A gated recurrent unit (Cho et al. 2014)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.inner = nn.GRU(d_model, d_model, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)[0]
        return out


class Convolution(nn.Module):
    """A convolution of odd width k over the positions.

    If `dilation` is 0, its window is centred on each position. Otherwise it is causal: it ends at the position, and
    its k inputs are `dilation` positions apart. A stack of causal convolutions with dilations 1, k, k^2 ... connects
    each position with all earlier ones. With centred convolutions, paths between the first and the last position would
    lead through positions outside the text.
    """

    def __init__(self, d_model: int, width: int, dilation: int = 0) -> None:
        super().__init__()
        before = dilation * (width - 1) if dilation else width // 2
        self.pad = nn.ConstantPad1d((before, 0 if dilation else before), 0.0)
        self.inner = nn.Conv1d(d_model, d_model, width, dilation=dilation or 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(self.pad(x.transpose(1, 2))).transpose(1, 2)
        return out


@dataclass(frozen=True)
class LayerType:
    """A row of Table 1: a type of layer, with the values in the paper.

    `complexity`, `sequential` and `path` are the cells of the table. `build(index, d)` returns the layer with this
    index in a stack of layers of width d. `path_length(n)` is the exact maximum path length for n positions.
    `depth(n)` is the number of stacked layers that count as one: more than 1 for dilated convolutions.
    """

    name: str
    complexity: str
    exponents: tuple[int, int]  # exponents of n and d in `complexity`, without logarithms
    sequential: str
    path: str
    build: Callable[[int, int], nn.Module]
    path_length: Callable[[int], int]
    depth: Callable[[int], int] = lambda n: 1

    def layer(self, n: int, d: int) -> nn.Module:
        """Return the layer of this row for n positions and width d. It consists of `depth(n)` stacked layers."""
        return nn.Sequential(*(self.build(index, d) for index in range(self.depth(n))))


def dilated_depth(length: int, width: int) -> int:
    """Return the smallest L with width^L >= length.

    This is the number of causal convolutions with dilations 1, k, k^2 ... that connect `length` positions.
    """
    depth = 1
    while width**depth < length:
        depth += 1
    return depth


def layer_types(r: int, k: int) -> list[LayerType]:
    """Return the rows of Table 1. r is the neighbourhood of restricted attention, k the width of convolutions.

    Both must be odd. Two rows are not in the paper: self-attention with projections, and a stack of dilated
    convolutions.
    """

    def depth(n: int) -> int:
        return dilated_depth(n, k)

    def steps_of(reach: int) -> Callable[[int], int]:
        return lambda n: -(-(n - 1) // reach)

    projected = f"projected, h = {HEADS}"
    return [
        LayerType("self-attention", "n² d", (2, 1), "1", "1", lambda i, d: SelfAttention(), lambda n: 1),
        LayerType(projected, "n² d + n d²", (2, 1), "1", "1", lambda i, d: ProjectedAttention(d), lambda n: 1),
        LayerType(
            f"restricted, r = {r}",
            "r n d",
            (1, 1),
            "1",
            "n / r",
            lambda i, d: RestrictedAttention(r // 2),
            steps_of(r // 2),
        ),
        LayerType("recurrent, GRU", "n d²", (1, 2), "n", "n", lambda i, d: Recurrent(d), lambda n: n),
        LayerType(
            f"convolution, k = {k}", "k n d²", (1, 2), "1", "n / k", lambda i, d: Convolution(d, k), steps_of(k // 2)
        ),
        LayerType(
            f"dilated, k = {k}",
            "k n d² log n",
            (1, 2),
            "log_k n",
            "log_k n",
            lambda i, d: Convolution(d, k, k**i),
            depth,
            depth,
        ),
    ]


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


def chain_length(output: Tensor) -> int:
    """Return the length of the longest chain of operations of autograd that computed `output` from the input.

    Each operation in a chain needs the result of the one before.
    """
    assert output.grad_fn is not None
    longest: dict[Node, int] = {}
    pending = [output.grad_fn]
    while pending:
        node = pending[-1]
        inputs = [parent for parent, _ in node.next_functions if parent is not None]
        missing = [parent for parent in inputs if parent not in longest]
        if missing:
            pending += missing
        else:
            longest[node] = 1 + max((longest[parent] for parent in inputs), default=0)
            pending.pop()
    return longest[output.grad_fn] - 1  # the last node stands for the input


def measured_path(kind: LayerType, length: int, d_model: int = HEADS) -> int:
    """Return how many layers, or steps of a recurrent layer, connect the first input with the last output.

    They are connected if the gradient of this output with respect to this input is not 0. All values are float64, so
    that products of many small weights do not become 0.
    """
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, length, d_model, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    for number, last in enumerate(_outputs(kind, x), start=1):
        [gradient] = torch.autograd.grad(last.sum(), x, retain_graph=True)
        if bool((gradient[0, 0] != 0).any()):
            return number
    raise AssertionError(f"{kind.name}: no path")


def _outputs(kind: LayerType, x: Tensor) -> Iterator[Tensor]:
    """Yield the output at the last position after 1, 2, ... layers.

    For a recurrent layer, all outputs have the same value, but gradients flow only through the last 1, 2, ... steps.
    """
    length, d_model = x.shape[1:]
    out, layer = x, kind.build(0, d_model).double()
    for number in range(1, length + 1):
        if isinstance(layer, Recurrent):
            with torch.no_grad():
                before = layer.inner(x[:, :-number])[1] if number < length else None
            out = layer.inner(x[:, -number:], before)[0]
        else:
            out = kind.build(number - 1, d_model).double()(out)
        yield out[:, -1]


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
        with watching(time.process_time) as other_load:
            kinds = layer_types(options.neighbourhood, options.kernel)
            points = {kind.name: measure(kind, options) for kind in kinds}
            paths = {kind.name: [count_path(kind, n) for n in options.paths] for kind in kinds}
    finally:
        torch.set_num_threads(threads)
    exponents = {name: fits(of_kind, options) for name, of_kind in points.items()}
    parts: list[Table | str] = [
        *exponent_tables(kinds, exponents, options),
        path_table(kinds, paths, options.paths),
        f"Fastest of {options.rounds} rounds, float32, one thread; others used {other_load.cores or 0:.2f} cores.",
    ]
    values = {
        "conditions": {**before, "threads": 1, "rounds": options.rounds, "other_cores": other_load.cores},
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


def path_table(kinds: Sequence[LayerType], paths: Mapping[str, Sequence[PathCount]], lengths: Sequence[int]) -> Table:
    """Return a table of sequential operations and maximum path lengths, as measured and as in the paper."""
    rows = []
    for kind in kinds:
        columns = zip(*((path.chain, path.measured, path.exact) for path in paths[kind.name]), strict=True)
        chain, measured, exact = (", ".join(map(str, column)) for column in columns)
        rows.append([kind.name, kind.sequential, chain, kind.path, measured, exact])
    title = f"Sequential operations and maximum path length, n = {', '.join(map(str, lengths))}"
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
