"""Choose among n-best translations with the help of other models: one line out for each in.

    python scripts/translate.py EN-DE val.en --sentences --beam-size 12 --n-best 12 --json --output val.jsonl
    python scripts/rerank.py val.jsonl --backward DE-EN --tune val.de > val.reranked
    python scripts/rerank.py test.jsonl --backward DE-EN --weights backward=0.3 length=0.1 > test.reranked

To the score of each translation --backward, a model of the other direction, adds backward x the log-probability of the
source given the translation, a token in the mean, and length x the tokens of the translation for each of the source;
--language-model adds language x the log-probability of the translation, a token in the mean. One of the two models will
do. --tune finds the weights of highest BLEU against FILE: use a validation set, for scores on what weights were tuned
on are too good. The weights, and scores before and after, go to stderr.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from shell.command import command
from translation.nbest import read_n_best

from mt import evaluation
from mt.data.corpus import read_lines
from mt.engine.language import LanguageScorer
from mt.engine.reranking import Feature, NBest, channel_features, choose, language_feature, tune
from mt.engine.translator import Translator
from mt.errors import DataError, LanguageError, RequestError, problems

SHOWN = ("BLEU", "chrF2", "TER")
ACCEPTED = "accepted: what scripts/translate.py --n-best K --json writes, K at least 2"


@command
def main(arguments: Sequence[str]) -> int:
    chosen = run(parse(arguments), Console(stderr=True))
    with open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False) as output:
        output.writelines(f"{' '.join(line.splitlines())}\n" for line in chosen)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("nbest", type=Path, metavar="NBEST.jsonl", help="what translate.py --n-best K --json wrote")
    parser.add_argument("--backward", type=Path, metavar="MODEL", help="a model of the other direction")
    parser.add_argument("--direction", metavar="L-L", help="of MODEL, such as de-en; needed where it has several")
    parser.add_argument("--language-model", type=Path, metavar="DIR", help="a language model of the target language")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--tune", type=Path, metavar="FILE", help="find the weights: reference translations, line by line")
    how.add_argument("--weights", nargs="+", metavar="NAME=X", help="as tuned before: backward=0.3 length=0.1")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.backward is None and options.language_model is None:
        parser.error("neither --backward nor --language-model; accepted: one of them, or both")
    if options.direction is not None and options.backward is None:
        parser.error("--direction is that of --backward, which is not given")
    return options


def run(options: argparse.Namespace, console: Console) -> tuple[str, ...]:
    """The line chosen for each; tables on the way. Raises MTError."""
    lists = read_n_best(options.nbest)
    if all(len(each.translations) < 2 for each in lists):
        raise DataError(f"{options.nbest}: no line has alternatives, so there is nothing to choose; {ACCEPTED}")
    with console.status(f"reading {sum(len(each.translations) for each in lists):,} translations"):
        target, features = read_features(options, lists)
    if options.weights is not None:
        weights = read_weights(options.weights, features)
        chosen = choose(lists, features, weights)
    else:
        references = list(read_lines(options.tune))
        with console.status("tuning"):
            weights = tune(lists, features, references, target)
        chosen = choose(lists, features, weights)
        before = evaluation.evaluate([each.translations[0] for each in lists], references, target_language=target)
        after = evaluation.evaluate(chosen, references, target_language=target)
        console.print(score_table(before, after))
    others = sum(each.translations[0] != text for each, text in zip(lists, chosen, strict=True))
    console.print(weight_table(weights))
    console.print(f"{others:,} of {len(lists):,} lines are others now", highlight=False)
    return chosen


def read_features(options: argparse.Namespace, lists: Sequence[NBest]) -> tuple[str, list[Feature]]:
    """The language of the translations, and what each model says of them. Raises MTError."""
    target, features = "", []
    if options.backward is not None:
        backward = Translator.load(options.backward, options.device, "float32")
        direction = options.direction or (backward.directions[0] if len(backward.directions) == 1 else "")
        if direction not in backward.directions:
            raise LanguageError(f"--direction is {direction!r}; accepted: {', '.join(backward.directions)}")
        target = direction.split("-")[0]
        features += channel_features(backward, lists, direction)
    if options.language_model is not None:
        scorer = LanguageScorer.load(options.language_model, options.device)
        if target and scorer.language != target:
            raise LanguageError(
                f"--language-model {options.language_model} is of {scorer.language}; accepted: one of {target}, which "
                "--backward translates from"
            )
        target = scorer.language
        features.append(language_feature(scorer, lists))
    return target, features


def read_weights(given: Sequence[str], features: Sequence[Feature]) -> dict[str, float]:
    """`name=number` each. Raises RequestError listing all that are none."""
    names, weights, found = [feature.name for feature in features], {}, []
    for each in given:
        name, _, number = each.partition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            found.append(f"{each!r}: name=number")
        if name not in names:
            found.append(f"{name!r} is no feature; accepted: {', '.join(names)}")
    if found:
        raise RequestError(problems("--weights cannot be used", found))
    return {name: weights.get(name, 0.0) for name in names}


def score_table(before: evaluation.Report, after: evaluation.Report) -> Table:
    right = [Column(name, justify="right") for name in ("before", "after")]
    table = Table("score", *right, Column("signature", overflow="fold"), title="as tuned on", title_justify="left")
    for name in SHOWN:
        table.add_row(name, f"{before[name].value:.2f}", f"{after[name].value:.2f}", after[name].signature)
    return table


def weight_table(weights: Mapping[str, float]) -> Table:
    table = Table("feature", Column("weight", justify="right"))
    for name, weight in weights.items():
        table.add_row(name, f"{weight:g}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
