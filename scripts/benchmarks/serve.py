"""How many single sentences a second are served in time, when they arrive at random (Poisson) and differ in length.

    python scripts/benchmark.py serve MODEL --source tatoeba/dev.en-de.tsv.xz --reference-lengths --output DIR
    python scripts/benchmark.py serve --random big --source tatoeba/dev.en-de.tsv.xz docs/dev.en-de.tsv.xz --output DIR
    python scripts/benchmark.py serve MODEL --source dev.en --output DIR --http        # python -m service, started here
    python scripts/benchmark.py serve MODEL --source dev.en --output DIR --url http://host:8000

Found by bisection: the highest rate at which the latency that 95 of 100 stay under is within the bound. In the engine:
continuous batching beside the same engine with length-sorted static batches, probe by probe in turn. Over HTTP: one
client, as many connections as it takes. Each probe lasts --seconds, and a round has its own arrivals.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, zip_longest
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from mt.data.corpus import read_lines, read_tsv
from mt.engine.engine import Engine
from mt.engine.messages import Request
from mt.engine.translator import Translator
from mt.errors import DataError, MTError, RequestError

from .harness import cpu_seconds
from .measure import Ratio, noise, ratio, watching
from .policies import StaticBatches, policies
from .queueing import Bisection, Drive, Probe, poisson_arrivals
from .report import conditions, cores, table, write_json, write_table
from .untrained import SIZES, untrained_model

READ = 20_000  # lines of each file, of which the sample is drawn
CAPACITY_SENTENCES = 400
COLUMNS = ("what", "sentences/s in time", "p50 ms", "p95 ms", "p99 ms", "ratio (rounds)")

Probing = Callable[[float, int], Sequence[float]]
"""A rate and a seed for the arrivals -> latencies."""


@dataclass
class Row:
    """One way to serve: all probes of each round, and the highest rate of each that was served in time."""

    name: str
    rounds: list[list[Probe]] = field(default_factory=list)
    best: list[Probe] = field(default_factory=list)
    neighbours: list[float] = field(default_factory=list)
    ratio: Ratio | None = None

    @property
    def rates(self) -> list[float]:
        return [probe.rate for probe in self.best]


@dataclass(frozen=True)
class Way:
    """A row's name and how a rate is tried."""

    name: str
    probe: Probing
    guess: float
    watched: bool = True  # whether the work is this process's own, so that others' can be told apart


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(rounds=3)
    parser.add_argument("model", type=Path, nargs="?", help="a model directory of one direction")
    parser.add_argument("--random", choices=SIZES, help="an untrained model of this size; implies --reference-lengths")
    parser.add_argument(
        "--source", type=Path, nargs="+", required=True, help="a sentence a line, or .tsv with it first; equal shares"
    )
    parser.add_argument("--http", action="store_true", help="through python -m service instead, started for it")
    parser.add_argument("--url", help="through a service that runs already")
    parser.add_argument("--reference-lengths", action="store_true", help="translations as long as .tsv's second column")
    parser.add_argument("--sample", type=int, default=3000, help="sentences to draw (default: 3000)")
    parser.add_argument("--bound", type=float, default=0.5, help="seconds for 95 of 100 (default: 0.5)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of traffic, at least, each probe (default: 20)")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--cores", type=int, default=cores(), help="that translate (default: all)")
    parser.add_argument("--precision", type=float, default=1.05, help="of the rate, as a factor (default: 1.05)")


def run(options: argparse.Namespace) -> None:
    """Raises MTError for what the user can put right."""
    over_http = options.http or options.url
    if (options.model is None) == (options.random is None):
        raise MTError("serve needs a MODEL directory or --random SIZE, and not both")
    if options.random and over_http:
        raise MTError("--random is for the engine: a service cannot be told how long its translations shall be")
    console = Console(stderr=True)
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    before = conditions()
    if over_http:
        if not find_spec("httpx"):
            raise MTError("serve over HTTP needs httpx, which is not installed; accepted: pip install httpx")
        lines = [line for line, _ in sample(options.source, options.sample)]
        http = import_module("scripts.benchmarks.serve_http")  # httpx is no dependency of ours
        with http.service(options.url, options.model, options.dtype, options.cores, output) as client:
            probe = _http_probe(client, lines, options)
            rows = search([Way("HTTP", probe, 20.0, watched=False)], options, console)
    else:
        rows = search(_engine_ways(options), options, console)
    first = rows[0]
    for row in rows[1:]:
        row.ratio = ratio(row.rates, first.rates)
    _write(output, rows, {**before, "arguments": {name: str(value) for name, value in vars(options).items()}})


def search(ways: Sequence[Way], options: argparse.Namespace, console: Console) -> list[Row]:
    """A bisection a way and round; their probes take turns."""
    rows = [Row(way.name) for way in ways]
    for number in range(options.rounds):
        bisections = [
            Bisection(median(row.rates) if row.rates else way.guess, options.precision)
            for way, row in zip(ways, rows, strict=True)
        ]
        for row in rows:
            row.rounds.append([])
        while not all(bisection.done for bisection in bisections):
            for way, row, bisection in zip(ways, rows, bisections, strict=True):
                if bisection.done:
                    continue
                rate = bisection.rate
                found, others = _tried(way, rate, number, options.bound)
                if way.watched and others is not None:
                    row.neighbours.append(others)
                bisection.tell(rate, found.p95 <= options.bound)
                row.rounds[-1].append(found)
                if bisection.hopeless:
                    raise MTError(
                        f"{way.name}: not even {rate:.2g} sentences a second meet the bound; accepted: a longer --bound"
                    )
                said = f"{way.name}: {rate:.1f}/s, p95 {1000 * found.p95:.0f} ms, others {others or 0:.2f} cores"
                console.print(f"round {number + 1}: {said}", highlight=False)
        for row, bisection in zip(rows, bisections, strict=True):
            row.best.append(next(probe for probe in row.rounds[-1] if probe.rate == bisection.passed))
    return rows


def _tried(way: Way, rate: float, seed: int, bound: float) -> tuple[Probe, float | None]:
    """A probe, and how many cores others kept busy meanwhile. What misses the bound is tried once more: one stray
    moment of the machine must not end a search."""
    for _ in range(2):
        used = cpu_seconds()
        with watching(partial(_used_since, used)) as neighbours:
            found = Probe.of(rate, way.probe(rate, seed))
        if found.p95 <= bound:
            break
    return found, neighbours.cores


def _used_since(before: float) -> float:
    return cpu_seconds() - before


def sample(paths: Sequence[Path], count: int) -> list[tuple[str, str]]:
    """Sentences and their references (empty where a file has none), in equal shares, shuffled, always the same."""
    random = Random(0)
    shares = []
    for path in paths:
        if ".tsv" in path.suffixes:
            pairs = [(pair.source, pair.target) for pair in islice(read_tsv(path, 0, 1), READ)]
        else:
            pairs = [(line, "") for line in islice(read_lines(path), READ)]
        pairs = [pair for pair in pairs if pair[0].strip()]
        shares.append(random.sample(pairs, min(len(pairs), -(-count // len(paths)))))
    mixed = [pair for pairs in zip_longest(*shares) for pair in pairs if pair is not None]
    random.shuffle(mixed)
    return mixed


def _engine_ways(options: argparse.Namespace) -> list[Way]:
    """Each policy over one decoder; the first guess is what all waiting at once take, less a third."""
    pairs = sample(options.source, options.sample)
    model: Path = options.model
    reference_lengths = options.reference_lengths or bool(options.random)
    if reference_lengths and not all(target for _, target in pairs):
        raise DataError("lengths of references need references: .tsv files with two columns")
    if options.random:
        texts = [text for pair in pairs for text in pair]
        model, _ = untrained_model(options.random, texts, options.output / "models")
    translator = Translator.load(model, "cpu", options.dtype, 1)
    assert isinstance(translator.engine, Engine)
    decoder, limits = translator.engine.runner.decoder, translator.engine.scheduler.limits
    requests = requests_of(translator, pairs, options.beam_size, reference_lengths)
    ways = []
    for name, start in policies(decoder, limits, options.cores).items():

        def probe(rate: float, seed: int, start: Any = start) -> list[float]:
            server = start()
            arrivals = poisson_arrivals(rate, options.seconds, 200, seed)
            try:
                return Drive[Request]().run(server, requests, arrivals, options.bound)
            finally:
                if isinstance(server, StaticBatches):
                    server.close()

        at_once = min(CAPACITY_SENTENCES, len(requests))
        latencies = Drive[Request]().run(start(), requests, [0.0] * at_once, 1e9)
        ways.append(Way(name, probe, at_once / max(latencies) / 1.5))
    return ways


def requests_of(
    translator: Translator, pairs: Sequence[tuple[str, str]], beam_size: int, reference_lengths: bool
) -> list[Request]:
    """The sentences that the model can take, encoded."""
    search = replace(translator.options, beam_size=beam_size, n_best=1)
    found = []
    for source, target in pairs:
        wanted = search
        if reference_lengths:
            length = min(1 + len(translator.tokenizer.encode(target)), search.max_length)
            wanted = replace(search, min_length=length, max_length=length, max_length_offset=length)
        try:
            request = translator.request(source, options=wanted)
        except RequestError:  # longer than the model's limit: whoever serves it splits it first
            continue
        if request:
            found.append(request)
    return found


def _http_probe(client: Any, lines: Sequence[str], options: argparse.Namespace) -> Probing:
    def probe(rate: float, seed: int) -> Sequence[float]:
        arrivals = poisson_arrivals(rate, options.seconds, 200, seed)
        found: Sequence[float] = client.run(lines, arrivals, options.bound)
        return found

    return probe


def _write(output: Path, rows: Sequence[Row], about: dict[str, Any]) -> None:
    arguments = about["arguments"]
    warnings = noise(about["load_average"][0], [cores for row in rows for cores in row.neighbours], {})
    about = {**about, "warnings": warnings}
    over_http = [row.name for row in rows] == ["HTTP"]
    model = arguments["model"] if arguments["random"] == "None" else f"untrained {arguments['random']}"
    beam = "the service's own beam" if over_http else f"beam {arguments['beam_size']}"
    caption = (
        f"{about['processor']}, {arguments['cores']} cores, commit {about['commit'] or '?'}, "
        f"{model}, {beam}, {arguments['dtype']}. The highest Poisson rate at which p95 is at most "
        f"{arguments['bound']} s, within a factor of {arguments['precision']}; "
        f"medians of {arguments['rounds']} rounds; ratio to the first row."
    )
    found = table("serve", COLUMNS, [cells(row) for row in rows], caption, left=1)
    parts: list[Table | str] = [found, *(f"warning: {warning}" for warning in warnings)]
    Console(width=160).print(*parts, sep="\n")
    write_table(output / "serve.txt", parts)
    write_json(output / "serve.json", {"conditions": about, "rows": [asdict(row) for row in rows]})
    plot_curves(output / "serve.png", rows, float(arguments["bound"]))


def cells(row: Row) -> list[str]:
    """A row of the table."""
    latencies = [median(getattr(probe, name) for probe in row.best) for name in ("p50", "p95", "p99")]
    compared = f"{row.ratio.value:.2f} ({row.ratio.low:.2f}-{row.ratio.high:.2f})" if row.ratio else ""
    return [row.name, f"{median(row.rates):.1f}", *(f"{1000 * latency:.0f}" for latency in latencies), compared]


def plot_curves(path: Path, rows: Sequence[Row], bound: float) -> None:
    """Latency against the rate, a panel a percentile, all probes of all rounds; those that broke down are left out."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    for place, name in enumerate(("p50", "p95", "p99")):
        axis = figure.add_subplot(1, 3, place + 1)
        for row in rows:
            probes = sorted((probe for each in row.rounds for probe in each), key=lambda probe: probe.rate)
            served = [probe for probe in probes if probe.p99 < float("inf")]
            latencies = [1000 * getattr(probe, name) for probe in served]
            axis.plot([probe.rate for probe in served], latencies, marker="o", markersize=3, label=row.name)
        axis.axhline(1000 * bound, color="#888888", linestyle="--", linewidth=1)
        axis.set(title=name, xlabel="sentences/s", yscale="log")
    figure.axes[0].set_ylabel("latency, ms")
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)
