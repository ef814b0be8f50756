"""Translate a file, or standard input: one line in, one line out, in the same order, in constant memory.

    python scripts/translate.py runs/phrasebook-en-de/model hello.en > hello.de
    echo "Where is the train station?" | python scripts/translate.py runs/phrasebook-en-de/model
    python scripts/translate.py MODEL news.en.gz --beam-size 8 --n-best 3 --json --output news.jsonl.gz

A line may hold several sentences; --sentences says that each is one, as in a test set. With --glossary, each term that
a line holds is translated as FILE says.

With --output, the same command goes on where an earlier one was stopped or killed: until all is done, the lines are in
FILE.part. A line that cannot be translated leaves its place empty and is named on stderr; the exit status is then 3.

With --json each line is an object: source, translation, score (the log-probability divided by the length penalty),
log_probability, with several sentences what became of each, and, with --n-best, alternatives, of which the first is the
translation; or source, if it can be read, and problem. Progress goes to stderr, unless the translations go to the same
screen.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

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

from mt.data.corpus import Fault, lines_and_faults, read_lines_and_faults
from mt.data.partfile import PartFile
from mt.decoding.options import SearchOptions
from mt.engine.plan import Failure, Translation
from mt.engine.translator import Translator
from mt.errors import DataError, MTError, RequestError, problems
from mt.text.terms import Terms

LINES_A_FLUSH = 100
COMPRESSED = (".gz", ".xz")


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(stderr=True)
    try:
        failed = run(options, console)
    except MTError as error:
        console.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 2
    except BrokenPipeError:  # whoever reads our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        console.print("stopped")
        return 130
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
    parser.add_argument("--source", metavar="L", help="language to translate from, where the model has several")
    parser.add_argument("--target", metavar="L", help="language to translate into, where the model has several")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or int8 (default: %(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU cores that translate (default: all)")
    parser.add_argument("--shortlist", action="store_true", help="faster: only tokens that scripts/shortlist.py lists")
    parser.add_argument("--glossary", type=Path, metavar="FILE", help="how to translate terms: term, tab, translation")
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


def run(options: argparse.Namespace, console: Console) -> int:
    """How many lines could not be translated. Raises MTError for what nothing can be done about, as a missing model."""
    translator = Translator.load(
        options.model, options.device, options.dtype, options.threads, shortlist=options.shortlist
    )
    job = Job(translator, options, asked_search(translator, options), read_glossary(options.glossary))
    path = None if options.file == "-" else Path(options.file)
    lines = lines_and_faults(sys.stdin.buffer, "standard input") if path is None else read_lines_and_faults(path)
    typed = path is None and sys.stdin.isatty()  # then each line is answered at once
    if typed:
        console.print("one sentence a line; Ctrl-D ends it")
    shares_screen = options.output is None and sys.stdout.isatty()
    with opened(job) as output, shown(path, console, not (typed or shares_screen)) as progress:
        begun = output.lines
        skipped = sum(map(size_of_line, islice(lines, begun)))
        task = progress.add_task("translating", total=size_of(path), completed=skipped, lines=begun, begun=begun)
        if begun:
            console.print(f"going on after line {begun:,}")
        size = 0
        for line, found in outcomes(job, lines, typed):
            if isinstance(line, Fault) and line.fatal:
                raise DataError(line.text)
            problem = problem_of(line, found, f"{'standard input' if path is None else path}:{output.lines + 1}")
            if problem:
                console.print(problem, markup=False, highlight=False, soft_wrap=True)
            output.write(written(line, found, problem, options.json), problem=bool(problem))
            size += size_of_line(line)
            if typed or output.lines % LINES_A_FLUSH == 0:
                output.flush()
                progress.update(task, completed=skipped + size, lines=output.lines)
        progress.update(task, completed=size_of(path), lines=output.lines)
        output.finish()
    if output.problems:
        console.print(f"{output.problems:,} of {output.lines:,} lines could not be translated; their places are empty")
    return output.problems


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    translator: Translator
    options: argparse.Namespace
    search: SearchOptions
    terms: Terms

    def stream(self, texts: Iterable[str]) -> Iterator[Translation | Failure]:
        return self.translator.stream(
            texts,
            source=self.options.source,
            target=self.options.target,
            options=self.search,
            sentences=self.options.sentences,
            terms=self.terms,
        )

    def fingerprint(self) -> dict[str, Any]:
        """All that the lines of the output depend on. Raises DataError for an input that is missing."""
        source, target = self.translator.direction_of(self.options.source, self.options.target)
        return {
            "input": digest(Path(self.options.file)),
            **{name: digest(self.options.model / name) for name in ("model.safetensors", "tokenizer.model")},
            "source": source,
            "target": target,
            "sentences": self.options.sentences,
            "json": self.options.json,
            "device": self.translator.scorer.device.type,
            "dtype": self.translator.dtype,
            "glossary": digest(self.options.glossary) if self.options.glossary else "",
            "shortlist": digest(self.options.model / "shortlist.safetensors") if self.options.shortlist else "",
            **asdict(self.search),
        }


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


def outcomes(
    job: Job, lines: Iterator[str | Fault], typed: bool
) -> Iterator[tuple[str | Fault, Translation | Failure]]:
    """Each line with what became of it; what cannot be read becomes what an empty line becomes."""
    read: deque[str | Fault] = deque()

    def texts(group: Iterable[str | Fault]) -> Iterator[str]:
        for line in group:
            read.append(line)
            yield "" if isinstance(line, Fault) else line

    for group in ([line] for line in lines) if typed else [lines]:
        for found in job.stream(texts(group)):
            yield read.popleft(), found


def problem_of(line: str | Fault, found: Translation | Failure, where: str) -> str:
    """Why there is no translation, or nothing."""
    if isinstance(line, Fault):
        return line.text
    return f"{where}: {found.problem}" if isinstance(found, Failure) else ""


def written(line: str | Fault, found: Translation | Failure, problem: str, as_json: bool) -> str:
    """What stands in the output for a line."""
    if not as_json:
        return "" if isinstance(found, Failure) else " ".join(found.text.splitlines())
    entry: dict[str, Any] = {} if isinstance(line, Fault) else {"source": line}
    if problem or isinstance(found, Failure):
        return json.dumps({**entry, "problem": problem}, ensure_ascii=False)
    best, *others = (
        {"translation": each.text, "score": each.score, "log_probability": each.log_probability}
        for each in found.alternatives
    )
    entry |= best
    if len(found.sentences) > 1:
        entry["sentences"] = [
            {"source": each.source, "translation": each.text, "score": each.score} for each in found.sentences
        ]
    if others:
        entry["alternatives"] = [best, *others]
    return json.dumps(entry, ensure_ascii=False)


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


def opened(job: Job) -> Direct | PartFile:
    """Text goes out as UTF-8 with plain line ends, wherever it goes. Raises DataError."""
    path: Path | None = job.options.output
    if path is None:
        return Direct(open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False))
    if path.exists() and not path.is_file():
        return Direct(path.open("w", encoding="utf-8", newline="\n"))
    if job.options.file == "-":  # what was read cannot be read again
        path.with_name(path.name + ".part").unlink(missing_ok=True)
        return PartFile(path, {})
    return PartFile(path, job.fingerprint())


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises DataError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def asked_search(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """The model's own search but for what the command line says. Raises RequestError."""
    names = ("beam_size", "n_best", "length_penalty", "sample", "temperature", "top_k", "top_p", "seed")
    asked: dict[str, Any] = {name: value for name in names if (value := getattr(options, name)) is not None}
    if not options.sample and "beam_size" not in asked:
        asked["beam_size"] = max(translator.options.beam_size, asked.get("n_best", 1))
    return replace(translator.options, **asked)


def size_of_line(line: str | Fault) -> int:
    """Bytes of text, as far as they are known."""
    return 0 if isinstance(line, Fault) else len(line.encode()) + 1


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
