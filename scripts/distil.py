"""Make of what large models translated a corpus that teaches a small one: sequence-level distillation.

    python scripts/translate.py TEACHER train.en.gz --sentences --n-best 5 --json --output teacher.jsonl
    python scripts/distil.py teacher.jsonl --reference train.de.gz --direction en-de --out data/ours/distilled

Of each n-best list one translation is taken: that which is most like the reference by sentence BLEU (Kim and Rush
2016, section 3.3), or without --reference the best, which is what the teacher would say (section 3.2). A shallow
decoder learns one translation of a source more easily than several; several files, of several teachers, give as many
as differ, for a student that is to learn from all of them (Nguyen et al. 2020). The corpus is OUT.en and OUT.de:
"ours/distilled.{language}" in a recipe.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from shell.command import command
from translation.nbest import read_n_best

from mt.data.corpus import read_lines
from mt.engine.reranking import NBest
from mt.errors import DataError, problems
from mt.evaluation import sentence_bleu


@command
def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(stderr=True)
    source, _, target = options.direction.partition("-")
    if not source or not target or source == target:
        raise DataError(f"--direction is {options.direction!r}; accepted: two languages, such as en-de")
    with console.status("reading"):
        teachers = [read_n_best(file) for file in options.nbest]
        references = None if options.reference is None else list(read_lines(options.reference))
    outputs = {language: Path(f"{options.out}.{language}") for language in (source, target)}
    check(options, teachers, references, outputs.values())
    with console.status("choosing"):
        pairs = list(chosen(teachers, references, target))
    if not pairs:
        raise DataError("nothing is left to teach: every line is empty")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for output, side in zip(outputs.values(), zip(*pairs, strict=True), strict=True):
        aside = output.with_name(output.name + ".part")
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n" for text in side)
        aside.replace(output)
    console.print(
        f"{options.out}.{{{source},{target}}}: {len(pairs):,} pairs of {len(teachers[0]):,} sources",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "nbest", type=Path, nargs="+", metavar="NBEST.jsonl", help="what translate.py --n-best K --json wrote"
    )
    parser.add_argument("--reference", type=Path, metavar="FILE", help="the sources' own translations, line by line")
    parser.add_argument("--direction", metavar="L-L", required=True, help="such as en-de")
    parser.add_argument("--out", type=Path, metavar="PATH", required=True, help="PATH.en and PATH.de are written")
    return parser.parse_args(arguments)


def check(
    options: argparse.Namespace,
    teachers: Sequence[Sequence[NBest]],
    references: Sequence[str] | None,
    outputs: Iterable[Path],
) -> None:
    """Raises DataError if they are not of the same sources, line by line, or one of them would be overwritten."""
    files: Sequence[Path] = options.nbest
    sources = [each.source for each in teachers[0]]
    found = [
        f"{file} has other sources than {files[0]}"
        for file, lists in zip(files, teachers, strict=True)
        if [each.source for each in lists] != sources
    ]
    if references is not None and len(references) != len(sources):
        found.append(f"{files[0]} has {len(sources):,} lines, the reference {len(references):,}")
    if found:
        raise DataError(problems("these files cannot teach; accepted: translations of one text", found))
    taken = {file.resolve() for file in (*files, options.reference) if file is not None}
    if overwritten := [str(output) for output in outputs if output.resolve() in taken]:
        raise DataError(f"{', '.join(overwritten)} would be overwritten; accepted: another --out")


def chosen(
    teachers: Sequence[Sequence[NBest]], references: Sequence[str] | None, target: str
) -> Iterator[tuple[str, str]]:
    """Source and translation, a line each, one after the other; nothing where there is no translation."""
    for number, lists in enumerate(zip(*teachers, strict=True)):
        taken = {""}
        for each in lists:
            text = each.translations[0]
            if references is not None and len(each.translations) > 1:
                given = [references[number]] * len(each.translations)
                scores = sentence_bleu(each.translations, given, target_language=target)
                text = each.translations[scores.index(max(scores))]
            text = " ".join(text.splitlines()).strip()
            if text not in taken:
                taken.add(text)
                yield " ".join(each.source.splitlines()).strip(), text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
