"""Score a model, or existing translations, by BLEU, chrF2 and TER, and print the signature of each score.

    mt-service evaluate runs/multi30k-en-de/model --source-file test.en --reference-file test.de
    mt-service evaluate runs/phrasebook-en-de/model --tsv test.tsv --columns en,de,construction --by construction
    mt-service evaluate NEW --baseline OLD --source-file test.en --reference-file test.de --worst 10
    mt-service evaluate --hypothesis-file out.de --tsv test.tsv --columns en,de

Tables are printed on stderr and one JSON object on stdout. BLEU-lc-moses is the score that papers report on Multi30k:
lower-cased and tokenised by Moses.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from mt import evaluation
from mt.cli.command import CommandParser, command, stderr_console
from mt.data.corpus import read_lines, read_parallel, read_tsv
from mt.decoding.options import SearchOptions
from mt.engine.devices import cpu_threads
from mt.errors import DataError, did_you_mean
from mt.languages import Direction
from mt.pipeline.results import Translation
from mt.pipeline.translator import Translator


@dataclass(frozen=True)
class EvaluationSet:
    """Sources and references of a test set.

    `groups` has the value of the column --by for each sentence. It is empty without --by.
    """

    sources: list[str]
    references: list[str]
    groups: list[str] = field(default_factory=list)


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    print(json.dumps(run(options, console), ensure_ascii=False, indent=2))
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("evaluate", __doc__)
    parser.add_argument("model", nargs="?", type=Path, help="model directory")
    add = parser.common.add_argument
    parser.add_test_files("test set")
    add("--tsv", type=Path, metavar="FILE", help="test set: a tab-separated file instead of these two files")
    add("--columns", default="en,de", metavar="NAMES", help="columns of --tsv in order (default: %(default)s)")
    parser.add_languages()
    add("--baseline", type=Path, metavar="MODEL", help="compare with another model by paired bootstrap")
    add("--worst", type=int, default=0, metavar="N", help="list the N translations with the lowest scores")
    parser.add_device()
    add = parser.more.add_argument
    add(
        "--hypothesis-file",
        type=Path,
        metavar="FILE",
        help="score the translations in FILE, one per line, instead of a model",
    )
    add("--show", type=int, default=0, metavar="N", help="show N evenly spaced translations")
    add("--by", metavar="COLUMN", help="count exact matches for each value of a column of --tsv")
    add("--tokenize", metavar="NAME", help="sacreBLEU tokenizer for BLEU (default: by language; zh for Chinese)")
    add("--reliability", type=Path, metavar="FILE.png", help="plot sentence chrF by the confidence of the model")
    add("--beam-size", type=int, metavar="N", help="hypotheses of beam search; 1 is greedy (default: the model's)")
    add("--length-penalty", type=float, metavar="X", help="higher favours longer translations (default: the model's)")
    parser.add_precision()
    parser.add_ensemble()
    options = parser.parse_args(argv)
    if (options.model is None) == (options.hypothesis_file is None):
        parser.error("give either a MODEL or --hypothesis-file FILE, not both")
    if (options.tsv is None) == (options.source_file is None or options.reference_file is None):
        parser.error("give --source-file FILE and --reference-file FILE, or --tsv FILE")
    for name in ("baseline", "ensemble", "reliability"):
        if options.hypothesis_file is not None and getattr(options, name):
            parser.error(f"--{name} requires a MODEL; --hypothesis-file cannot be combined with it")
    if options.by is not None and options.tsv is None:
        parser.error("--by requires --tsv")
    if min(options.worst, options.show) < 0:
        parser.error("--worst and --show accept at least 0")
    return options


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Print the tables, and return the scores as JSON values. Raises: MTError if an input cannot be used."""
    translator = None if options.model is None else load(options.model, options, options.ensemble)
    direction = find_direction(options, translator)
    tokenize = evaluation.resolve_tokenizer(options.tokenize, direction.target)
    test = read_test_set(options, direction)
    if translator is None:
        scores: dict[str, Any] = {"hypothesis": str(options.hypothesis_file), "direction": str(direction)}
        hypotheses = list(read_lines(options.hypothesis_file))
    else:
        search = search_options(translator, options)
        scores = conditions(options.model, translator, direction, search)
        scores["ensemble"] = [str(model) for model in options.ensemble]
        with console.status(f"translating {len(test.sources):,} sentences"):
            began = time.monotonic()
            translations = translate(translator, test, direction, search)
            scores["sentences_per_second"] = len(test.sources) / (time.monotonic() - began)
        hypotheses = [translation.text for translation in translations]

    report = evaluation.evaluate(hypotheses, test.references, target_language=direction.target, tokenize=tokenize)
    scores |= report.to_json()
    console.print(score_table(report, str(options.model or options.hypothesis_file)))
    if test.groups:
        groups = evaluation.exact_match_by_group(hypotheses, test.references, test.groups)
        scores["by"] = {options.by: {group: match.to_json() for group, match in groups.items()}}
        console.print(group_table(groups, options.by))
    if options.baseline is not None:
        baseline = load(options.baseline, options)
        search = search_options(baseline, options)
        with console.status(f"comparing with {options.baseline}"):
            comparisons = evaluation.paired_bootstrap(
                [translation.text for translation in translate(baseline, test, direction, search)],
                hypotheses,
                test.references,
                target_language=direction.target,
                tokenize=tokenize,
            )
        scores["baseline"] = conditions(options.baseline, baseline, direction, search)
        scores["comparison"] = [asdict(comparison) for comparison in comparisons]
        console.print(comparison_table(comparisons, str(options.baseline)))
    if options.reliability is not None:
        reliability = measure_reliability(translations, test.references, options.model)
        scores["reliability"] = asdict(reliability)
        import_module("mt.cli.reliability").plot_reliability(reliability, options.reliability)  # needs matplotlib
        console.print(reliability_table(reliability))
    if options.show:
        console.print(sentence_table("Translations", evenly_spaced_sentences(test, hypotheses, options.show)))
    if options.worst:
        sentences = evaluation.worst_sentences(test.sources, hypotheses, test.references, options.worst)
        scores["worst"] = [asdict(sentence) for sentence in sentences]
        console.print(sentence_table("Worst", [(s.source, s.hypothesis, s.reference) for s in sentences]))
    return scores


def load(model: Path, options: argparse.Namespace, others: Sequence[Path] = ()) -> Translator:
    """Load `model`, together with the models `others` of an ensemble. Raises: ModelError if this fails."""
    return Translator.load(model, options.device, options.dtype, others=others, backend=options.backend)


def find_direction(options: argparse.Namespace, translator: Translator | None) -> Direction:
    """Return the direction to evaluate: that of --source and --target or, without a model, of the columns of --tsv.

    Raises:
        DataError, LanguageError: if the direction remains unknown or is not valid.
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


def read_test_set(options: argparse.Namespace, direction: Direction) -> EvaluationSet:
    """Read the test set.

    Raises: DataError if a file cannot be read, or --columns lacks a language of `direction` or the column of --by.
    """
    if options.tsv is None:
        pairs = list(read_parallel(options.source_file, options.reference_file))
        return EvaluationSet([pair.source for pair in pairs], [pair.target for pair in pairs])
    names = options.columns.split(",")
    required = [direction.source, direction.target, *([] if options.by is None else [options.by])]
    if unknown := [f"{name}{did_you_mean(name, names)}" for name in required if name not in names]:
        raise DataError(f"{options.tsv}: --columns {options.columns} lacks {', '.join(unknown)}")
    source, target, *group = map(names.index, required)
    pairs = list(read_tsv(options.tsv, source, target))
    groups = [pair.target for pair in read_tsv(options.tsv, None, group[0])] if group else []
    return EvaluationSet([pair.source for pair in pairs], [pair.target for pair in pairs], groups)


def search_options(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """Return the search options of the model, with the changes of the command line.

    Raises: RequestError if a value is invalid.
    """
    changes = {"beam_size": options.beam_size, "length_penalty": options.length_penalty}
    return replace(translator.options, **{name: value for name, value in changes.items() if value is not None})


def translate(
    translator: Translator, test: EvaluationSet, direction: Direction, search: SearchOptions
) -> list[Translation]:
    return translator.translate_many(
        test.sources, source=direction.source, target=direction.target, options=search, sentences=True
    )


def measure_reliability(
    translations: Sequence[Translation], references: Sequence[str], model: Path
) -> evaluation.Reliability:
    """Compare the confidence of each translation with its chrF. Raises: DataError if the model has no confidence.json.

    `model` is the model directory, for the error message.
    """
    scores = evaluation.sentence_chrf([translation.text for translation in translations], references)
    points = [
        (translation.confidence, score)
        for translation, score in zip(translations, scores, strict=True)
        if translation.confidence is not None
    ]
    if not points:
        raise DataError(f"{model} has no confidence.json. Run mt-service calibrate for this model first")
    return evaluation.reliability([confidence for confidence, _ in points], [score for _, score in points])


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


def evenly_spaced_sentences(test: EvaluationSet, hypotheses: Sequence[str], n: int) -> list[tuple[str, str, str]]:
    """Return (source, hypothesis, reference) for at most `n` evenly spaced sentences of the test set."""
    step = max(1, len(hypotheses) // n)
    return list(zip(test.sources, hypotheses, test.references, strict=True))[::step][:n]


def score_table(report: evaluation.Report, title: str) -> Table:
    table = Table(
        "score",
        Column("value", justify="right"),
        Column("signature", overflow="fold"),
        title=title,
        title_justify="left",
    )
    for score in report.scores:
        table.add_row(score.name, f"{score.value:.2f}", score.signature)
    match = report.exact_match
    table.add_row("exact match", f"{match.percent:.2f}", f"{match.exact:,} of {match.sentences:,} sentences")
    return table


def group_table(groups: dict[str, evaluation.ExactMatch], column: str) -> Table:
    table = Table(column, *(Column(name, justify="right") for name in ("sentences", "exact", "%")))
    for group, match in groups.items():
        table.add_row(escape(group), f"{match.sentences:,}", f"{match.exact:,}", f"{match.percent:.1f}")
    return table


def comparison_table(comparisons: Sequence[evaluation.Comparison], baseline: str) -> Table:
    right = [Column(name, justify="right") for name in ("baseline", "model", "difference", "p")]
    table = Table("score", *right, title=f"compared with {baseline}", title_justify="left")
    for c in comparisons:
        table.add_row(
            c.name, f"{c.baseline:.2f}", f"{c.system:.2f}", f"{c.system - c.baseline:+.2f}", f"{c.p_value:.3f}"
        )
    return table


def reliability_table(reliability: evaluation.Reliability) -> Table:
    right = [Column(name, justify="right") for name in ("sentences", "confidence", "chrF / 100")]
    table = Table(*right, title=f"Confidence: Spearman {reliability.spearman:.3f}", title_justify="left")
    for row in reliability.bins:
        table.add_row(f"{row.sentences:,}", f"{row.confidence:.3f}", f"{row.chrf:.3f}")
    return table


def sentence_table(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """Return a table of source and translation, with the reference below if the translation differs from it."""
    table = Table(
        "source", "translation", "reference, if different", title=title, title_justify="left", show_lines=True
    )
    for source, hypothesis, reference in rows:
        table.add_row(*map(escape, (source, hypothesis, "" if hypothesis.strip() == reference.strip() else reference)))
    return table
