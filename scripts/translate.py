"""Translate a file, or standard input: one line in, one line out, in the same order.

    python scripts/translate.py runs/phrasebook-en-de/model hello.en > hello.de
    echo "Where is the train station?" | python scripts/translate.py runs/phrasebook-en-de/model
    python scripts/translate.py MODEL news.en.gz --beam-size 8 --n-best 3 --json --output news.jsonl

With --json each line is an object: source, translation, score (the log-probability divided by the length penalty),
log_probability, and, with --n-best, alternatives, of which the first is the translation. Progress goes to stderr,
unless the translations go to the same screen.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mt.data.corpus import read_lines
from mt.decoding.options import SearchOptions
from mt.engine.translator import Translation, Translator
from mt.errors import DataError, MTError, RequestError, problems

LINES_AT_A_TIME = 2000  # held in memory; sorted by length among themselves
COMPRESSED = (".gz", ".xz")
MAX_PROBLEMS = 10


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(stderr=True)
    try:
        run(options, console)
    except MTError as error:
        console.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 2
    except BrokenPipeError:  # whoever reads our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        console.print("stopped")
        return 130
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", type=Path, help="a model directory")
    parser.add_argument("file", nargs="?", default="-", help="one sentence a line; plain, .gz or .xz; - is stdin")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write here instead of stdout")
    parser.add_argument("--json", action="store_true", help="write a JSON object a line")
    parser.add_argument("--source", metavar="L", help="language to translate from, where the model has several")
    parser.add_argument("--target", metavar="L", help="language to translate into, where the model has several")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: PyTorch's choice)")
    search = parser.add_argument_group("search (default: what the model's recipe says)")
    search.add_argument("--beam-size", type=int, metavar="N", help="1 is greedy search")
    search.add_argument("--n-best", type=int, metavar="N", help="translations a line; needs --json")
    search.add_argument("--length-penalty", type=float, metavar="X", help="higher favours longer translations")
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--sample", action="store_true", default=None, help="draw instead of searching")
    sampling.add_argument("--temperature", type=float, metavar="X", help="below 1 draws safer words (default: 1)")
    sampling.add_argument("--top-k", type=int, metavar="N", help="draw among the N likeliest (default: 0, all)")
    sampling.add_argument("--top-p", type=float, metavar="X", help="draw among the likeliest of sum X (default: 1)")
    sampling.add_argument("--seed", type=int, metavar="N", help="the same seed draws the same (default: 0)")
    options = parser.parse_args(arguments)
    if options.n_best is not None and not options.json:
        parser.error("--n-best gives several translations a line: add --json")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads is {options.threads}; accepted: at least 1")
    return options


def run(options: argparse.Namespace, console: Console) -> None:
    """Raises MTError for a model, an option or a line that cannot be used; what came before it has been written."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    translator = Translator.load(options.model, device=options.device)
    search = asked_search(translator, options)
    path = None if options.file == "-" else Path(options.file)
    lines = read_stream(sys.stdin.buffer) if path is None else read_lines(path)
    typed = path is None and sys.stdin.isatty()  # then each line is answered at once
    if typed:
        console.print("one sentence a line; Ctrl-D ends it")
    shares_screen = options.output is None and sys.stdout.isatty()
    with opened(options.output) as output, shown(path, console, not (typed or shares_screen)) as progress:
        task = progress.add_task("translating", total=size_of(path), lines=0)
        done = 0
        for chunk in chunks(lines, 1 if typed else LINES_AT_A_TIME):
            for line, translation in zip(chunk, translated(translator, chunk, done, options, search), strict=True):
                output.write((as_json(line, translation) if options.json else translation.text) + "\n")
            output.flush()
            done += len(chunk)
            progress.update(task, advance=sum(len(line.encode()) + 1 for line in chunk), lines=done)


def asked_search(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """The model's own search but for what the command line says. Raises RequestError."""
    names = ("beam_size", "n_best", "length_penalty", "sample", "temperature", "top_k", "top_p", "seed")
    asked: dict[str, Any] = {name: value for name in names if (value := getattr(options, name)) is not None}
    if not options.sample and "beam_size" not in asked:
        asked["beam_size"] = max(translator.options.beam_size, asked.get("n_best", 1))
    return replace(translator.options, **asked)


def translated(
    translator: Translator, lines: Sequence[str], before: int, options: argparse.Namespace, search: SearchOptions
) -> list[Translation]:
    """Raises RequestError, which names the lines."""
    try:
        return translator.translate(lines, source=options.source, target=options.target, options=search)
    except RequestError as error:
        name = "standard input" if options.file == "-" else options.file
        refused = list(islice(refusals(translator, lines, before, options), MAX_PROBLEMS))
        said = problems(f"{name} cannot be translated", refused)
        raise RequestError(
            said if refused else f"{name}, lines {before + 1} to {before + len(lines)}: {error}"
        ) from error


def refusals(translator: Translator, lines: Sequence[str], before: int, options: argparse.Namespace) -> Iterator[str]:
    """The lines that cannot be asked for at all, and why."""
    for number, line in enumerate(lines, start=before + 1):
        try:
            translator.request(line, source=options.source, target=options.target)
        except RequestError as error:
            yield f"line {number}: {error}"


def as_json(line: str, translation: Translation) -> str:
    best, *others = (
        {"translation": found.text, "score": found.score, "log_probability": found.log_probability}
        for found in translation.alternatives
    )
    return json.dumps(
        {"source": line} | best | ({"alternatives": [best, *others]} if others else {}), ensure_ascii=False
    )


def read_stream(stream: IO[bytes]) -> Iterator[str]:
    """The lines of standard input. Raises DataError for one that is not UTF-8."""
    for number, raw in enumerate(stream, start=1):
        try:
            yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input, line {number}: not UTF-8 at byte {error.start + 1}") from error


def chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(lines)
    while chunk := list(islice(left, size)):
        yield chunk


def size_of(path: Path | None) -> int | None:
    """Bytes of text in a file, where that can be known before it is read."""
    return None if path is None or path.suffix in COMPRESSED else path.stat().st_size


def opened(path: Path | None) -> "IO[str] | nullcontext[IO[str]]":
    """Text goes out as UTF-8 with plain line ends, wherever it goes. Raises DataError."""
    if path is None:
        return nullcontext(open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False))
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error


def shown(path: Path | None, console: Console, wanted: bool) -> Progress:
    """Lines so far and lines a second; with an estimate where the size of the input is known."""
    known = size_of(path) is not None
    return Progress(
        TextColumn("{task.description}"),
        *((BarColumn(), TaskProgressColumn()) if known else ()),
        LinesColumn(),
        TimeElapsedColumn(),
        *((TextColumn("left:"), TimeRemainingColumn()) if known else ()),
        console=console,
        disable=not (wanted and console.is_terminal),
    )


class LinesColumn(ProgressColumn):
    """`4,000 lines, 512.3 lines/s`."""

    def render(self, task: Task) -> str:
        lines = task.fields["lines"]
        return f"{lines:,} lines, {lines / max(task.elapsed or 0, 1e-9):.1f} lines/s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
