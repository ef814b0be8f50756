"""Select the lines of a large corpus that are most similar to in-domain text, by the scores of two language models.

    mt-service select-data IN-DOMAIN GENERAL web.de.gz web.en.gz --keep 500000 --out data/selected

IN-DOMAIN is a language model trained on text of the target domain. GENERAL is a language model trained on the large
corpus, or on a sample of the corpus that is as large as the in-domain text. The score of a line is
(log p_in_domain - log p_general) / tokens (Moore and Lewis 2010).

The models score the lines of the first FILE. The other files are translations of the first FILE, line by line. The
selected lines of each file are written to DIR, in their original order, uncompressed and under the same file name.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console

from mt.cli.command import CommandParser, command, count, stderr_console, tell
from mt.data.corpus import read_lines
from mt.errors import DataError, LanguageError, problems
from mt.scoring.language_model import LanguageModelScorer
from mt.scoring.pair_filter import select_highest

CHUNK = 10_000  # lines in memory at a time
COMPRESSED = (".gz", ".xz")


@command
def main(argv: Sequence[str]) -> int:
    select(parse(argv), stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("select-data", __doc__)
    parser.add_argument("in_domain", type=Path, metavar="IN-DOMAIN", help="language model of the target domain")
    parser.add_argument("general", type=Path, metavar="GENERAL", help="language model of the large corpus")
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="large corpus, followed by its translations"
    )
    add = parser.common.add_argument
    add("--keep", type=count, metavar="N", required=True, help="number of lines to select")
    add("--out", type=Path, metavar="DIR", required=True, help="folder to write the selected lines to")
    parser.add_device()
    return parser.parse_args(argv)


def select(options: argparse.Namespace, console: Console) -> None:
    """Score all lines, and write the selected ones. Raises: MTError if a model or a file cannot be used."""
    in_domain, general = (
        LanguageModelScorer.load(path, options.device) for path in (options.in_domain, options.general)
    )
    if in_domain.language != general.language:
        raise LanguageError(
            f"{options.in_domain} is a model of {in_domain.language}, but {options.general} is a model of "
            f"{general.language}; accepted: two models of the same language"
        )
    outputs = [options.out / (file.stem if file.suffix in COMPRESSED else file.name) for file in options.files]
    with console.status("counting lines") as status:
        total = check_files(options.files, outputs)
        scores = np.empty(total)
        done = 0
        for texts in chunks(options.files[0]):
            scores[done : done + len(texts)] = differences(in_domain, general, texts)
            done += len(texts)
            status.update(f"{done:,} of {total:,} lines scored")
    selected = select_highest(scores, options.keep)
    options.out.mkdir(parents=True, exist_ok=True)
    for file, output in zip(options.files, outputs, strict=True):
        with output.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line, keep in zip(read_lines(file), selected, strict=True) if keep)
    unscored = int(np.isneginf(scores).sum())
    tell(
        console,
        f"{int(selected.sum()):,} of {total:,} lines are in {options.out}"
        + (f"; {unscored:,} are empty or too long for the models" if unscored else "")
        + (f"; scores from {scores[selected].min():.3f} to {scores[selected].max():.3f}" if selected.any() else ""),
    )


def check_files(files: Sequence[Path], outputs: Sequence[Path]) -> int:
    """Return the number of lines of each of `files`.

    Raises:
        DataError: if the numbers differ, or one of `outputs` would overwrite an input or another output.
    """
    counts = [sum(1 for _ in read_lines(file)) for file in files]
    errors = []
    if len(set(counts)) > 1:
        lengths = ", ".join(f"{file} has {count:,} lines" for file, count in zip(files, counts, strict=True))
        errors.append(f"{lengths}; accepted: files with the same number of lines")
    if len(set(outputs)) < len(outputs):
        errors.append(
            "two files have the same name, so one output would overwrite the other; accepted: different names"
        )
    inputs = {file.resolve() for file in files}
    errors += [
        f"--out would overwrite the input {output}; accepted: another folder"
        for output in outputs
        if output.resolve() in inputs
    ]
    if errors:
        raise DataError(problems("these files cannot be used", errors))
    return counts[0]


def chunks(file: Path) -> Iterator[list[str]]:
    lines = read_lines(file)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def differences(in_domain: LanguageModelScorer, general: LanguageModelScorer, texts: Sequence[str]) -> list[float]:
    """Return (log p_in_domain - log p_general) / tokens for each text, or -inf if the text is empty or too long.

    `tokens` is the number of tokens into which the general model divides the text. The two models may have different
    vocabularies.
    """
    indices = [i for i, text in enumerate(texts) if text.strip() and in_domain.fits(text) and general.fits(text)]
    scorable = [texts[i] for i in indices]
    scores = [-np.inf] * len(texts)
    for i, specific, generic in zip(indices, in_domain.score(scorable), general.score(scorable), strict=True):
        scores[i] = (specific.log_probability - generic.log_probability) / generic.tokens
    return scores
