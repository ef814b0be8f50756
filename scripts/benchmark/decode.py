"""Translation speed compared with CTranslate2, transformers and another checkout of ours.

    python -m scripts.benchmark.decode MODEL --source-file test.en --reference-file test.de --output DIR
    python -m scripts.benchmark.decode --random base --source-file test.en --beam-size 4 --sentences 200 --output DIR
    python -m scripts.benchmark.decode MODEL --source-file test.en --against ../earlier --rounds 9 --output DIR

All contenders use the same weights and the same search: equal beam size, scores divided by length, at most 2 x source +
10 tokens. Each contender is a process that is idle while another one is measured. First, short runs find the fastest
settings of each contender; then all contenders take turns. The time is that of the translation of token ids.

--against measures an earlier version of this project beside the present one, and once more as a control: the ratio of
"against" and "control" would be 1 on a perfect machine.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, get_args

from rich.console import Console

from mt import Translator, evaluation
from mt.cli.command import command, count
from mt.config import Size
from mt.data.corpus import read_lines
from mt.engine.devices import available_cores
from mt.errors import DataError, MTError
from mt.tokenizer import Tokenizer

from .contenders import OUR_DTYPES, Metric, Models, PeerEntry, entries, fastest
from .measure import PAUSE, Ratio, commit, conditions, noise, percentile, ratio, table, write_results
from .peer import PeerResult
from .processes import Contender, ContenderError
from .untrained import forced_length, untrained_model

COLUMNS = (
    *("metric", "contender", "settings", "sentences/s", "tokens/s", "p50 ms", "p95 ms", "ratio (rounds)"),
    *("BLEU", "same", "peak MB"),
)


@dataclass
class DecodeRow:
    """Results of one contender for one metric. `results` has one entry per round, or none if there is a `problem`.

    `same` is the fraction of the translations `lines` that equal those of our first row. `ratio` is the speed as a
    multiple of that of the baseline.
    """

    metric: Metric
    name: str
    settings: str = ""
    problem: str = ""
    results: list[PeerResult] = field(default_factory=list)
    lines: Sequence[str] = ()
    bleu: float | None = None
    same: float | None = None
    ratio: Ratio | None = None

    @property
    def costs(self) -> list[float]:
        return [self.metric.cost(result) for result in self.results]

    def cells(self) -> list[str]:
        start = [str(self.metric), self.name]
        if self.problem:
            return [*start, self.problem]
        seconds = median(result.seconds for result in self.results)
        speeds = [len(self.lines) / seconds, median(result.tokens for result in self.results) / seconds]
        latencies = ["", ""]
        if self.metric.single:
            percentiles = [[percentile(result.latencies, p) for result in self.results] for p in (50, 95)]
            latencies = [f"{1000 * median(values):.2f}" for values in percentiles]
        quality = ["" if self.bleu is None else f"{self.bleu:.2f}", "" if self.same is None else f"{self.same:.1%}"]
        peak = f"{max(result.peak_bytes for result in self.results) / 1e6:,.0f}"
        compared = str(self.ratio or "")
        return [*start, self.settings, *(f"{speed:,.0f}" for speed in speeds), *latencies, compared, *quality, peak]


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. Raises: MTError if they exclude each other."""
    parser = argparse.ArgumentParser(
        prog="decode", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", nargs="?", type=Path, help="a model directory")
    add("--random", choices=get_args(Size), help="measure an untrained model of this size")
    add("--source-file", type=Path, required=True, help="file with one sentence a line; may be .gz or .xz")
    add("--reference-file", type=Path, help="reference translations, for BLEU")
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the results")
    add("--source", metavar="L", help="source language, if the model has several")
    add("--target", metavar="L", help="target language, if the model has several")
    add("--against", type=Path, metavar="DIR", help="another checkout of this project")
    add("--beam-size", type=count, nargs="+", default=[1, 5])
    add("--kinds", nargs="+", choices=["bulk", "single"], default=["bulk", "single"])
    add("--device", choices=OUR_DTYPES, default="cpu", help="device of all contenders (default: cpu)")
    add("--dtype", nargs="+", help="dtypes of our model (default: float32 int8 on a CPU, else bfloat16)")
    add("--rounds", type=count, default=5, help="measurements of each row (default: 5)")
    add("--sentences", type=count, default=1000, help="sentences in bulk (default: 1000)")
    add("--single-sentences", type=count, default=200, help="sentences one at a time (default: 200)")
    add("--cores", type=count, default=available_cores(), help="cores of each contender (default: all)")
    add("--only", nargs="+", help="run only contenders whose names begin with one of these (default: all)")
    options = parser.parse_args(argv)
    if (options.model is None) == (options.random is None):
        raise MTError("decode needs a MODEL directory or --random SIZE, and not both")
    if options.against and not (options.against / "mt").is_dir():
        raise MTError(f"--against is {options.against}; accepted: a checkout, a folder that contains mt")
    options.dtype = options.dtype or list(OUR_DTYPES[options.device])
    return options


@command
def main(argv: Sequence[str]) -> int:
    """Run the benchmark, and write the results. If a contender fails, the table has a row with the error.

    Raises: MTError if the options or input files cannot be used.
    """
    options, console = parse(argv), Console(stderr=True)
    lines, references = read_texts(options)
    setup = {**conditions(), "options": vars(options)}
    if options.against:
        setup["against"] = commit(options.against)
    models, translator = prepare_models(options, lines)
    _, language = translator.direction_of(options.source, options.target)
    rows: list[DecodeRow] = []
    tried: dict[str, Any] = {}
    for metric in [Metric(kind == "single", beam) for kind in options.kinds for beam in options.beam_size]:
        wanted = [
            entry
            for entry in entries(models, metric, options.dtype)
            if options.only is None or entry.name.startswith(tuple(options.only))
        ]
        compared = compare(metric, wanted, translator.tokenizer, options, tried, console)
        add_quality(compared, references, language)
        rows += compared
    costs = {f"{row.metric}, {row.name}": row.costs for row in rows if row.results}
    warnings = noise(setup["load_average"][0], costs)
    results = table("decode", COLUMNS, [row.cells() for row in rows], caption(setup))
    values = {"conditions": setup, "warnings": warnings, "tried": tried, "rows": [asdict(row) for row in rows]}
    write_results(options.output, [results, *warnings], values)
    return 0


def read_texts(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return (sentences, references); without --reference-file, `references` is empty.

    Raises: MTError if a sentence is empty, or the numbers of sentences and references differ.
    """
    lines = [" ".join(line.split()) for line in islice(read_lines(options.source_file), options.sentences)]
    references = list(islice(read_lines(options.reference_file), options.sentences)) if options.reference_file else []
    if not all(lines):
        raise DataError(
            f"{options.source_file}: line {lines.index('') + 1} is empty; accepted: a sentence in each line"
        )
    if references and len(references) != len(lines):
        raise DataError(
            f"{options.reference_file}: {len(references)} lines, but {options.source_file} has {len(lines)}; "
            "accepted: equal numbers of lines"
        )
    return lines, references


def prepare_models(options: argparse.Namespace, lines: Sequence[str]) -> tuple[Models, Translator]:
    """Write the source tokens of all sentences into the folder of the results, and an untrained model if required.

    Return (models, our model loaded). Raises: MTError if the model cannot be used.
    """
    folder = options.output / "models"
    folder.mkdir(parents=True, exist_ok=True)
    path = options.model or folder / f"untrained-{options.random}"
    if options.random:
        untrained_model(options.random, lines, path)
    translator = Translator.load(path, "cpu")
    requests = [translator.request(line, source=options.source, target=options.target) for line in lines]
    sources = [list(request.source) if request else [] for request in requests]
    ids, pieces = options.output / "ids.json", options.output / "pieces.json"
    ids.write_text(json.dumps(sources), encoding="utf-8")
    pieces.write_text(json.dumps([translator.tokenizer.pieces(source[:-1]) for source in sources]), encoding="utf-8")
    lengths = tuple(forced_length(len(source)) for source in sources) if options.random else ()
    models = Models(path, folder, ids, pieces, lengths, options.cores, options.device, options.against)
    return models, translator


def text_of(tokenizer: Tokenizer, tokens: Sequence[int] | Sequence[str]) -> str:
    """Return the text of target tokens, which are ids, or pieces for a library that has its own ids."""
    ids = {piece: id for id, piece in enumerate(tokenizer.target.pieces(range(len(tokenizer.target))))}
    return tokenizer.decode([ids[token] if isinstance(token, str) else token for token in tokens])


def compare(
    metric: Metric,
    wanted: Sequence[PeerEntry],
    tokenizer: Tokenizer,
    options: argparse.Namespace,
    tried: dict[str, Any],
    console: Console,
) -> list[DecodeRow]:
    """Choose the setting of each contender, start all contenders, and measure them in turn. Return a row for each.

    The short runs that were made to choose settings are added to `tried`.
    """
    log = options.output / "contenders.log"
    sentences = options.single_sentences if metric.single else options.sentences
    rows, running = [], []
    with ExitStack() as stack:
        for entry in wanted:
            row = DecodeRow(metric, entry.name, problem=entry.problem)
            rows.append(row)
            if row.problem:
                continue
            console.print(f"{metric}: {entry.name} ...", highlight=False)
            try:
                setting, tried[f"{metric}, {entry.name}"] = fastest(entry, metric, sentences, log)
                contender = stack.enter_context(Contender(entry.name, setting.launch, log))
                targets = setting.ask(contender, metric, sentences, keep=True).targets
            except ContenderError as error:
                row.problem = str(error)
                console.print(row.problem, markup=False, highlight=False)
                continue
            row.settings, row.lines = str(setting), [text_of(tokenizer, tokens) for tokens in targets]
            running.append((row, setting, contender))
        for _ in range(options.rounds):
            for row, setting, contender in running:
                time.sleep(PAUSE)
                row.results.append(setting.ask(contender, metric, sentences))
                console.print(f"  {row.name} {row.results[-1].seconds:.3f} s", highlight=False)
    return rows


def add_quality(rows: Sequence[DecodeRow], references: Sequence[str], language: str) -> None:
    """Set `bleu`, `same` and `ratio` of each row.

    The baseline of ratios is "against" with the same dtype. Without it, it is the fastest row of CTranslate2 or, if
    there is none, of another library.
    """
    measured = [row for row in rows if row.results]
    first = next((row for row in measured if row.name.startswith("ours")), None)
    for row in measured:
        if references:
            row.bleu = evaluation.bleu(row.lines, references[: len(row.lines)], target_language=language).value
        if first:
            row.same = sum(map(str.__eq__, row.lines, first.lines)) / len(row.lines)
    peers = [row for row in measured if row.name.startswith("ctranslate2")]
    peers = peers or [row for row in measured if row.name.startswith("transformers")]
    fastest_peer = min(peers, key=lambda row: median(row.costs), default=None)
    against = {row.name: row for row in measured if row.name.startswith("against")}
    for row in measured:
        baseline = against.get(f"against {row.name.split()[1]}") if " " in row.name and against else fastest_peer
        if baseline:
            row.ratio = ratio(baseline.costs, row.costs)


def caption(setup: dict[str, Any]) -> str:
    against = f", against commit {setup['against'] or '?'}" if "against" in setup else ""
    versions = ", ".join(f"{name} {version}" for name, version in setup["versions"].items())
    return (
        f"{setup['processor']}, {setup['cores']} cores, commit {setup['commit'] or '?'}{against}, {versions}. Medians "
        f"of {setup['options']['rounds']} alternating rounds. ratio: speed as a multiple of that of the baseline: "
        '"against" with the same dtype, or else the fastest row of CTranslate2, or else transformers; in brackets the '
        "lowest and highest round. same: share of lines that equal those of our first row. settings: dtype, workers x "
        "threads, batch. BLEU: sacreBLEU, cased, detokenised. peak: VmHWM of the process."
    )


if __name__ == "__main__":
    sys.exit(main())
