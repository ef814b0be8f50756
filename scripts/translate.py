"""Translate a file, or standard input: one line in, one line out, in the same order, in constant memory.

    python scripts/translate.py runs/phrasebook-en-de/model hello.en > hello.de
    echo "Where is the train station?" | python scripts/translate.py runs/phrasebook-en-de/model
    python scripts/translate.py MODEL news.en.gz --beam-size 8 --n-best 3 --json --output news.jsonl.gz

A line may hold several sentences; --sentences says that each is one, as in a test set. With --glossary, each term that
a line holds is translated as FILE says.

With --ensemble, MODEL and these, which must have one vocabulary, translate together: their probabilities are averaged,
which takes as long as all of them. What they write can teach a small model. With --mbr, N translations are
drawn, and the one is taken that is most like all the others by chrF (minimum Bayes risk); --n-best then lists the next.

With --output, the same command goes on where an earlier one was stopped or killed: until all is done, the lines are in
FILE.part. A line that cannot be translated leaves its place empty and is named on stderr; the exit status is then 3.

With --ray, each GPU of a cluster, or each so many --threads of its cores, has the model and is given chunks of lines;
this process, which has none, reads and writes. A worker that dies costs time alone. MODEL must have the same path on
every machine, and so must this project.

With --json each line is an object: source, translation, score (the log-probability divided by the length penalty),
log_probability, with several sentences what became of each, and, with --n-best, alternatives, of which the first is the
translation; or source, if it can be read, and problem. Progress goes to stderr, unless the translations go to the same
screen.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

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
from shell.command import command
from translation.crew import Crew
from translation.lines import Job, Line, digest, name_of, size_of_line

from mt.data.corpus import Fault, lines_and_faults, read_lines_and_faults
from mt.data.partfile import PartFile
from mt.errors import DataError, RequestError, problems
from mt.text.terms import Terms

LINES_A_FLUSH = 100
COMPRESSED = (".gz", ".xz")


@command
def main(arguments: Sequence[str]) -> int:
    try:
        failed = run(parse(arguments), Console(stderr=True))
    except BrokenPipeError:  # whoever reads our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 3 if failed else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", type=Path, help="a model directory")
    parser.add_argument("file", nargs="?", default="-", help="one text a line; plain, .gz or .xz; - is stdin")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write here instead of stdout, .gz and .xz compressed"
    )
    parser.add_argument("--json", action="store_true", help="write a JSON object a line")
    parser.add_argument("--sentences", action="store_true", help="each line is one sentence: do not split it")
    parser.add_argument(
        "--ensemble",
        type=Path,
        nargs="+",
        default=[],
        metavar="MODEL",
        help="models that translate together with the first",
    )
    parser.add_argument("--source", metavar="L", help="language to translate from, where the model has several")
    parser.add_argument("--target", metavar="L", help="language to translate into, where the model has several")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or int8 (default: %(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU cores that translate (default: all)")
    parser.add_argument("--shortlist", action="store_true", help="faster: only tokens that scripts/shortlist.py lists")
    parser.add_argument("--glossary", type=Path, metavar="FILE", help="how to translate terms: term, tab, translation")
    parser.add_argument("--ray", metavar="ADDRESS", help="on a Ray cluster: HOST:PORT, or auto")
    search = parser.add_argument_group("search (default: what the model's recipe says)")
    search.add_argument("--beam-size", type=int, metavar="N", help="1 is greedy search")
    search.add_argument("--n-best", type=int, metavar="N", help="translations a line; needs --json")
    search.add_argument("--length-penalty", type=float, metavar="X", help="higher favours longer translations")
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--sample", action="store_true", default=None, help="draw instead of searching")
    sampling.add_argument("--temperature", type=float, metavar="X", help="below 1 draws safer words (default: 1)")
    sampling.add_argument("--top-k", type=int, metavar="N", help="draw among the N likeliest (default: 0, all)")
    sampling.add_argument("--top-p", type=float, metavar="X", help="draw among the likeliest of sum X (default: 1)")
    sampling.add_argument(
        "--mbr",
        type=int,
        metavar="N",
        help="draw N, at temperature 0.5 unless told, and take what is most like the others",
    )
    sampling.add_argument("--seed", type=int, metavar="N", help="the same seed draws the same (default: 0)")
    options = parser.parse_args(arguments)
    if options.n_best is not None and not options.json:
        parser.error("--n-best gives several translations a line: add --json")
    if options.mbr is not None and options.mbr < max(2, options.n_best or 1):
        parser.error(f"--mbr is {options.mbr}; accepted: at least 2, and at least --n-best")
    if options.mbr is not None and options.beam_size is not None:
        parser.error("--mbr draws translations: leave out --beam-size")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads is {options.threads}; accepted: at least 1")
    return options


def run(options: argparse.Namespace, console: Console) -> int:
    """How many lines could not be translated. Raises MTError for what nothing can be done about, as a missing model."""
    terms = read_glossary(options.glossary)
    if options.ray is None:
        return translate(options, Job.load(options, terms), console)
    with Crew(options, terms) as crew:
        return translate(options, crew, console)


class Translates(Protocol):
    """Job, or Crew."""

    def fingerprint(self) -> dict[str, Any]: ...

    def lines(self, given: Iterator[str | Fault], first: int, typed: bool) -> Iterator[Line]: ...


def translate(options: argparse.Namespace, job: Translates, console: Console) -> int:
    """As `run`."""
    path = None if options.file == "-" else Path(options.file)
    lines = lines_and_faults(sys.stdin.buffer, name_of(options)) if path is None else read_lines_and_faults(path)
    typed = path is None and sys.stdin.isatty()  # then each line is answered at once
    if typed:
        console.print("one sentence a line; Ctrl-D ends it")
    shares_screen = options.output is None and sys.stdout.isatty()
    with opened(options, job) as output, shown(path, console, not (typed or shares_screen)) as progress:
        begun = output.lines
        skipped = sum(map(size_of_line, islice(lines, begun)))
        task = progress.add_task("translating", total=size_of(path), completed=skipped, lines=begun, begun=begun)
        if begun:
            console.print(f"going on after line {begun:,}")
        size = 0
        for line in job.lines(lines, begun + 1, typed):
            if line.problem:
                console.print(line.problem, markup=False, highlight=False, soft_wrap=True)
            output.write(line.text, problem=bool(line.problem))
            size += line.size
            if typed or output.lines % LINES_A_FLUSH == 0:
                output.flush()
                progress.update(task, completed=skipped + size, lines=output.lines)
        progress.update(task, completed=size_of(path), lines=output.lines)
        output.finish()
    if output.problems:
        console.print(f"{output.problems:,} of {output.lines:,} lines could not be translated; their places are empty")
    return output.problems


def read_glossary(path: Path | None) -> Terms:
    """A term, a tab and its translation a line; empty lines are passed over. Raises DataError, naming the lines."""
    if path is None:
        return Terms()
    entries, found = [], []
    for number, line in enumerate(read_lines_and_faults(path), 1):
        if isinstance(line, Fault):
            found.append(line.text)
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) == 2 and all(parts):
            entries.append((number, (parts[0], parts[1])))
        elif any(parts):
            found.append(f"{path}:{number}: {line.strip()[:60]!r}: a term, a tab and its translation")
    known: dict[str, tuple[int, str]] = {}
    for number, (term, translation) in entries:
        before, other = known.setdefault(term, (number, translation))
        if other != translation:
            found.append(f"{path}:{number}: {term!r} is {translation!r} here and {other!r} in line {before}")
    if found:
        raise DataError(problems("the glossary cannot be used", found))
    try:
        return Terms(tuple(entry for _, entry in entries))
    except RequestError as error:
        raise DataError(f"{path}: {error}") from error


class Direct:
    """Lines that go out as they come: to stdout, or to a device or a pipe. The other kind of output is a PartFile."""

    def __init__(self, file: IO[str]) -> None:
        self.lines = self.problems = 0
        self._file = file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, line: str, problem: bool) -> None:
        self.lines += 1
        self.problems += problem
        self._file.write(line + "\n")

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self._file.flush()


def opened(options: argparse.Namespace, job: Translates) -> Direct | PartFile:
    """Text goes out as UTF-8 with plain line ends, wherever it goes. Raises DataError."""
    path: Path | None = options.output
    if path is None:
        return Direct(open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False))
    if path.exists() and not path.is_file():
        return Direct(path.open("w", encoding="utf-8", newline="\n"))
    if options.file == "-":  # what was read cannot be read again
        return PartFile(path, {})
    glossary = digest(options.glossary) if options.glossary else ""
    return PartFile(path, {"input": digest(Path(options.file)), "glossary": glossary, **job.fingerprint()})


def size_of(path: Path | None) -> int | None:
    """Bytes of text in a file, where that can be known before it is read."""
    return None if path is None or path.suffix in COMPRESSED else path.stat().st_size


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
        lines, begun = task.fields["lines"], task.fields["begun"]
        return f"{lines:,} lines, {(lines - begun) / max(task.elapsed or 0, 1e-9):.1f} lines/s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
