"""Translate text, documents and folders.

    echo "Where is the train station?" | mt-service translate --source en --target de
    mt-service translate --model runs/phrasebook-en-de/model hello.en > hello.de
    mt-service translate --model MODEL news.en.gz --beam-size 8 --n-best 3 --json --output news.jsonl.gz
    mt-service translate report.docx bericht.docx --source en --target de
    mt-service translate --model MODEL manual/ handbuch/

With OUT, FILE is a document or a folder. OUT gets the structure of the document (docs/glossaries-and-documents.md lists
the formats) or the folder tree. Files of unknown formats are listed and skipped. If a file cannot be translated, this
is reported, all other files are translated, and the exit status is 3.

Without OUT, each line of a text gives one line of output, in order and in constant memory. A line may hold several
sentences; with --sentences each line is one sentence, as in a test set.

With --output FILE the lines are written to FILE.part, which is renamed when all lines are done. If the command is
interrupted, run it again to resume. If a line cannot be translated, the output line is empty, a message is printed on
stderr, and the exit status is 3.

At the end, sentences that a reader should check are listed on stderr: of lines their number and the first ten, of
documents all. They have a quality below 55 (docs/serve.md), are unlike the training text, or are not translated.

--json writes one JSON object per line, with the fields source, translation, score (log-probability / length penalty),
log_probability, quality, and check, the reason to check it. If a line has several sentences, the object has the field
sentences; with --n-best, the field alternatives. For a line that cannot be translated, the object has only the fields
problem and, if readable, source.

--ensemble averages the probabilities of several models, which takes the sum of their times.

--ray translates a file on a Ray cluster, with one process for each GPU or for each group of --threads cores. The model
directory must have the same path on every machine; this machine, which belongs to the cluster, reads and writes the
files. If a process dies, its lines are translated again.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

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

from mt.cli.command import CommandParser, command, count, stderr_console, tell
from mt.cli.translate_files import translate_files
from mt.cli.translate_on_ray import RayCluster
from mt.cli.translation_job import DoubtfulSentences, OutputLine, TranslationJob, input_lines, is_interactive, line_size
from mt.data.corpus import read_content
from mt.data.resumable_file import ResumableFile
from mt.errors import DataError, RequestError, problems
from mt.files import file_digest
from mt.languages import language_named
from mt.text.documents import PACKED_SUFFIXES
from mt.text.encoding import check_encoding, decode_text
from mt.text.formality import FORMALITY_CHOICES
from mt.text.table import read_table
from mt.text.terms import Terms

LINES_A_FLUSH = 100
LINE_OPTIONS = ("output", "json", "sentences", "n_best", "ray")
COMPRESSED = (".gz", ".xz")


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    if options.out is not None:
        terms = read_glossary(options.glossary, options.source, options.target)
        return 0 if translate_files(TranslationJob.load(options, terms), options.out, console) else 3
    return 3 if run(options, console) else 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. Raises: RequestError if FILE is a model, or a document without OUT."""
    parser = CommandParser("translate", __doc__)
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="text, .gz or .xz, or a document or folder (default: stdin)",
    )
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT", help="translation of the document or folder")
    add = parser.common.add_argument
    parser.add_model()
    add("--output", type=Path, metavar="FILE", help="write here instead of stdout; .gz and .xz are compressed")
    parser.add_languages()
    add("--glossary", type=Path, metavar="FILE", help=".csv or .tsv file: terms, translations, perhaps languages")
    add("--formality", choices=FORMALITY_CHOICES, help="formal (more) or informal (less) address in German and French")
    add("--json", action="store_true", help="write one JSON object per line")
    parser.add_device()
    add = parser.more.add_argument
    add("--sentences", action="store_true", help="each line is one sentence: do not split it")
    add("--encoding", metavar="NAME", help="encoding of text documents that are not Unicode (default: detected)")
    parser.add_search()
    add("--n-best", type=int, metavar="N", help="number of translations per line; requires --json")
    add("--threads", type=count, metavar="N", help="CPU cores (default: all)")
    parser.add_precision()
    parser.add_ensemble()
    add("--ray", metavar="ADDRESS", help="translate on a Ray cluster: HOST:PORT, or auto")
    add = parser.add_argument_group("sampling").add_argument
    add("--sample", action="store_true", default=None, help="sample instead of searching, in torch")
    add("--temperature", type=float, metavar="X", help="below 1, probable tokens are drawn more often (default: 1)")
    add("--seed", type=int, metavar="N", help="seed of the samples (default: 0)")
    options = parser.parse_intermixed_args(argv)
    if options.n_best is not None and not options.json:
        parser.error("--n-best requires --json")
    check_file(options.file, options.out)
    if options.formality and options.sample:
        parser.error("--formality applies to a search; it cannot be combined with --sample")
    if options.ray is not None and options.file == "-":
        parser.error("--ray translates a file, not stdin; accepted: FILE")
    named = {f"--{name.replace('_', '-')}": getattr(options, name) for name in LINE_OPTIONS}
    if options.out is not None and (wrong := [name for name, value in named.items() if value]):
        parser.error(f"{wrong[0]} applies to lines of text; it cannot be combined with OUT")
    if options.encoding and options.out is None:
        parser.error("--encoding applies to documents; it requires OUT")
    check_encoding(options.encoding or "")
    return options


def check_file(file: str, out: Path | None) -> None:
    """Check FILE and OUT. Raises: RequestError if FILE is missing or a model, or if OUT is missing for it."""
    path = Path(file)
    if (path / "config.json").exists():
        raise RequestError(f"{file} is a model; accepted: --model {file}, and FILE or standard input")
    if out is not None and not path.exists():
        raise RequestError(f"{file} does not exist; accepted: a document or a folder")
    if out is None and (path.is_dir() or path.suffix.lower() in PACKED_SUFFIXES):
        kind = "folder" if path.is_dir() else "document"
        raise RequestError(f"{file} is a {kind}; name its translation, too: FILE OUT")


def run(options: argparse.Namespace, console: Console) -> int:
    terms = read_glossary(options.glossary, options.source, options.target)
    if options.ray is None:
        return translate(options, TranslationJob.load(options, terms), console)
    with RayCluster(options, terms) as cluster:
        return translate(options, cluster, console)


class LineTranslator(Protocol):
    """Translator of lines: a TranslationJob in this process, or a RayCluster."""

    def fingerprint(self) -> dict[str, Any]: ...

    def translate_input(self, first: int) -> Iterator[OutputLine]: ...


def translate(options: argparse.Namespace, translator: LineTranslator, console: Console) -> int:
    """Translate the input and return the number of lines that failed. Raises: MTError."""
    path = None if options.file == "-" else Path(options.file)
    lines, interactive = input_lines(options), is_interactive(options)
    if interactive:
        console.print("one sentence a line; Ctrl-D ends the input")
    shown = not (interactive or (options.output is None and sys.stdout.isatty()))
    with open_output(options, translator) as output, progress_bar(path, console, shown) as progress:
        done = output.lines
        skipped = sum(map(line_size, islice(lines, done)))
        task = progress.add_task("translating", total=text_size(path), completed=skipped, lines=done, resumed=done)
        if done:
            console.print(f"resuming after line {done:,}")
        size, doubtful = 0, DoubtfulSentences()
        for line in translator.translate_input(done + 1):
            if line.problem:
                tell(console, line.problem)
            output.write(line.text, problem=bool(line.problem))
            doubtful.add(f"line {output.lines}", line.doubts)
            size += line.size
            if interactive or output.lines % LINES_A_FLUSH == 0:
                output.flush()
                progress.update(task, completed=skipped + size, lines=output.lines)
        progress.update(task, completed=text_size(path), lines=output.lines)
        output.finish()
    doubtful.tell(console, "" if options.json else " (--json marks all)")
    if output.problems:
        console.print(f"{output.problems:,} of {output.lines:,} lines could not be translated and are empty")
    return output.problems


def read_glossary(path: Path | None, *languages: str | None) -> Terms:
    """Read a glossary file. Each row has a term and its translation, as in `read_table`. Empty rows are ignored.

    A first row with two languages, or `source` and `target`, is a heading. It says which column has the translations.

    Raises: DataError lists the rows that are malformed, and the terms with two translations. DocumentError: the file is
    not text, or a quoted field is damaged.
    """
    if path is None:
        return Terms()
    separator, rows = read_table(decode_text(str(path), read_content(path))[0], usual="\t")
    invalid: list[str] = []
    terms: dict[str, tuple[int, str]] = {}  # line and translation of each term
    order = 0  # -1 if the first column has the translations
    others = 0  # rows of other languages
    for place, (number, columns) in enumerate(rows):
        if len(columns) == 4 and all(languages):  # as in `--page-glossary`
            named = [*map(language_named, columns[2:])]
            if named == [language_named(str(language)) for language in languages]:
                del columns[2:]
            elif None not in named:
                others += 1
                continue
        if not place and (order := heading_order(columns, languages)):
            exchanged = "; the first column has the translations" if order < 0 else ""
            tell(stderr_console(), f"{path}:{number}: {', '.join(columns)} is a heading, no term{exchanged}")
        elif len(columns) == 2 and all(columns):
            term, translation = columns[:: order or 1]
            first, other = terms.setdefault(term, (number, translation))
            if other != translation:
                invalid.append(f"{path}:{number}: {term!r} is {translation!r} here and {other!r} in line {first}")
        else:
            row = separator.join(columns)[:60]
            accepted = "2 columns, or 4 with --source and --target, the last two languages"
            invalid.append(f"{path}:{number}: {row!r}; accepted: {accepted}")
    if others:
        tell(stderr_console(), f"{path}: terms of other languages, which are left out: {others:,}")
    if invalid:
        raise DataError(problems("the glossary cannot be used", invalid))
    try:
        return Terms(tuple((term, translation) for term, (_, translation) in terms.items()))
    except RequestError as error:
        raise DataError(f"{path}: {error}") from error


def heading_order(columns: Sequence[str], languages: Sequence[str | None]) -> int:
    """Return 1 for a row that says `source` and `target` or names `languages`, -1 for the other order, else 0.

    Of four columns, the last two are languages: 1 is returned if one of them is none.
    """
    named = [language_named(column) for column in columns]
    if len(columns) == 4:
        return int(None in named[2:])
    wanted = [language and language_named(language) for language in languages]  # None stands for any
    for order in (1, -1):
        pairs = zip(wanted, named[::order], strict=False)
        if [column.lower() for column in columns[::order]] == ["source", "target"] or (
            len(columns) == 2 and len({None, *named}) == 3 and all(one in (None, other) for one, other in pairs)
        ):
            return order
    return 0


class StreamOutput(AbstractContextManager["StreamOutput"]):
    """Output to stdout, a device or a pipe, with the methods of ResumableFile. It cannot be resumed."""

    def __init__(self, file: IO[str]) -> None:
        self.lines = self.problems = 0
        self._file = file

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, line: str, problem: bool) -> None:
        self.lines += 1
        self.problems += problem
        self._file.write(line + "\n")

    def flush(self) -> None:
        self._file.flush()

    finish = flush


def open_output(options: argparse.Namespace, translator: LineTranslator) -> StreamOutput | ResumableFile:
    """Open the output of the command, a file or stdout, in UTF-8 with `\\n` as line end on every system.

    Raises: DataError if the file cannot be written, or contains the output of another job.
    """
    path: Path | None = options.output
    if path is None:
        return StreamOutput(open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False))
    if path.exists() and not path.is_file():
        return StreamOutput(path.open("w", encoding="utf-8", newline="\n"))
    if options.file == "-":  # stdin cannot be read again
        return ResumableFile(path, {})
    files = {"input": Path(options.file), "glossary": options.glossary}
    try:
        digests = {name: file_digest(file) if file else "" for name, file in files.items()}
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return ResumableFile(path, digests | translator.fingerprint())


def text_size(path: Path | None) -> int | None:
    """Return the size of a file in bytes, or None for a compressed file or stdin, whose text has an unknown size."""
    return None if path is None or path.suffix in COMPRESSED else path.stat().st_size


def progress_bar(path: Path | None, console: Console, shown: bool) -> Progress:
    """Return a display of lines and lines/s and, if the size of the input is known, of the remaining time.

    Nothing is displayed if `shown` is false or `console` is not a terminal.
    """
    size_known = text_size(path) is not None
    return Progress(
        TextColumn("{task.description}"),
        *((BarColumn(), TaskProgressColumn()) if size_known else ()),
        LineRateColumn(),
        TimeElapsedColumn(),
        *((TextColumn("left:"), TimeRemainingColumn()) if size_known else ()),
        console=console,
        disable=not (shown and console.is_terminal),
    )


class LineRateColumn(ProgressColumn):
    """Column of a progress display, with a text such as "4,000 lines, 512.3 lines/s"."""

    def render(self, task: Task) -> str:
        lines, resumed = task.fields["lines"], task.fields["resumed"]
        return f"{lines:,} lines, {(lines - resumed) / max(task.elapsed or 0, 1e-9):.1f} lines/s"
