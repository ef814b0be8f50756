"""Score a model, or translations that are there already: BLEU, chrF2 and TER, each with its signature.

    python scripts/evaluate.py runs/multi30k-en-de/model --source test.en --reference test.de
    python scripts/evaluate.py runs/phrasebook-en-de/model --tsv test.tsv --columns en,de,construction --by construction
    python scripts/evaluate.py NEW --baseline OLD --source test.en --reference test.de --worst 10
    python scripts/evaluate.py --hypothesis out.de --source test.en --reference test.de --direction en-de

Tables go to stderr, one JSON object to stdout. BLEU-lc-moses is that of papers: lower-cased, tokenised as Moses does.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from shell.command import command

from mt import evaluation
from mt.data.corpus import read_lines, read_parallel, read_tsv
from mt.decoding.options import SearchOptions
from mt.engine.results import Translation
from mt.engine.translator import Translator
from mt.errors import DataError, did_you_mean


@dataclass(frozen=True)
class Corpus:
    """A test set; `groups` names for each sentence the group that it is counted in, or is empty."""

    sources: list[str]
    references: list[str]
    groups: list[str] = field(default_factory=list)


@command
def main(arguments: Sequence[str]) -> int:
    found = run(parse(arguments), Console(stderr=True))
    print(json.dumps(found, ensure_ascii=False, indent=2))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", nargs="?", type=Path, help="a model directory")
    parser.add_argument(
        "--hypothesis", type=Path, metavar="FILE", help="translations to score instead of a model's, one a line"
    )
    parser.add_argument(
        "--ensemble",
        type=Path,
        nargs="+",
        default=[],
        metavar="MODEL",
        help="models that translate together with MODEL",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="MODEL", help="another model directory, compared by paired bootstrap"
    )
    parser.add_argument("--direction", metavar="L-L", help="such as en-de; needed where a model translates several")
    corpus = parser.add_argument_group("test set: two files, or one tab-separated file")
    corpus.add_argument("--source", type=Path, metavar="FILE", help="one sentence a line; plain, .gz or .xz")
    corpus.add_argument("--reference", type=Path, metavar="FILE", help="its translations, line by line")
    corpus.add_argument("--tsv", type=Path, metavar="FILE", help="a tab-separated file; plain, .gz or .xz")
    corpus.add_argument(
        "--columns", default="en,de", metavar="NAMES", help="names of its columns in order (default: %(default)s)"
    )
    corpus.add_argument("--by", metavar="COLUMN", help="count exact matches for each value of this column")
    search = parser.add_argument_group("search (default: what the model's recipe says)")
    search.add_argument("--beam-size", type=int, metavar="N", help="1 is greedy search")
    search.add_argument("--length-penalty", type=float, metavar="X", help="higher favours longer translations")
    search.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    search.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or int8 (default: %(default)s)")
    search.add_argument("--shortlist", action="store_true", help="only tokens that scripts/shortlist.py lists")
    scores = parser.add_argument_group("scores")
    scores.add_argument(
        "--tokenize", metavar="NAME", help="sacreBLEU's tokenizer for BLEU (default: by language; zh for Chinese)"
    )
    scores.add_argument(
        "--reliability", type=Path, metavar="FILE.png", help="compare the model's confidence with sentence chrF; a plot"
    )
    scores.add_argument("--worst", type=int, default=0, metavar="N", help="list the N worst sentences")
    scores.add_argument("--show", type=int, default=0, metavar="N", help="show N translations, evenly spaced")
    options = parser.parse_args(arguments)
    if (options.model is None) == (options.hypothesis is None):
        parser.error("name either a MODEL or --hypothesis FILE")
    if (options.tsv is None) == (options.source is None or options.reference is None):
        parser.error("name either --source FILE and --reference FILE, or --tsv FILE")
    if options.hypothesis is not None and options.baseline is not None:
        parser.error("--baseline compares models: name a MODEL, not --hypothesis")
    if options.hypothesis is not None and options.ensemble:
        parser.error("--ensemble adds to a model: name a MODEL, not --hypothesis")
    if options.hypothesis is not None and options.reliability is not None:
        parser.error("--reliability is of a model's confidence: name a MODEL, not --hypothesis")
    if options.by is not None and options.tsv is None:
        parser.error("--by names a column of --tsv")
    if min(options.worst, options.show) < 0:
        parser.error("--worst and --show count sentences: at least 0")
    return options


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Everything that was asked for, as JSON values; tables on the way. Raises MTError."""
    translator = None if options.model is None else load(options.model, options, options.ensemble)
    source_language, target_language = direction_of(options, () if translator is None else translator.directions)
    direction = f"{source_language}-{target_language}"
    tokenize = evaluation.checked_tokenizer(options.tokenize, target_language)
    corpus = read_corpus(options, source_language, target_language)
    if translator is None:
        found: dict[str, Any] = {"hypothesis": str(options.hypothesis), "direction": direction}
        hypotheses = list(read_lines(options.hypothesis))
    else:
        search = asked_search(translator, options)
        found = conditions(options.model, translator, direction, search)
        found["ensemble"] = [str(each) for each in options.ensemble]
        with console.status(f"translating {len(corpus.sources):,} sentences"):
            translations = translate(translator, corpus, direction, search)
        hypotheses = [translation.text for translation in translations]

    report = evaluation.evaluate(hypotheses, corpus.references, target_language=target_language, tokenize=tokenize)
    found |= report.to_json()
    console.print(score_table(report, str(options.model or options.hypothesis)))
    if corpus.groups:
        groups = evaluation.exact_match_by_group(hypotheses, corpus.references, corpus.groups)
        found["by"] = {options.by: {group: match.to_json() for group, match in groups.items()}}
        console.print(group_table(groups, options.by))
    if options.baseline is not None:
        baseline = load(options.baseline, options)
        search = asked_search(baseline, options)
        with console.status(f"comparing with {options.baseline}"):
            comparisons = evaluation.paired_bootstrap(
                [translation.text for translation in translate(baseline, corpus, direction, search)],
                hypotheses,
                corpus.references,
                target_language=target_language,
                tokenize=tokenize,
            )
        found["baseline"] = conditions(options.baseline, baseline, direction, search)
        found["comparison"] = [comparison.to_json() for comparison in comparisons]
        console.print(comparison_table(comparisons, str(options.baseline)))
    if options.reliability is not None:
        reliability = confidence_beside_chrf(translations, corpus.references, options.model)
        found["reliability"] = reliability.to_json()
        plot_reliability(reliability, options.reliability)
        console.print(reliability_table(reliability))
    if options.show:
        console.print(sentence_table("Translations", sampled(corpus, hypotheses, options.show)))
    if options.worst:
        sentences = evaluation.worst(corpus.sources, hypotheses, corpus.references, options.worst)
        found["worst"] = [sentence.to_json() for sentence in sentences]
        console.print(sentence_table("Worst", [(s.source, s.hypothesis, s.reference) for s in sentences]))
    return found


def load(model: Path, options: argparse.Namespace, others: Sequence[Path] = ()) -> Translator:
    """Raises ModelError."""
    return Translator.load(model, options.device, options.dtype, shortlist=options.shortlist, others=others)


def direction_of(options: argparse.Namespace, directions: Sequence[str]) -> tuple[str, str]:
    """The direction asked for, else the only one of the model, else the first two columns. Raises DataError."""
    if options.direction is not None:
        direction = options.direction
    elif len(directions) == 1:
        direction = directions[0]
    elif options.tsv is not None:
        direction = "-".join(options.columns.split(",")[:2])
    else:
        known = f", one of {', '.join(directions)}" if directions else ", such as en-de"
        raise DataError(f"the direction is not known: give --direction{known}")
    source, _, target = direction.partition("-")
    if not (source and target) or source == target:
        raise DataError(f"{direction!r} is no direction; accepted: source-target, such as en-de")
    return source, target


def read_corpus(options: argparse.Namespace, source_language: str, target_language: str) -> Corpus:
    """Raises DataError for files that cannot be used and for columns that are not there."""
    if options.tsv is None:
        pairs = list(read_parallel(options.source, options.reference))
        return Corpus([pair.source for pair in pairs], [pair.target for pair in pairs])
    names = options.columns.split(",")
    wanted = [source_language, target_language, *([] if options.by is None else [options.by])]
    if unknown := [f"{name}{did_you_mean(name, names)}" for name in wanted if name not in names]:
        raise DataError(f"{options.tsv}: --columns {options.columns} does not name {', '.join(unknown)}")
    source, target, *group = map(names.index, wanted)
    pairs = list(read_tsv(options.tsv, source, target))
    groups = [pair.target for pair in read_tsv(options.tsv, None, group[0])] if group else []
    return Corpus([pair.source for pair in pairs], [pair.target for pair in pairs], groups)


def asked_search(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """The model's own search but for what the command line says. Raises RequestError."""
    asked = {"beam_size": options.beam_size, "length_penalty": options.length_penalty}
    return replace(translator.options, **{name: value for name, value in asked.items() if value is not None})


def translate(translator: Translator, corpus: Corpus, direction: str, search: SearchOptions) -> list[Translation]:
    source, target = direction.split("-", 1)
    return translator.translate(corpus.sources, source=source, target=target, options=search, sentences=True)


def confidence_beside_chrf(
    translations: Sequence[Translation], references: Sequence[str], model: Path
) -> evaluation.Reliability:
    """Of the sentences that hold something to translate. Raises DataError if the model has no confidence."""
    scores = evaluation.sentence_chrf([translation.text for translation in translations], references)
    known = [
        (translation.confidence, score)
        for translation, score in zip(translations, scores, strict=True)
        if translation.confidence is not None
    ]
    if not known:
        raise DataError(f"{model} has no confidence.json; accepted: a model for which scripts/calibrate.py made one")
    return evaluation.reliability([sure for sure, _ in known], [score for _, score in known])


def plot_reliability(found: evaluation.Reliability, path: Path) -> None:
    """Raises DataError if the file cannot be written."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="confidence", ylabel="sentence chrF / 100", xlim=(0, 1), ylim=(0, 1))
    axes.plot([0, 1], [0, 1], color="gray", linestyle="--", linewidth=1)
    axes.plot([row.confidence for row in found.bins], [row.chrf for row in found.bins], marker="o")
    sentences = sum(row.sentences for row in found.bins)
    axes.set_title(f"{sentences:,} sentences, Spearman {found.spearman:.2f}, mean gap {found.error:.3f}")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be written ({error}); accepted: a file such as plot.png") from error


def conditions(model: Path, translator: Translator, direction: str, search: SearchOptions) -> dict[str, Any]:
    """What a figure depends on besides the test set."""
    return {
        "model": str(model),
        "direction": direction,
        "beam_size": search.beam_size,
        "length_penalty": search.length_penalty,
        "normalization": str(search.normalization),
        "device": str(translator.scorer.device),
        "dtype": str(translator.dtype),
        "shortlist": translator.shortlist,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def sampled(corpus: Corpus, hypotheses: Sequence[str], n: int) -> list[tuple[str, str, str]]:
    """At most n sentences, evenly spaced."""
    step = max(1, len(hypotheses) // n)
    return list(zip(corpus.sources, hypotheses, corpus.references, strict=True))[::step][:n]


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
    table = Table("score", *right, title=f"against {baseline}", title_justify="left")
    for c in comparisons:
        table.add_row(
            c.name, f"{c.baseline:.2f}", f"{c.system:.2f}", f"{c.system - c.baseline:+.2f}", f"{c.p_value:.3f}"
        )
    return table


def reliability_table(found: evaluation.Reliability) -> Table:
    right = [Column(name, justify="right") for name in ("sentences", "confidence", "chrF / 100")]
    table = Table(*right, title=f"Confidence: Spearman {found.spearman:.3f}", title_justify="left")
    for row in found.bins:
        table.add_row(f"{row.sentences:,}", f"{row.confidence:.3f}", f"{row.chrf:.3f}")
    return table


def sentence_table(title: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """Three columns, the reference only where the translation is another."""
    table = Table("source", "translation", "reference, if another", title=title, title_justify="left", show_lines=True)
    for source, hypothesis, reference in rows:
        table.add_row(*map(escape, (source, hypothesis, "" if hypothesis.strip() == reference.strip() else reference)))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
