"""How much of the engine's own rate the service gives to clients: sentences/s over HTTP, and how long each waits.

    python scripts/benchmark.py http MODEL --source dev.en --output benchmarks/http

In turn, in each round, the same sentences: Translator.translate in a process of its own, with all of them in one call
(bulk); `python -m service`, started here without its cache, with 16 sentences a request and with one; and, likewise, a
server that translates one text after another behind a lock, as LibreTranslate does, with the same engine. Clients send
the next request when one is answered: --in-flight sentences are on their way at any time.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from mt.data.corpus import read_lines
from mt.errors import DataError

from .contender import Contender, Launch
from .harness import Job, Setup
from .load_client import Answers, Load
from .load_client import run as send
from .measure import Ratio, alternate, noise, percentile, ratio, spread
from .peers import one_direction
from .programs import Program, started
from .report import conditions, cores, table, write_json, write_table

BULK = "engine, bulk"
COLUMNS = (
    *("what", "sentences a request", "sentences/s", "of bulk (rounds)", "of one by one (rounds)"),
    *("p50 ms", "p95 ms", "p99 ms", "same as bulk", "target"),
)
TARGETS = {16: 0.85, 1: 0.60}  # of the bulk rate, by sentences a request
LONGEST = 1.0  # seconds that p99 may be


@dataclass
class Row:
    """What one contender did in each round."""

    name: str
    texts_a_request: int = 0  # all in one call
    rates: list[float] = field(default_factory=list)
    latencies: list[tuple[float, ...]] = field(default_factory=list)
    same: float = 1.0  # share of translations that equal those of bulk
    of_bulk: Ratio | None = None
    of_one_by_one: Ratio | None = None

    def add(self, answers: Answers, expected: Sequence[str]) -> None:
        self.rates.append(answers.rate)
        self.latencies.append(answers.latencies)
        equal = sum(one == other for one, other in zip(answers.translations, expected, strict=True))
        self.same = min(self.same, equal / len(expected))

    def latency(self, percent: float) -> float:
        """The median over rounds of each round's percentile."""
        return median(percentile(each, percent) for each in self.latencies)

    @property
    def verdict(self) -> str:
        """Whether the targets are met; empty where there are none."""
        wanted = TARGETS.get(self.texts_a_request)
        if self.of_bulk is None or wanted is None or not self.name.startswith("service"):
            return ""
        met = self.of_bulk.value >= wanted and self.latency(99) < LONGEST
        return f"{'met' if met else 'missed'}: {wanted:.0%}, {LONGEST:g} s"


@dataclass(frozen=True)
class Way:
    """How a row is measured."""

    row: Row
    measure: Callable[[], Answers]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a model directory of one direction")
    parser.add_argument("--source", type=Path, required=True, help="a sentence a line")
    parser.add_argument("--sentences", type=int, default=1000, help="different ones, in a round (default: 1000)")
    parser.add_argument("--in-flight", type=int, default=96, help="sentences on their way at a time (default: 96)")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--cores", type=int, default=cores(), help="that translate (default: all)")


def run(options: argparse.Namespace) -> None:
    """Raises MTError for what the user can put right."""
    console = Console(stderr=True)
    options.output.mkdir(parents=True, exist_ok=True)
    source, target = one_direction(options.model).split("-")
    texts = distinct(options.source, options.sentences)
    before = conditions()
    with ExitStack() as stack:
        bulk = stack.enter_context(_bulk(options, texts))
        expected = bulk().translations  # and everybody is warm
        ways = [Way(Row(BULK), bulk)]
        for name, program in _programs(options):
            port = stack.enter_context(started(name, program, options.output))
            for size in TARGETS:
                load = Load(texts, size, max(1, options.in_flight // size))
                ways.append(Way(Row(name, size), partial(send, port, load, source, target)))
                ways[-1].measure()
        for number, place, answers in alternate(ways, options.rounds, lambda way: way.measure()):
            ways[place].row.add(answers, expected)
            console.print(f"round {number + 1}: {_said(ways[place].row)}", highlight=False)
    rows = [way.row for way in ways]
    compare(rows)
    _write(options, rows, before)


def distinct(path: Path, count: int) -> tuple[str, ...]:
    """The first lines, each once: a service may answer what it is asked twice at a time by translating it once.
    Raises DataError."""
    lines = (line.strip() for line in read_lines(path))
    found = tuple(islice(dict.fromkeys(line for line in lines if line), count))
    if len(found) < count:
        raise DataError(f"{path}: {len(found)} different sentences; accepted: {count}, or fewer --sentences")
    return found


def compare(rows: Sequence[Row]) -> None:
    """Each beside the bulk rate, and beside one by one with as many sentences a request."""
    bulk = next(row for row in rows if row.name == BULK)
    slow = {row.texts_a_request: row for row in rows if row.name == "one by one"}
    for row in rows:
        if row is not bulk:
            row.of_bulk = ratio(row.rates, bulk.rates)
        if row.name == "service":
            row.of_one_by_one = ratio(row.rates, slow[row.texts_a_request].rates)


def cells(row: Row) -> list[str]:
    """A row of the table."""
    latencies = ["", "", ""]
    if row.texts_a_request:
        latencies = [f"{1000 * row.latency(percent):.0f}" for percent in (50, 95, 99)]
    return [
        row.name,
        str(row.texts_a_request or "all"),
        f"{median(row.rates):.1f}",
        *(
            f"{each.value:.2f} ({each.low:.2f}-{each.high:.2f})" if each else ""
            for each in (row.of_bulk, row.of_one_by_one)
        ),
        *latencies,
        f"{row.same:.1%}",
        row.verdict,
    ]


def _compared(found: Ratio | None) -> str:
    return f"{found.value:.2f} ({found.low:.2f}-{found.high:.2f})" if found else ""


def _programs(options: argparse.Namespace) -> Iterator[tuple[str, Program]]:
    model, threads = str(options.model), str(options.cores)
    service = ("--model", model, "--port", "0", "--device", "cpu", "--dtype", options.dtype, "--threads", threads)
    quiet = ("--cache-characters", "0", "--log-json", "true", "--max-pending-requests", str(2 * options.in_flight))
    yield "service", Program("service", (*service, *quiet))
    yield (
        "one by one",
        Program("scripts.benchmarks.one_by_one", (model, "--dtype", options.dtype, "--threads", threads)),
    )


@contextmanager
def _bulk(options: argparse.Namespace, texts: Sequence[str]) -> Iterator[Callable[[], Answers]]:
    """Measures the engine, which is in a process of its own meanwhile."""
    source = options.output / "sentences.txt"
    source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    setup = Setup(str(options.model), str(source), options.dtype, options.cores)
    config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
    job = Job(config["decoding"]["beam_size"], len(texts), text=True, keep_lines=True)
    with Contender(BULK, Launch("scripts.benchmarks.peer_plain", setup), options.output / "bulk.log") as contender:

        def measure() -> Answers:
            answer = contender.run(job)
            return Answers(answer.seconds, (), answer.lines)

        yield measure


def _said(row: Row) -> str:
    waited = f", p99 {1000 * percentile(row.latencies[-1], 99):.0f} ms" if row.latencies[-1] else ""
    return f"{row.name}, {row.texts_a_request or 'all'} a request: {row.rates[-1]:.1f} sentences/s{waited}"


def _write(options: argparse.Namespace, rows: Sequence[Row], about: dict[str, Any]) -> None:
    spreads = {f"{row.name}, {row.texts_a_request}": spread(row.rates) for row in rows}
    warnings = noise(about["load_average"][0], [], spreads)
    arguments = {name: str(value) for name, value in vars(options).items()}
    about = {**about, "arguments": arguments, "warnings": warnings}
    caption = (
        f"{about['processor']}, {options.cores} cores, commit {about['commit'] or '?'}, the model's own beam, "
        f"{options.dtype}; {options.sentences} different sentences, {options.in_flight} in flight; clients on the same "
        f"machine; medians of {options.rounds} rounds."
    )
    parts: list[Table | str] = [
        table("http", COLUMNS, [cells(row) for row in rows], caption, left=1),
        *(f"warning: {warning}" for warning in warnings),
    ]
    Console(width=200).print(*parts, sep="\n")
    write_table(options.output / "http.txt", parts)
    write_json(options.output / "http.json", {"conditions": about, "rows": [asdict(row) for row in rows]})
