"""Build a training corpus for a small model from translations by large models (sequence-level distillation).

    mt-service translate --model TEACHER train.en.gz --sentences --n-best 5 --json --output teacher.jsonl
    mt-service distil teacher.jsonl --reference-file train.de.gz --source en --target de --out data/ours/distilled

One translation of each n-best list is used: with --reference-file the translation with the highest sentence BLEU (Kim
and Rush 2016, section 3.3), otherwise the first translation (section 3.2). With the files of several teachers, a source
is paired with each distinct translation (Nguyen et al. 2020). In the example, the corpus is written to
data/ours/distilled.en and data/ours/distilled.de; a recipe with data.root = "data" uses the path
"ours/distilled.{language}".

--drop X drops the fraction X of the pairs: those with the lowest scores, and those that are too long for the model
--backward. The score of a pair is the log-probability per token of the source given the translation (round trip), by
--backward, a model of the reverse direction.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, FiniteFloat, ValidationError

from mt.cli.command import CommandParser, command, language, stderr_console, tell, warn
from mt.data.corpus import read_lines
from mt.data.language_check import SAMPLE, check_languages
from mt.errors import DataError, LanguageError, problems
from mt.evaluation import sentence_bleu
from mt.files import atomic_file
from mt.interop.catalogue import model_path
from mt.languages import Direction
from mt.scoring.pair_filter import TextPair, drop_lowest, round_trip_scores
from mt.scoring.pairs import PairScorer


class ScoredTranslation(BaseModel):
    """One of the alternative translations of a line, with its score."""

    translation: str
    score: FiniteFloat


class NBest(BaseModel):
    """A line of the output of `mt-service translate --json`. If it has a `problem`, it has no translation."""

    source: str = ""
    translation: str = ""
    score: FiniteFloat = 0.0
    alternatives: tuple[ScoredTranslation, ...] = ()
    problem: str | None = None

    @property
    def translations(self) -> list[str]:
        """All translations, best first."""
        return [alternative.translation for alternative in self.alternatives] or [self.translation]


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    direction = Direction.parse(f"{options.source}-{options.target}")
    with console.status("reading"):
        teachers = [read_n_best(file) for file in options.nbest]
        references = None if options.reference_file is None else list(read_lines(options.reference_file))
    outputs = [Path(f"{options.out}.{language}") for language in (direction.source, direction.target)]
    check_files(options, teachers, references, outputs)
    with console.status("selecting translations"):
        pairs = list(select_pairs(teachers, references, direction.target))
    if not pairs:
        raise DataError(f"{options.nbest[0]}: no line has a translation; accepted: at least one translation")
    for warning in check_languages(
        str(options.nbest[0]), (), pairs[:: max(1, len(pairs) // SAMPLE)], direction.languages
    ):
        warn(console, warning)
    dropped = ""
    if options.drop:
        with console.status(f"scoring {len(pairs):,} pairs"):
            backward = load_backward(options.backward, direction.reversed, options.device)
            kept = drop_lowest(pairs, round_trip_scores(backward, pairs, direction), options.drop)
        if not kept:
            raise DataError("all pairs are too long for --backward; accepted: at least one pair that is short enough")
        dropped, pairs = f", {len(pairs) - len(kept):,} pairs dropped", kept
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for output, side in zip(outputs, zip(*pairs, strict=True), strict=True):
        with atomic_file(output) as path, path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n" for text in side)
    names = f"{options.out}.{{{direction.source},{direction.target}}}"
    tell(console, f"{names}: {len(pairs):,} pairs of {len(teachers[0]):,} sources{dropped}")
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("distil", __doc__)
    parser.add_argument(
        "nbest", type=Path, nargs="+", metavar="NBEST.jsonl", help="output of `mt-service translate --n-best K --json`"
    )
    add = parser.common.add_argument
    for side in ("source", "target"):
        add(f"--{side}", type=language, metavar="L", required=True, help=f"{side} language")
    add("--out", type=Path, metavar="PATH", required=True, help="corpus; its files are PATH.LANGUAGE, such as PATH.en")
    add("--reference-file", type=Path, metavar="FILE", help="reference translations of the sources, line by line")
    more = parser.more.add_argument
    more("--drop", type=float, default=0.0, metavar="X", help="share of the pairs to drop (default: %(default)s)")
    more("--backward", type=model_path, metavar="MODEL", help="model of the reverse direction, for --drop")
    more("--device", default="auto", metavar="NAME", help="device of this model (default: %(default)s)")
    options = parser.parse_args(argv)
    if not 0 <= options.drop < 1 or bool(options.drop) != bool(options.backward):
        parser.error(f"--drop is {options.drop}; accepted: above 0 and below 1, together with --backward")
    return options


def read_n_best(path: Path) -> list[NBest]:
    """Return the n-best list of each line. Raises: DataError lists lines that `translate --json` would not write."""
    lists, invalid = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            lists.append(NBest.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            invalid.append(f"line {number}: {'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}")
    if invalid:
        accepted = "accepted: output of `mt-service translate --n-best K --json`"
        raise DataError(problems(f"{path} has lines that are not n-best lists; {accepted}", invalid))
    return lists


def load_backward(model: Path, direction: Direction, device: str) -> PairScorer:
    """Load the model `--backward`. Raises: MTError if it cannot be used, or does not translate `direction`."""
    scorer = PairScorer.load(model, device)
    if direction not in scorer.directions:
        raise LanguageError(f"--backward {model} translates {scorer.directions}; accepted: a model of {direction}")
    return scorer


def check_files(
    options: argparse.Namespace,
    teachers: Sequence[Sequence[NBest]],
    references: Sequence[str] | None,
    outputs: Iterable[Path],
) -> None:
    """Check that all n-best files have the same sources, that the references match, and that no input is overwritten.

    Raises:
        DataError: if a check fails.
    """
    files: Sequence[Path] = options.nbest
    sources = [n_best.source for n_best in teachers[0]]
    mismatches = [
        f"the sources in {file} differ from those in {files[0]}"
        for file, lists in zip(files, teachers, strict=True)
        if [n_best.source for n_best in lists] != sources
    ]
    if references is not None and len(references) != len(sources):
        mismatches.append(f"{files[0]} has {len(sources):,} lines, {options.reference_file} has {len(references):,}")
    if mismatches:
        raise DataError(problems("the files do not match; accepted: files for the same source text", mismatches))
    inputs = {file.resolve() for file in (*files, options.reference_file) if file is not None}
    if overwritten := [str(output) for output in outputs if output.resolve() in inputs]:
        raise DataError(f"--out would overwrite the input {', '.join(overwritten)}; accepted: another path")


def select_pairs(
    teachers: Sequence[Sequence[NBest]], references: Sequence[str] | None, target: str
) -> Iterator[TextPair]:
    """Choose one translation from each n-best list, and yield the distinct pairs (source, translation) of each source.

    With `references`, the translation with the highest sentence BLEU is chosen, otherwise the first one. Empty
    translations are left out. `target` is the target language. Line breaks within a text become spaces.
    """
    for number, lists in enumerate(zip(*teachers, strict=True)):
        known = {""}
        for n_best in lists:
            text = n_best.translations[0]
            if references is not None and len(n_best.translations) > 1:
                repeated = [references[number]] * len(n_best.translations)
                scores = sentence_bleu(n_best.translations, repeated, target_language=target)
                text = n_best.translations[scores.index(max(scores))]
            text = " ".join(text.splitlines()).strip()
            if text not in known:
                known.add(text)
                yield " ".join(n_best.source.splitlines()).strip(), text
