"""Score a model, or existing translations, by BLEU, chrF2 and TER, and print the signature of each score.

    mt-service evaluate runs/multi30k-en-de/model --source-file test.en --reference-file test.de
    mt-service evaluate NEW --baseline OLD --source-file test.en --reference-file test.de --worst 10
    mt-service evaluate --hypothesis-file out.de --tsv test.tsv --columns en,de

Tables are printed on stderr and one JSON object on stdout. BLEU-lc-moses is the score that papers report on Multi30k:
lower-cased and tokenised by Moses. The length ratio (tokens of the translations divided by those of the references)
shows translations that are too short or too long. A model is scored as it serves: repetitions and missing clauses are
repaired, and words that it cannot know are copied. For figures of papers, which score the bare search, give --raw.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from mt import evaluation
from mt.cli.command import CommandParser, command, stderr_console, warn
from mt.cli.translation_job import search_options
from mt.data.corpus import SentencePair, read_lines, read_parallel, read_tsv
from mt.data.language_check import SAMPLE, check_languages
from mt.decoding.options import SearchOptions
from mt.engine.devices import cpu_threads
from mt.errors import DataError, did_you_mean
from mt.interop.catalogue import model_path
from mt.languages import Direction
from mt.pipeline.translator import Translator


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    print(json.dumps(run(options, console), ensure_ascii=False, indent=2))
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("evaluate", __doc__)
    parser.add_argument("model", nargs="?", type=model_path, help="model directory, `starter` or `hub:NAME`")
    add = parser.common.add_argument
    parser.add_test_files("test set")
    add("--tsv", type=Path, metavar="FILE", help="test set: a tab-separated file instead of these two files")
    add("--columns", default="en,de", metavar="NAMES", help="columns of --tsv in order (default: %(default)s)")
    parser.add_languages()
    add("--baseline", type=model_path, metavar="MODEL", help="compare with another model by paired bootstrap")
    add("--worst", type=int, default=0, metavar="N", help="list the N translations with the lowest scores")
    parser.add_device()
    add = parser.more.add_argument
    add("--hypothesis-file", type=Path, metavar="FILE", help="score the translations in FILE instead of a model")
    add("--raw", action="store_true", help="score what the search writes, without protection and repairs")
    add("--show", type=int, default=0, metavar="N", help="show N evenly spaced translations")
    parser.add_search()
    parser.add_precision()
    parser.add_ensemble()
    options = parser.parse_args(argv)
    if (options.model is None) == (options.hypothesis_file is None):
        parser.error("give either a MODEL or --hypothesis-file FILE, not both")
    if (options.tsv is None) == (options.source_file is None or options.reference_file is None):
        parser.error("give --source-file FILE and --reference-file FILE, or --tsv FILE")
    for name in ("baseline", "ensemble"):
        if options.hypothesis_file is not None and getattr(options, name):
            parser.error(f"--{name} requires a MODEL; --hypothesis-file cannot be combined with it")
    if min(options.worst, options.show) < 0:
        parser.error("--worst and --show accept at least 0")
    return options


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Print the tables, and return the scores as JSON values. Raises: MTError if an input cannot be used."""
    translator = None if options.model is None else load(options.model, options, options.ensemble)
    direction = find_direction(options, translator)
    pairs = read_test_set(options, direction)
    columns = options.columns.split(",") if options.tsv else ()
    sample = [(pair.source, pair.target) for pair in pairs[:: max(1, len(pairs) // SAMPLE)]]
    for warning in check_languages(str(options.tsv or "the test set"), columns, sample, direction.languages):
        warn(console, warning)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if translator is None:
        scores: dict[str, Any] = {"hypothesis": str(options.hypothesis_file), "direction": str(direction)}
        hypotheses = list(read_lines(options.hypothesis_file))
    else:
        search = search_options(translator, options)
        scores = conditions(options.model, translator, direction, search)
        scores |= {"ensemble": [str(model) for model in options.ensemble], "raw": options.raw}
        with console.status(f"translating {len(sources):,} sentences"):
            began = time.monotonic()
            hypotheses = translate(translator, sources, direction, search, options.raw)
            scores["sentences_per_second"] = len(sources) / (time.monotonic() - began)

    report = evaluation.evaluate(hypotheses, references, target_language=direction.target)
    scores |= report.to_json()
    console.print(score_table(report, str(options.model or options.hypothesis_file)))
    if options.baseline is not None:
        baseline = load(options.baseline, options)
        search = search_options(baseline, options)
        with console.status(f"comparing with {options.baseline}"):
            theirs = translate(baseline, sources, direction, search, options.raw)
            comparisons = evaluation.paired_bootstrap(theirs, hypotheses, references, target_language=direction.target)
        scores["baseline"] = conditions(options.baseline, baseline, direction, search)
        scores["comparison"] = [asdict(comparison) for comparison in comparisons]
        dtypes = "" if baseline.dtype == scores["dtype"] else f", {baseline.dtype}; the model in {scores['dtype']}"
        console.print(comparison_table(comparisons, f"{options.baseline}{dtypes}"))
    if options.show:
        step = max(1, len(sources) // options.show)
        sentences = list(zip(sources, hypotheses, references, strict=True))[::step][: options.show]
        console.print(sentence_table("Translations", sentences))
    if options.worst:
        worst = evaluation.worst_sentences(sources, hypotheses, references, options.worst)
        scores["worst"] = [asdict(sentence) for sentence in worst]
        console.print(sentence_table("Worst", [(s.source, s.hypothesis, s.reference) for s in worst]))
    return scores


def load(model: Path, options: argparse.Namespace, others: Sequence[Path] = ()) -> Translator:
    """Load `model`, together with the models `others` of an ensemble. Raises: ModelError if this fails."""
    return Translator.load(model, options.device, options.dtype, others=others, backend=options.backend)


def find_direction(options: argparse.Namespace, translator: Translator | None) -> Direction:
    """Return the direction to evaluate: that of --source and --target or, without a model, of the columns of --tsv.

    Raises: DataError, LanguageError if the direction remains unknown or is not valid.
    """
    source, target = options.source, options.target
    if options.tsv is not None and (translator is None or len(translator.directions) > 1):
        columns = options.columns.split(",")
        source, target = source or columns[0], target or columns[1]
    if translator is not None:
        return translator.directions.choose(source, target)
    if source is None or target is None:
        raise DataError("the direction is unknown. Give the languages, such as --source en --target de")
    return Direction.parse(f"{source}-{target}")


def read_test_set(options: argparse.Namespace, direction: Direction) -> list[SentencePair]:
    """Read the test set. Raises: DataError if a file cannot be read, or --columns lacks a language of `direction`."""
    if options.tsv is None:
        return list(read_parallel(options.source_file, options.reference_file))
    names = options.columns.split(",")
    required = (direction.source, direction.target)
    if unknown := [f"{name}{did_you_mean(name, names)}" for name in required if name not in names]:
        raise DataError(f"{options.tsv}: --columns {options.columns} lacks {', '.join(unknown)}")
    return list(read_tsv(options.tsv, *map(names.index, required)))


def translate(
    translator: Translator, sources: Sequence[str], direction: Direction, search: SearchOptions, raw: bool
) -> list[str]:
    planner = translator.planner(source=direction.source, target=direction.target, options=search, sentences=True)
    return [translation.text for translation in translator.run(replace(planner, protect=not raw), sources)]


def conditions(model: Path, translator: Translator, direction: Direction, search: SearchOptions) -> dict[str, Any]:
    """Return the model, the direction and all options that influence the scores, as JSON values."""
    return {
        "model": str(model),
        "direction": str(direction),
        "beam_size": search.beam_size,
        "length_penalty": search.length_penalty,
        "normalization": str(search.normalization),
        "device": str(translator.device),
        "dtype": str(translator.dtype),
        "shortlist": translator.shortlist,
        "threads": cpu_threads(),
        "torch": version("torch"),
    }


def score_table(report: evaluation.Report, title: str) -> Table:
    value, signature = Column("value", justify="right"), Column("signature", overflow="fold")
    table = Table("score", value, signature, title=title, title_justify="left")
    for score in report.scores:
        table.add_row(score.name, f"{score.value:.2f}", score.signature)
    match = report.exact_match
    table.add_row("length ratio", f"{report.length_ratio:.3f}", f"brevity penalty of BLEU {report.brevity_penalty:.3f}")
    table.add_row("exact match", f"{match.percent:.2f}", f"{match.exact:,} of {match.sentences:,} sentences")
    return table


def comparison_table(comparisons: Sequence[evaluation.Comparison], baseline: str) -> Table:
    right = [Column(name, justify="right") for name in ("baseline", "model", "difference", "p")]
    table = Table("score", *right, title=f"compared with {baseline}", title_justify="left")
    for c in comparisons:
        table.add_row(
            c.name, f"{c.baseline:.2f}", f"{c.system:.2f}", f"{c.system - c.baseline:+.2f}", f"{c.p_value:.3f}"
        )
    return table


def sentence_table(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """Return a table of source and translation, with the reference below if the translation differs from it."""
    columns = ("source", "translation", "reference, if different")
    table = Table(*columns, title=title, title_justify="left", show_lines=True)
    for source, hypothesis, reference in rows:
        table.add_row(*map(escape, (source, hypothesis, "" if hypothesis.strip() == reference.strip() else reference)))
    return table
