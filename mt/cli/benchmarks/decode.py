"""Translation speed compared with CTranslate2 and transformers, in bulk and one sentence at a time.

    mt-service benchmark decode MODEL --source test.en --reference test.de --transformers MARIAN_DIR --output DIR
    mt-service benchmark decode --random base --source test.en --beam-size 4 --sentences 200 --output DIR
    mt-service benchmark decode STUDENT --beside TEACHER --only ours beside --source test.en --output DIR

The compared libraries and models are called contenders. All run the same search: equal beam size, scores divided by
length, at most 2 x source + 10 tokens. All use the same weights, except the model of --beside, which can also have its
own beam size. Each contender is a process that is idle while another one is measured. First, short runs find the
fastest settings of each contender.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from mt import evaluation
from mt.cli.command import CommandParser
from mt.data.corpus import read_lines
from mt.engine.devices import available_cores
from mt.errors import DataError, MTError
from mt.languages import Direction

from .contender import Contender, ContenderError
from .grid import Trial, Variant, best_variant
from .harness import PeerJob, PeerResult
from .measure import QUIET_LOAD, Ratio, alternate, noise, percentile, ratio, spread, watching
from .peers import DEVICES, OUR_DTYPES, Metric, PeerEntry, PeerModels, choose_direction, entries, export
from .report import conditions, show, table, write_json
from .untrained import SIZES, untrained_models

COLUMNS = (
    *("metric", "contender", "settings", "sentences/s", "tokens/s", "with tokenisation", "p50 ms", "p95 ms"),
    *("ratio (rounds)", "BLEU", "same", "peak MB", "start s", "disk MB"),
)


@dataclass
class DecodeRow:
    """Results of one contender for one metric. Each list has one entry per round, or none if there is a `problem`.

    `ids` and `text` are the results of jobs that translate token ids and text. `lines` are the translations.
    """

    metric: Metric
    name: str
    settings: str = ""
    problem: str = ""
    ids: list[PeerResult] = field(default_factory=list)
    text: list[PeerResult] = field(default_factory=list)
    neighbours: list[float] = field(default_factory=list)
    lines: tuple[str, ...] = ()
    bleu: float | None = None
    same: float | None = None
    ratio: Ratio | None = None
    startup_seconds: float = 0.0
    size_bytes: int = 0
    sentences: int = 0

    @property
    def costs(self) -> list[float]:
        """Seconds of each round: the total in bulk, or the median of all sentences if they are translated singly."""
        return [percentile(a.latencies, 50) if self.metric.single else a.seconds for a in self.ids]

    @property
    def peak_bytes(self) -> int:
        return max(answer.peak_bytes for answer in (*self.ids, *self.text))

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values, without the translations."""
        return {
            **asdict(self),
            "metric": self.metric.label,
            "lines": None,
            "ids": [asdict(answer) for answer in self.ids],
            "text": [{**asdict(answer), "lines": None} for answer in self.text],
        }


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("model", nargs="?", type=Path, help="a model directory")
    more = parser.more.add_argument
    more("--random", choices=SIZES, help="measure an untrained model of this size")
    more("--source", type=Path, required=True, help="file with one sentence a line; may be .gz or .xz")
    more("--reference", type=Path, help="reference translations, for BLEU")
    more("--direction", metavar="L-L", help="direction, if the model has several")
    more("--transformers", type=Path, metavar="DIR", help="model directory of transformers with the same weights")
    more("--beside", type=Path, metavar="DIR", help="another model of ours to compare with, such as the teacher")
    more("--beam-size", type=int, nargs="+", default=[1, 5])
    more("--beside-beam-size", type=int, metavar="N", help="beam size of --beside (default: that of the others)")
    more("--settings", nargs="+", choices=["bulk", "single"], default=["bulk", "single"])
    more("--device", choices=DEVICES, default="cpu", help="device of all contenders (default: cpu)")
    more("--dtype", nargs="+", help="dtypes of our model (default: float32 int8 on a CPU, else bfloat16)")
    more("--sentences", type=int, default=1000, help="sentences in bulk (default: 1000)")
    more("--single-sentences", type=int, default=200, help="sentences one at a time (default: 200)")
    more(
        "--grid-sentences", type=int, default=400, help="sentences of a short run that compares settings (default: 400)"
    )
    more("--cores", type=int, default=available_cores(), help="cores of each contender (default: all)")
    more("--only", nargs="+", help="run only contenders whose names begin with one of these (default: all)")


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, and write the results. If a contender fails, the table has a row with the error.

    Raises: MTError if the options or input files cannot be used.
    """
    console = Console(stderr=True)
    output: Path = options.output
    lines, references = _texts(options)
    output.mkdir(parents=True, exist_ok=True)
    source = output / "source.txt"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options.dtype = options.dtype or list(OUR_DTYPES[options.device])
    models, language = _models(options, lines, source)
    before = conditions()
    if before["load_average"][0] > QUIET_LOAD:
        console.print(f"warning: the load average is {before['load_average'][0]:.2f}: other processes use this machine")
    rows: list[DecodeRow] = []
    trials: list[Trial] = []
    for metric in [Metric(setting == "single", beam) for setting in options.settings for beam in options.beam_size]:
        contenders = [entry for entry in entries(models, metric, options.dtype) if _wanted(entry, options.only)]
        compared, tried = _compare(metric, contenders, options, console)
        _add_quality(compared, references, language)
        rows += compared
        trials += tried
    warnings = noise(
        before["load_average"][0],
        [cores for row in rows for cores in row.neighbours],
        {f"{row.metric.label}, {row.name}": spread(row.costs) for row in rows if row.ids},
    )
    _write(output, rows, trials, {**before, "arguments": _plain(options), "warnings": warnings})


def _texts(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return (sentences, references); without --reference, `references` is empty.

    Raises: MTError if a sentence is empty, or the numbers of sentences and references differ.
    """
    if (options.model is None) == (options.random is None):
        raise MTError("decode needs a MODEL directory or --random SIZE, and not both")
    if options.beside_beam_size is not None and (options.beside_beam_size < 1 or not options.beside):
        raise MTError(
            f"--beside-beam-size is {options.beside_beam_size}; accepted: a number from 1, together with --beside MODEL"
        )
    lines = [" ".join(line.split()) for line in islice(read_lines(options.source), options.sentences)]
    references = list(islice(read_lines(options.reference), options.sentences)) if options.reference else []
    if not all(lines):
        raise DataError(f"{options.source}: line {lines.index('') + 1} is empty; accepted: a sentence in each line")
    if references and len(references) != len(lines):
        raise DataError(
            f"{options.reference}: {len(references)} lines, but {options.source} has {len(lines)}; "
            "accepted: equal numbers of lines"
        )
    return lines, references


def _models(options: argparse.Namespace, lines: Sequence[str], source: Path) -> tuple[PeerModels, str]:
    """Return (models of all contenders, target language). Raises: MTError if a model cannot be used."""
    folder = options.output / "models"
    folder.mkdir(parents=True, exist_ok=True)
    if options.random:
        models = untrained_models(options.random, lines, source, folder, options.device)
        return replace(models, cores=options.cores), "de"
    direction, tagged = choose_direction(options.model, options.direction)
    exported = export(options.model, folder, options.device)
    if options.beside and choose_direction(options.beside, direction) != (direction, tagged):
        raise MTError(
            f"--beside {options.beside} has {'one direction' if tagged else 'several directions'}; accepted: a model "
            f"with {'several directions' if tagged else 'one direction'}, as {options.model}"
        )
    models = PeerModels(
        source, options.model, exported, options.transformers, (), options.cores, options.device, options.beside, tagged
    )
    return models, Direction.parse(direction).target


def _wanted(entry: PeerEntry, only: Sequence[str] | None) -> bool:
    return only is None or any(entry.name.startswith(name) for name in only)


def _compare(
    metric: Metric, contenders: Sequence[PeerEntry], options: argparse.Namespace, console: Console
) -> tuple[list[DecodeRow], list[Trial]]:
    """Choose the settings of each contender, start all contenders, and measure them in turn.

    Return a row for each contender, and the short runs that were made to choose settings.
    """
    log = options.output / "contenders.log"
    count = options.single_sentences if metric.single else options.sentences
    rows = [
        DecodeRow(
            metric_of(entry, metric, options.beside_beam_size),
            entry.name,
            problem=entry.problem,
            size_bytes=entry.size_bytes,
        )
        for entry in contenders
    ]
    trials: list[Trial] = []
    running: list[tuple[DecodeRow, Variant, Contender]] = []
    with ExitStack() as stack:
        for entry, row in zip(contenders, rows, strict=True):
            if row.problem:
                continue
            console.print(f"{row.metric.label}: {entry.name} ...", highlight=False)
            try:
                variant, tried = best_variant(entry, row.metric, options.grid_sentences, log)
                trials += tried
                contender = stack.enter_context(Contender(entry.name, variant.launch, log))
                answer = contender.run(_job(row, count, True, variant, keep_lines=True))
            except ContenderError as error:
                row.problem = str(error).splitlines()[0]
                console.print(row.problem, markup=False, highlight=False)
                continue
            row.settings, row.lines, row.sentences = variant.label, answer.lines, len(answer.lines)
            row.startup_seconds = contender.startup_seconds
            running.append((row, variant, contender))
        both = [(text, contender) for text in (False, True) for contender in running]  # every round measures both
        for number, place, (answer, others) in alternate(both, options.rounds, _measure(count)):
            text, (row, _, _) = both[place]
            (row.text if text else row.ids).append(answer)
            row.neighbours += [others] if others is not None else []
            progress = f"round {number + 1}, {'text' if text else 'ids'}: {row.name}"
            console.print(f"  {progress} {answer.seconds:.3f} s, others {others or 0:.2f} cores", highlight=False)
    return rows, trials


def metric_of(entry: PeerEntry, metric: Metric, beside_beam_size: int | None) -> Metric:
    """Return `metric` with the beam size of the contender `entry`: that of --beside can differ."""
    if beside_beam_size and entry.name.startswith("beside"):
        return replace(metric, beam_size=beside_beam_size)
    return metric


def _job(row: DecodeRow, count: int, text: bool, variant: Variant, keep_lines: bool = False) -> PeerJob:
    return PeerJob(row.metric.beam_size, count, row.metric.single, text, variant.batching, keep_lines)


def _measure(
    count: int,
) -> Callable[[tuple[bool, tuple[DecodeRow, Variant, Contender]]], tuple[PeerResult, float | None]]:
    def measure(job: tuple[bool, tuple[DecodeRow, Variant, Contender]]) -> tuple[PeerResult, float | None]:
        text, (row, variant, contender) = job
        answers: list[PeerResult] = []
        with watching(lambda: answers[0].cpu_seconds) as other_load:
            answers.append(contender.run(_job(row, count, text, variant)))
        return answers[0], other_load.cores

    return measure


def _add_quality(rows: Sequence[DecodeRow], references: Sequence[str], language: str) -> None:
    """Set `bleu`, `same` and `ratio` of each row.

    `same` is the fraction of translations that equal those of our first row. `ratio` compares the speed with that of
    the fastest row of CTranslate2 or, if there is none, of another library.
    """
    measured = [row for row in rows if row.ids]
    first = next((row for row in measured if row.name.startswith("ours")), None)
    for row in measured:
        if references:
            row.bleu = evaluation.bleu(row.lines, references[: row.sentences], target_language=language).value
        if first:
            row.same = sum(map(str.__eq__, row.lines, first.lines)) / row.sentences
    peers = [row for row in measured if row.name.startswith("ctranslate2")]
    peers = peers or [row for row in measured if not row.name.startswith("ours")]
    if peers:
        best = min(peers, key=lambda row: median(row.costs))
        for row in measured:
            row.ratio = ratio(best.costs, row.costs)


def _write(output: Path, rows: Sequence[DecodeRow], trials: Sequence[Trial], about: dict[str, Any]) -> None:
    caption = (
        f"{about['processor']}, {about['cores']} cores, commit {about['commit'] or '?'}, "
        f"{', '.join(f'{name} {version}' for name, version in about['versions'].items())}"
        f". Medians of {about['arguments']['rounds']} alternating rounds. ratio: speed as a multiple of CTranslate2's "
        "fastest row, or else that of another library; in brackets the lowest and highest round. same: share of lines "
        "that equal those of our first row. settings: dtype, workers x threads, batch. BLEU: sacreBLEU, cased, "
        "detokenised. peak: VmHWM of the process. start: from its start to the first translation."
    )
    results = table("decode", COLUMNS, [cells(row) for row in rows], caption)
    parts: list[Table | str] = [results, *(f"warning: {warning}" for warning in about["warnings"])]
    show(parts, output / "decode.txt")
    values = {"conditions": about, "rows": [row.to_json() for row in rows], "grid": [asdict(trial) for trial in trials]}
    write_json(output / "decode.json", values)


def cells(row: DecodeRow) -> list[str]:
    start = [row.metric.label, row.name]
    if row.problem:
        return [*start, row.problem]
    seconds = median(answer.seconds for answer in row.ids)
    text = median(answer.seconds for answer in row.text)
    speeds = [row.sentences / seconds, median(answer.tokens for answer in row.ids) / seconds, row.sentences / text]
    latencies = ["", ""]
    if row.metric.single:
        percentiles = [[percentile(answer.latencies, percent) for answer in row.ids] for percent in (50, 95)]
        latencies = [f"{1000 * median(values):.2f}" for values in percentiles]
    compared = f"{row.ratio.value:.2f} ({row.ratio.low:.2f}-{row.ratio.high:.2f})" if row.ratio else ""
    quality = ["" if row.bleu is None else f"{row.bleu:.2f}", "" if row.same is None else f"{row.same:.1%}"]
    sizes = [f"{row.peak_bytes / 1e6:,.0f}", f"{row.startup_seconds:.2f}", f"{row.size_bytes / 1e6:,.0f}"]
    return [*start, row.settings, *(f"{speed:,.0f}" for speed in speeds), *latencies, compared, *quality, *sizes]


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
