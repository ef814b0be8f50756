"""Find the highest rate of single sentences at which the 95th percentile of the service's latency is within a bound.

    mt-service benchmark serve MODEL --source dev.en --output DIR               # python -m service, started here
    mt-service benchmark serve --url http://host:8000 --source dev.en --output DIR

The sentences arrive at random times (Poisson process), over as many connections as needed. The rate is found by
bisection; the bound is --bound. A test at one rate is called a probe, and takes at least --seconds. Each round has
other arrival times.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, zip_longest
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from rich.console import Console

from mt.cli.command import CommandParser
from mt.data.corpus import read_lines, read_tsv
from mt.engine.devices import available_cores
from mt.errors import MTError

from .measure import noise
from .queueing import Bisection, Probe, poisson_arrivals
from .report import conditions, show, table, write_json

READ = 20_000  # lines of each file from which the sample is drawn
FIRST_RATE = 20.0  # sentences per second, of the first probe
COLUMNS = ("sentences/s in time", "p50 ms", "p95 ms", "p99 ms")


def add_arguments(parser: CommandParser) -> None:
    parser.set_defaults(rounds=3)
    parser.add_argument("model", type=Path, nargs="?", help="a model directory of one direction")
    add = parser.more.add_argument
    add(
        "--source",
        type=Path,
        nargs="+",
        required=True,
        help="files with one sentence a line, or .tsv with sentences in the first column",
    )
    add("--url", help="use the running service at this URL instead of a model")
    add("--sample", type=int, default=3000, help="sentences to draw (default: 3000)")
    add("--bound", type=float, default=0.5, help="bound of the 95th percentile of latency in seconds (default: 0.5)")
    add("--seconds", type=float, default=20.0, help="shortest duration of a probe (default: 20)")
    add("--dtype", default="auto")
    add("--cores", type=int, default=available_cores(), help="cores that translate (default: all)")
    add("--precision", type=float, default=1.05, help="precision of the rate, as a factor (default: 1.05)")


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, and write the results. Raises: MTError if the options cannot be used or the service fails."""
    if (options.model is None) == (options.url is None):
        raise MTError("serve needs a MODEL directory or --url URL, and not both")
    if not find_spec("httpx"):
        raise MTError("serve needs httpx, which is not installed; accepted: pip install httpx")
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    before = conditions()
    lines = sample(options.source, options.sample)
    http = import_module("mt.cli.benchmarks.serve_http")  # httpx is no dependency of ours
    rounds: list[list[Probe]] = []
    best: list[Probe] = []
    with http.service(options.url, options.model, options.dtype, options.cores, output) as client:
        for number in range(options.rounds):
            guess = median(probe.rate for probe in best) if best else FIRST_RATE
            rounds.append(bisect(client, lines, Bisection(guess, options.precision), number, options))
            best.append(max((p for p in rounds[-1] if p.p95 <= options.bound), key=lambda probe: probe.rate))
    about = {**before, "arguments": {name: str(value) for name, value in vars(options).items()}}
    _write(output, rounds, best, about)


def bisect(
    client: Any, lines: Sequence[str], bisection: Bisection, seed: int, options: argparse.Namespace
) -> list[Probe]:
    """Return the probes of one round. A probe that exceeds the bound is repeated once.

    Raises: MTError if the latency exceeds the bound even at a very low rate.
    """
    probes = []
    while not bisection.done:
        rate = bisection.rate
        for _ in range(2):
            arrivals = poisson_arrivals(rate, options.seconds, 200, seed)
            probe = Probe.of(rate, client.run(lines, arrivals, options.bound))
            if probe.p95 <= options.bound:
                break
        bisection.report(rate, probe.p95 <= options.bound)
        probes.append(probe)
        if bisection.unreachable:
            raise MTError(
                f"the latency exceeds --bound even at {rate:.2g} sentences a second; accepted: a longer --bound"
            )
        progress = f"round {seed + 1}: {rate:.1f}/s, p95 {1000 * probe.p95:.0f} ms"
        Console(stderr=True).print(progress, highlight=False)
    return probes


def sample(paths: Sequence[Path], count: int) -> list[str]:
    """Return about `count` random sentences, in random order.

    Each file contributes the same number of sentences, if it has enough. The result is the same in each call.
    """
    random = Random(0)
    shares = []
    for path in paths:
        read = (pair.source for pair in read_tsv(path, 0, 1)) if ".tsv" in path.suffixes else read_lines(path)
        lines = [line for line in islice(read, READ) if line.strip()]
        shares.append(random.sample(lines, min(len(lines), -(-count // len(paths)))))
    mixed = [line for lines in zip_longest(*shares) for line in lines if line is not None]
    random.shuffle(mixed)
    return mixed


def _write(output: Path, rounds: Sequence[Sequence[Probe]], best: Sequence[Probe], about: dict[str, Any]) -> None:
    arguments = about["arguments"]
    about = {**about, "warnings": noise(about["load_average"][0], [], {})}
    served = arguments["model"] if arguments["url"] == "None" else arguments["url"]
    caption = (
        f"{about['processor']}, {arguments['cores']} cores, commit {about['commit'] or '?'}, {served}, "
        f"{arguments['dtype']}. The highest Poisson rate at which p95 is at most {arguments['bound']} s, within a "
        f"factor of {arguments['precision']}; medians of {arguments['rounds']} rounds."
    )
    latencies = [median(getattr(probe, name) for probe in best) for name in ("p50", "p95", "p99")]
    row = [f"{median(probe.rate for probe in best):.1f}", *(f"{1000 * latency:.0f}" for latency in latencies)]
    results = table("serve", COLUMNS, [row], caption, left=0)
    show([results, *(f"warning: {warning}" for warning in about["warnings"])], output / "serve.txt")
    values = {"best": list(map(asdict, best)), "rounds": [list(map(asdict, probes)) for probes in rounds]}
    write_json(output / "serve.json", {"conditions": about, **values})
