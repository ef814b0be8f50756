"""Rerank n-best lists with other models. Each line of input gives one line of output.

    mt-service translate EN-DE val.en --sentences --beam-size 12 --n-best 12 --json --output val.jsonl
    mt-service rerank val.jsonl --backward DE-EN --tune val.de > val.reranked
    mt-service rerank test.jsonl --backward DE-EN --weights backward=0.3 length=0.1 > test.reranked

The new score of a translation is

    score + backward x log p(source | translation) / source tokens    --backward, a model of the reverse direction
          + length x translation tokens / source tokens               --backward
          + language x log p(translation) / translation tokens        --language-model

At least one of the two models is required. --tune FILE selects the weights with the highest BLEU against the references
in FILE. Use a validation set: the scores of a test set are too high if the weights were tuned on it. The weights, and
the scores before and after reranking, are printed on stderr.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from mt import evaluation
from mt.cli.command import CommandParser, command, stderr_console
from mt.cli.n_best import read_n_best
from mt.data.corpus import read_lines
from mt.errors import DataError, LanguageError, RequestError, problems
from mt.scoring.language_model import LanguageModelScorer
from mt.scoring.pairs import PairScorer
from mt.scoring.reranking import Feature, NBest, channel_features, choose, language_feature, tune

SHOWN_SCORES = ("BLEU", "chrF2", "TER")
ACCEPTED = "accepted: output of `mt-service translate --n-best K --json`, K at least 2"


@command
def main(argv: Sequence[str]) -> int:
    selected = rerank(parse(argv), stderr_console())
    with open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False) as output:
        output.writelines(f"{' '.join(line.splitlines())}\n" for line in selected)
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("rerank", __doc__)
    parser.add_argument(
        "nbest", type=Path, metavar="NBEST.jsonl", help="output of `mt-service translate --n-best K --json`"
    )
    add = parser.common.add_argument
    add("--backward", type=Path, metavar="MODEL", help="a model of the reverse direction")
    add("--language-model", type=Path, metavar="MODEL", help="a language model of the target language")
    weights = parser.common.add_mutually_exclusive_group(required=True)
    weights.add_argument(
        "--tune", type=Path, metavar="FILE", help="tune the weights on reference translations, line by line"
    )
    weights.add_argument("--weights", nargs="+", metavar="NAME=X", help="such as backward=0.3 length=0.1")
    parser.add_device()
    parser.more.add_argument(
        "--direction",
        metavar="L-L",
        help="direction of the backward model, such as de-en; required if that model has several",
    )
    options = parser.parse_args(argv)
    if options.backward is None and options.language_model is None:
        parser.error("no model is named. Give --backward, --language-model or both")
    if options.direction is not None and options.backward is None:
        parser.error("--direction requires --backward")
    return options


def rerank(options: argparse.Namespace, console: Console) -> tuple[str, ...]:
    """Return the best translation of each n-best list, and print the weights and scores.

    Raises: MTError if an input cannot be used.
    """
    lists = read_n_best(options.nbest)
    if all(len(n_best.translations) < 2 for n_best in lists):
        raise DataError(f"{options.nbest}: no line has alternatives; {ACCEPTED}")
    with console.status(f"scoring {sum(len(n_best.translations) for n_best in lists):,} translations"):
        target, features = read_features(options, lists)
    if options.weights is not None:
        weights = read_weights(options.weights, features)
        selected = choose(lists, features, weights)
    else:
        references = list(read_lines(options.tune))
        with console.status("tuning"):
            weights = tune(lists, features, references, target)
        selected = choose(lists, features, weights)
        before = evaluation.evaluate([n_best.translations[0] for n_best in lists], references, target_language=target)
        after = evaluation.evaluate(selected, references, target_language=target)
        console.print(score_table(before, after))
    changed = sum(n_best.translations[0] != text for n_best, text in zip(lists, selected, strict=True))
    console.print(weight_table(weights))
    console.print(f"{changed:,} of {len(lists):,} lines changed", highlight=False)
    return selected


def read_features(options: argparse.Namespace, lists: Sequence[NBest]) -> tuple[str, list[Feature]]:
    """Return (target language, features of all translations). Raises: MTError if a model cannot be used."""
    target, features = "", []
    if options.backward is not None:
        backward = PairScorer.load(options.backward, options.device)
        direction = backward.directions.choose(options.direction)
        target = direction.source
        features += channel_features(backward, lists, direction)
    if options.language_model is not None:
        scorer = LanguageModelScorer.load(options.language_model, options.device)
        if target and scorer.language != target:
            raise LanguageError(
                f"--language-model {options.language_model} is a model of {scorer.language}; accepted: a model of "
                f"{target}, the source language of --backward"
            )
        target = scorer.language
        features.append(language_feature(scorer, lists))
    return target, features


def read_weights(assignments: Sequence[str], features: Sequence[Feature]) -> dict[str, float]:
    """Return the weight of each feature. `assignments` are texts `name=number`; features without one have weight 0.

    Raises:
        RequestError: if assignments are malformed or name an unknown feature; the message lists all of them.
    """
    names, weights, invalid = [feature.name for feature in features], {}, []
    for assignment in assignments:
        name, _, number = assignment.partition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            invalid.append(f"{assignment!r}: not NAME=NUMBER")
        if name not in names:
            invalid.append(f"{name!r} is not a feature; accepted: {', '.join(names)}")
    if invalid:
        raise RequestError(problems("--weights cannot be used", invalid))
    return {name: weights.get(name, 0.0) for name in names}


def score_table(before: evaluation.Report, after: evaluation.Report) -> Table:
    right = [Column(name, justify="right") for name in ("before", "after")]
    table = Table(
        "score", *right, Column("signature", overflow="fold"), title="scores on the tuning set", title_justify="left"
    )
    for name in SHOWN_SCORES:
        table.add_row(name, f"{before[name].value:.2f}", f"{after[name].value:.2f}", after[name].signature)
    return table


def weight_table(weights: Mapping[str, float]) -> Table:
    table = Table("feature", Column("weight", justify="right"))
    for name, weight in weights.items():
        table.add_row(name, f"{weight:g}")
    return table
