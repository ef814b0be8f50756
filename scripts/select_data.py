"""Choose from a large corpus the lines that are most like a small one, by two language models (Moore and Lewis 2010).

    python scripts/select_data.py IN-DOMAIN GENERAL web.de.gz web.en.gz --keep 500000 --out data/selected

IN-DOMAIN is a language model of text like that which is to be translated, GENERAL one of the large corpus, or of a
sample of it as large as the other's text. The best lines are those that the first holds for likelier than the second
does, by log-probability a token. The models read the first FILE; the others, its translations, go with it line by line.
What is chosen is written in its old order to files of the same names, uncompressed, in the folder of --out: one more
corpus for a recipe.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from shell.command import command

from mt.data.corpus import read_lines
from mt.engine.language import LanguageScorer
from mt.errors import DataError, LanguageError, problems

CHUNK = 10_000  # lines in memory at a time
COMPRESSED = (".gz", ".xz")


@command
def main(arguments: Sequence[str]) -> int:
    run(parse(arguments), Console(stderr=True))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("in_domain", type=Path, metavar="IN-DOMAIN", help="a language model of what is wanted")
    parser.add_argument("general", type=Path, metavar="GENERAL", help="a language model of what there is")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="what there is, and its translations")
    parser.add_argument("--keep", type=int, metavar="N", required=True, help="how many lines")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="where they go")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.keep < 1:
        parser.error(f"--keep is {options.keep}; accepted: at least 1")
    return options


def run(options: argparse.Namespace, console: Console) -> None:
    """Raises MTError."""
    in_domain, general = (LanguageScorer.load(path, options.device) for path in (options.in_domain, options.general))
    if in_domain.language != general.language:
        raise LanguageError(
            f"{options.in_domain} is of {in_domain.language}, {options.general} of {general.language}; accepted: "
            "two models of one language"
        )
    outputs = [options.out / (file.stem if file.suffix in COMPRESSED else file.name) for file in options.files]
    with console.status("counting lines") as status:
        total = check(options.files, outputs)
        scores = np.empty(total)
        done = 0
        for texts in chunks(options.files[0]):
            scores[done : done + len(texts)] = differences(in_domain, general, texts)
            done += len(texts)
            status.update(f"{done:,} of {total:,} lines are scored")
    chosen = best(scores, options.keep)
    options.out.mkdir(parents=True, exist_ok=True)
    for file, output in zip(options.files, outputs, strict=True):
        with output.open("w", encoding="utf-8", newline="\n") as written:
            written.writelines(f"{line}\n" for line, keep in zip(read_lines(file), chosen, strict=True) if keep)
    unfit = int(np.isneginf(scores).sum())
    console.print(
        f"{int(chosen.sum()):,} of {total:,} lines are in {options.out}"
        + (f"; {unfit:,} are empty, or too long for the models" if unfit else "")
        + (f"; differences from {scores[chosen].min():.3f} to {scores[chosen].max():.3f}" if chosen.any() else ""),
        highlight=False,
        soft_wrap=True,
    )


def check(files: Sequence[Path], outputs: Sequence[Path]) -> int:
    """How many lines each file has. Raises DataError if they differ, or an output would overwrite something needed."""
    counts = [sum(1 for _ in read_lines(file)) for file in files]
    found = []
    if len(set(counts)) > 1:
        told = ", ".join(f"{file} has {count:,} lines" for file, count in zip(files, counts, strict=True))
        found.append(f"{told}; accepted: files that are line-aligned")
    if len(set(outputs)) < len(outputs):
        found.append("two of them have the same name; accepted: names that differ")
    taken = {file.resolve() for file in files}
    found += [f"{output} is one of them; accepted: another --out" for output in outputs if output.resolve() in taken]
    if found:
        raise DataError(problems("these files cannot be used", found))
    return counts[0]


def chunks(file: Path) -> Iterator[list[str]]:
    """So many lines at a time."""
    lines = read_lines(file)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def differences(in_domain: LanguageScorer, general: LanguageScorer, texts: Sequence[str]) -> list[float]:
    """log p(text) by the one minus that by the other, a token of the second; -inf for what is empty or too long.

    Both are divided by the same number, so that the models may have a vocabulary each.
    """
    places = [place for place, text in enumerate(texts) if text.strip() and in_domain.fits(text) and general.fits(text)]
    fitting = [texts[place] for place in places]
    found = [-np.inf] * len(texts)
    for place, like, unlike in zip(places, in_domain.score(fitting), general.score(fitting), strict=True):
        found[place] = (like.log_probability - unlike.log_probability) / unlike.tokens
    return found


def best(scores: np.ndarray, keep: int) -> np.ndarray:
    """Which are the highest, as booleans; of equal ones the first, and -inf never."""
    highest = np.argsort(-scores, kind="stable")[:keep]
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[highest] = True
    return chosen & ~np.isneginf(scores)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
