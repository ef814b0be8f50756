"""Translation of a document, or of all documents in a folder."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mt.cli.command import tell
from mt.cli.translation_job import DoubtfulSentences, TranslationJob, describe_doubts
from mt.errors import DataError, MTError
from mt.files import atomic_file
from mt.pipeline.documents import FileTranslator
from mt.text.documents import SUFFIXES, DocumentOptions, translated_name

LIMITS = DocumentOptions(
    max_bytes=1_000_000_000, max_unpacked_bytes=4_000_000_000, max_segments=5_000_000, max_characters=500_000_000
)
"""Limits for files that are translated on the command line. They are wider than those of the service."""


def translate_files(job: TranslationJob, out: Path, console: Console) -> bool:
    """Translate the document or folder `job.options.file`, and write `out`. Return whether all texts were translated.

    Raises: DataError for an unknown format or a wrong `out`, RequestError for options that the model does not support.
    """
    options, path = job.options, Path(job.options.file)
    limits = replace(LIMITS, encoding=options.encoding or "")
    translator = FileTranslator(
        job.translator, options.source, options.target, job.search, job.terms, job.formality, limits
    )
    counts, unchanged, doubtful = Counter[str](), 0, DoubtfulSentences(sys.maxsize)
    for file, target in _files(path, out):
        if target is None:
            counts["skipped"] += 1
            tell(console, f"skipped: {file}: files of this format are not translated")
            continue
        try:
            done = translator.translate(file.name, file.read_bytes())
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(target) as temporary:
                temporary.write_bytes(done.content)
        except Exception as error:  # a library may raise any exception for a damaged file
            counts["failed"] += 1
            kind = "" if isinstance(error, (MTError, OSError)) else f"{type(error).__name__}: "
            tell(console, f"not translated: {file}: {kind}{error}")
            continue
        for problem in done.problems:
            tell(console, f"{file}: {problem}")
        counts["translated"] += 1
        unchanged += len(done.problems)
        doubtful.add(str(file), describe_doubts(done.doubtful))
        tell(console, f"{file} -> {target}: {done.segments:,} texts")
    summary = f"{counts['translated']:,} files translated, {counts['skipped']:,} skipped, {counts['failed']:,} failed"
    rest = f"; {unchanged:,} texts could not be translated and are unchanged" if unchanged else ""
    doubtful.tell(console)  # first: the list may be long
    tell(console, summary + rest)
    return not counts["failed"] and not unchanged


def _files(path: Path, out: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield (file, path of the translation) for the document `path`, or for each file in the folder `path`.

    In a folder, the path of the translation is None if the format of the file is unknown. Raises: DataError if `path`
    has an unknown format, or if `out` cannot be used.
    """
    if path.is_dir():
        if out.exists() and not out.is_dir():
            raise DataError(f"{out} is a file, but {path} is a folder; accepted: a folder")
        if out.resolve().is_relative_to(path.resolve()):
            raise DataError(f"{out} lies in {path}; accepted: a folder outside of it")
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            target = out / file.with_name(translated_name(file.name)).relative_to(path)
            yield file, target if file.suffix.lower() in SUFFIXES else None
    else:
        if path.suffix.lower() not in SUFFIXES:
            accepted = f"{', '.join(SUFFIXES)} (save a mail as .html or .txt); lines of a text by --output {out}"
            raise DataError(f"{path} has an unknown format; accepted: {accepted}")
        name = translated_name(path.name)
        target = out / name if out.is_dir() else out
        suffix = Path(name).suffix
        if target.suffix.lower() != suffix.lower():
            raise DataError(f"{target} has another format than the translation of {path}; accepted: {suffix}")
        if target.exists() and target.samefile(path):
            raise DataError(f"{target} is the document itself; accepted: another file")
        yield path, target
