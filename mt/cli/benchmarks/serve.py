"""Find the highest rate of single sentences at which the 95th percentile of latency is within a bound.

    mt-service benchmark serve MODEL --source tatoeba/dev.en-de.tsv.xz --reference-lengths --output DIR
    mt-service benchmark serve --random big --source tatoeba/dev.en-de.tsv.xz docs/dev.en-de.tsv.xz --output DIR
    mt-service benchmark serve MODEL --source dev.en --output DIR --http        # python -m service, started here
    mt-service benchmark serve MODEL --source dev.en --output DIR --url http://host:8000

The sentences arrive at random times (Poisson process). The rate is found by bisection; the bound is --bound. A test at
one rate is called a probe, and takes at least --seconds. Each round has other arrival times. Without --http and --url,
continuous batching in the engine is compared with static batches that are sorted by length, in alternating probes. Over
HTTP, one client uses as many connections as needed.
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

from mt.cli.command import CommandParser
from mt.data.corpus import read_lines, read_tsv
from mt.engine.devices import available_cores
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.errors import DataError, MTError, RequestError
from mt.pipeline.translator import Translator

from .harness import cpu_seconds
from .measure import Ratio, noise, ratio, watching
from .policies import StaticBatches, policies
from .queueing import Bisection, OpenLoopLoad, Probe, poisson_arrivals
from .report import conditions, table, write_json, write_table
from .untrained import SIZES, untrained_model

READ = 20_000  # lines of each file from which the sample is drawn
CAPACITY_SENTENCES = 400
COLUMNS = ("what", "sentences/s in time", "p50 ms", "p95 ms", "p99 ms", "ratio (rounds)")

Probing = Callable[[float, int], Sequence[float]]
"""Function that makes a probe: its parameters are a rate and a seed for the arrival times. It returns latencies."""


@dataclass
class ServeRow:
    """Results of one policy. `rounds` has all probes of each round.

    `best` has one probe for each round: the probe with the highest rate at which the latency was within the bound.
    """

    name: str
    rounds: list[list[Probe]] = field(default_factory=list)
    best: list[Probe] = field(default_factory=list)
    neighbours: list[float] = field(default_factory=list)
    ratio: Ratio | None = None

    @property
    def rates(self) -> list[float]:
        return [probe.rate for probe in self.best]


@dataclass(frozen=True)
class ServeSetting:
    """A policy to measure: its name, the function that makes a probe, and the first rate of the bisection."""

    name: str
    probe: Probing
    guess: float
    watched: bool = True  # whether this process does the work; then all other load is that of other programs


def add_arguments(parser: CommandParser) -> None:
    parser.set_defaults(rounds=3)
    parser.add_argument("model", type=Path, nargs="?", help="a model directory of one direction")
    parser.more.add_argument(
        "--random", choices=SIZES, help="an untrained model of this size; implies --reference-lengths"
    )
    parser.more.add_argument(
        "--source",
        type=Path,
        nargs="+",
        required=True,
        help="files with one sentence a line, or .tsv with sentences in the first column",
    )
    parser.more.add_argument(
        "--http", action="store_true", help="measure over HTTP; the benchmark starts python -m service"
    )
    parser.more.add_argument("--url", help="measure over HTTP; use the running service at this URL")
    parser.more.add_argument(
        "--reference-lengths",
        action="store_true",
        help="force translations to the length of the references in the .tsv's second column",
    )
    parser.more.add_argument("--sample", type=int, default=3000, help="sentences to draw (default: 3000)")
    parser.more.add_argument(
        "--bound", type=float, default=0.5, help="bound of the 95th percentile of latency in seconds (default: 0.5)"
    )
    parser.more.add_argument("--seconds", type=float, default=20.0, help="shortest duration of a probe (default: 20)")
    parser.more.add_argument("--beam-size", type=int, default=5)
    parser.more.add_argument("--dtype", default="auto")
    parser.more.add_argument("--cores", type=int, default=available_cores(), help="cores that translate (default: all)")
    parser.more.add_argument(
        "--precision", type=float, default=1.05, help="precision of the rate, as a factor (default: 1.05)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, and write the results. Raises: MTError if the options cannot be used or the service fails."""
    over_http = options.http or options.url
    if (options.model is None) == (options.random is None):
        raise MTError("serve needs a MODEL directory or --random SIZE, and not both")
    if options.random and over_http:
        raise MTError(
            "--random cannot be used with --http or --url: a service cannot force the length of its translations"
        )
    console = Console(stderr=True)
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    before = conditions()
    if over_http:
        if not find_spec("httpx"):
            raise MTError("serve over HTTP needs httpx, which is not installed; accepted: pip install httpx")
        lines = [line for line, _ in sample(options.source, options.sample)]
        http = import_module("mt.cli.benchmarks.serve_http")  # httpx is no dependency of ours
        with http.service(options.url, options.model, options.dtype, options.cores, output) as client:
            probe = _http_probe(client, lines, options)
            rows = search([ServeSetting("HTTP", probe, 20.0, watched=False)], options, console)
    else:
        rows = search(_engine_settings(options), options, console)
    first = rows[0]
    for row in rows[1:]:
        row.ratio = ratio(row.rates, first.rates)
    _write(output, rows, {**before, "arguments": {name: str(value) for name, value in vars(options).items()}})


def search(settings: Sequence[ServeSetting], options: argparse.Namespace, console: Console) -> list[ServeRow]:
    """Find the highest rate of each policy in each round by bisection. Return a row for each policy.

    The policies of a round make their probes in turn. Raises: MTError if the latency of a policy exceeds the bound
    even at a very low rate.
    """
    rows = [ServeRow(setting.name) for setting in settings]
    for number in range(options.rounds):
        bisections = [
            Bisection(median(row.rates) if row.rates else setting.guess, options.precision)
            for setting, row in zip(settings, rows, strict=True)
        ]
        for row in rows:
            row.rounds.append([])
        while not all(bisection.done for bisection in bisections):
            for setting, row, bisection in zip(settings, rows, bisections, strict=True):
                if bisection.done:
                    continue
                rate = bisection.rate
                probe, others = _run_probe(setting, rate, number, options.bound)
                if setting.watched and others is not None:
                    row.neighbours.append(others)
                bisection.report(rate, probe.p95 <= options.bound)
                row.rounds[-1].append(probe)
                if bisection.unreachable:
                    raise MTError(
                        f"{setting.name}: the latency exceeds --bound even at {rate:.2g} sentences a second; accepted: "
                        "a longer --bound"
                    )
                progress = (
                    f"{setting.name}: {rate:.1f}/s, p95 {1000 * probe.p95:.0f} ms, others {others or 0:.2f} cores"
                )
                console.print(f"round {number + 1}: {progress}", highlight=False)
        for row, bisection in zip(rows, bisections, strict=True):
            row.best.append(next(probe for probe in row.rounds[-1] if probe.rate == bisection.passed))
    return rows


def _run_probe(setting: ServeSetting, rate: float, seed: int, bound: float) -> tuple[Probe, float | None]:
    """Make a probe, and repeat it once if it exceeds the bound. Return (probe, cores that other processes used)."""
    for _ in range(2):
        used = cpu_seconds()
        with watching(partial(_used_since, used)) as other_load:
            probe = Probe.of(rate, setting.probe(rate, seed))
        if probe.p95 <= bound:
            break
    return probe, other_load.cores


def _used_since(before: float) -> float:
    return cpu_seconds() - before


def sample(paths: Sequence[Path], count: int) -> list[tuple[str, str]]:
    """Return about `count` random pairs (sentence, reference or ""), in random order.

    Each file contributes the same number of pairs, if it has enough. The result is the same in each call.
    """
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


def _engine_settings(options: argparse.Namespace) -> list[ServeSetting]:
    """Return the setting of each policy in the engine.

    The first rate of the bisection is 2/3 of the rate at which the policy serves requests that all arrive at once.
    """
    pairs = sample(options.source, options.sample)
    model: Path = options.model
    reference_lengths = options.reference_lengths or bool(options.random)
    if reference_lengths and not all(target for _, target in pairs):
        raise DataError("--reference-lengths: a sentence has no reference; accepted: .tsv files with two columns")
    if options.random:
        texts = [text for pair in pairs for text in pair]
        model, _ = untrained_model(options.random, texts, options.output / "models")
    translator = Translator.load(model, "cpu", options.dtype, 1)
    assert isinstance(translator.engine, Engine)
    decoder, limits = translator.engine.decoder, translator.engine.scheduler.limits
    requests = requests_of(translator, pairs, options.beam_size, reference_lengths)
    settings = []
    for name, start in policies(decoder, limits, options.cores).items():

        def probe(rate: float, seed: int, start: Any = start) -> list[float]:
            server = start()
            arrivals = poisson_arrivals(rate, options.seconds, 200, seed)
            try:
                return OpenLoopLoad[Request]().run(server, requests, arrivals, options.bound)
            finally:
                if isinstance(server, StaticBatches):
                    server.close()

        at_once = min(CAPACITY_SENTENCES, len(requests))
        latencies = OpenLoopLoad[Request]().run(start(), requests, [0.0] * at_once, 1e9)
        settings.append(ServeSetting(name, probe, at_once / max(latencies) / 1.5))
    return settings


def requests_of(
    translator: Translator, pairs: Sequence[tuple[str, str]], beam_size: int, reference_lengths: bool
) -> list[Request]:
    """Return requests for the sentences of `pairs`, without empty sentences and those that are too long for the model.

    If `reference_lengths` is true, each translation must have as many tokens as the reference.
    """
    search = replace(translator.options, beam_size=beam_size, n_best=1)
    requests = []
    for source, target in pairs:
        fitted = search
        if reference_lengths:
            length = min(1 + len(translator.tokenizer.encode(target)), search.max_length)
            fitted = replace(search, min_length=length, max_length=length, max_length_offset=length)
        try:
            request = translator.request(source, options=fitted)
        except RequestError:  # longer than the model's limit; the service would split it
            continue
        if request:
            requests.append(request)
    return requests


def _http_probe(client: Any, lines: Sequence[str], options: argparse.Namespace) -> Probing:
    def probe(rate: float, seed: int) -> Sequence[float]:
        arrivals = poisson_arrivals(rate, options.seconds, 200, seed)
        latencies: Sequence[float] = client.run(lines, arrivals, options.bound)
        return latencies

    return probe


def _write(output: Path, rows: Sequence[ServeRow], about: dict[str, Any]) -> None:
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
    results = table("serve", COLUMNS, [cells(row) for row in rows], caption, left=1)
    parts: list[Table | str] = [results, *(f"warning: {warning}" for warning in warnings)]
    Console(width=160).print(*parts, sep="\n")
    write_table(output / "serve.txt", parts)
    write_json(output / "serve.json", {"conditions": about, "rows": [asdict(row) for row in rows]})
    plot_curves(output / "serve.png", rows, float(arguments["bound"]))


def cells(row: ServeRow) -> list[str]:
    """Return the texts of a row of the table."""
    latencies = [median(getattr(probe, name) for probe in row.best) for name in ("p50", "p95", "p99")]
    compared = f"{row.ratio.value:.2f} ({row.ratio.low:.2f}-{row.ratio.high:.2f})" if row.ratio else ""
    return [row.name, f"{median(row.rates):.1f}", *(f"{1000 * latency:.0f}" for latency in latencies), compared]


def plot_curves(path: Path, rows: Sequence[ServeRow], bound: float) -> None:
    """Plot latency over rate, in one diagram for each percentile. Probes with unanswered requests are left out."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    for place, name in enumerate(("p50", "p95", "p99")):
        axis = figure.add_subplot(1, 3, place + 1)
        for row in rows:
            probes = sorted((probe for probes in row.rounds for probe in probes), key=lambda probe: probe.rate)
            served = [probe for probe in probes if probe.p99 < float("inf")]
            latencies = [1000 * getattr(probe, name) for probe in served]
            axis.plot([probe.rate for probe in served], latencies, marker="o", markersize=3, label=row.name)
        axis.axhline(1000 * bound, color="#888888", linestyle="--", linewidth=1)
        axis.set(title=name, xlabel="sentences/s", yscale="log")
    figure.axes[0].set_ylabel("latency, ms")
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)
