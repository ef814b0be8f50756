"""Round trips of the realistic files: `python -m tests.text.realistic.round_trips [--out FOLDER] [FORMAT ...]`.

Prints a table of all formats. Files by LibreOffice are among them where LibreOffice is installed; it also opens the
translations. `--out` keeps the files and their translations.
"""

import argparse
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import docx

from mt.pipeline.documents import FileTranslator
from mt.pipeline.translator import Translator
from mt.text.documents import DocumentOptions, open_document, translated_name
from mt.text.markup import Segment, TranslatedSegment
from tests.text.realistic.files import FORMATS, SOFFICE, convert, libreoffice_files, realistic_files
from tests.text.realistic.outlines import OUTLINES, TEXT, Outline, mark_text

STARTER = Path("mt/bundled/starter")
OPTIONS = DocumentOptions(source_language="en", target_language="de")
IN_LIBREOFFICE = ("csv", "docx", "html", "odp", "ods", "odt", "pdf", "pptx", "xlsx")
"""Formats whose translations LibreOffice opens."""

_UNCHANGED = re.compile(r"\{[^{}]*\}|%[\w$@()]+|\S+://\S+|\S+@\S+")
_LETTERS = str.maketrans("aeiou", "äéíöü")

Render = Callable[[str, bytes], bytes]


@dataclass
class Row:
    """What became of the files of a format: parts by their equality, and the differences of outlines."""

    files: int = 0
    libreoffice: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    segments: int = 0
    opened: int = 0
    differences: list[str] = field(default_factory=list)


def identity(name: str, content: bytes) -> bytes:
    """Return the file with each segment as its translation."""
    document = open_document(name, content, OPTIONS)
    return document.render([TranslatedSegment(segment.text) for segment in document.segments])


def accented(name: str, content: bytes) -> bytes:
    """Return the file with accented letters and special characters in each segment that has letters."""
    document = open_document(name, content, OPTIONS)
    return document.render([_accent(segment) for segment in document.segments])


def _accent(segment: Segment) -> TranslatedSegment:
    text = segment.text
    kept = [*segment.kept, *(match.span() for match in _UNCHANGED.finditer(text))]
    letters = (
        letter if any(begin <= place < end for begin, end in kept) else letter.translate(_LETTERS)
        for place, letter in enumerate(text)
    )
    changed = "".join(letters)
    place = re.search("(?<=[éöä]) (?=[a-zäéíöü])", changed)
    begin = place.start() if place else len(changed)
    new = f"{changed[:begin]} “l'été \"d'ici\"” & 5{changed[begin:]}" if place else changed
    words = [match.span() for match in re.finditer(r"\S+", text)]
    shift = len(new) - len(text)
    moved = [(a + shift, b + shift) if a > begin else (a, b) for a, b in words]
    return TranslatedSegment(new, tuple(zip(words, moved, strict=True)))


def outline(kind: str, content: bytes, translated: bool) -> Outline:
    """Return the outline of a file or of its translation. That of .pdf is its number of texts."""
    if kind != "pdf":
        return OUTLINES[kind](content)
    if not translated:
        return [(TEXT, len(open_document("a.pdf", content).segments))]
    document = docx.Document(io.BytesIO(content))
    paragraphs = [
        *document.paragraphs,
        *(p for s in document.sections for p in (*s.header.paragraphs, *s.footer.paragraphs)),
    ]
    return [(TEXT, sum(mark_text(p.text) == TEXT or any(map(str.isdigit, p.text)) for p in paragraphs))]


def differences(kind: str, name: str, content: bytes, translated: bytes) -> list[str]:
    """Return the differences between the outlines of a file and of its translation, or the error of the reader."""
    try:
        before, after = outline(kind, content, False), outline(kind, translated, True)
    except Exception as error:  # of any library
        return [f"{name}: {type(error).__name__}: {error}"]
    pairs = [(old, new) for old, new in zip_longest(before, after) if old != new]
    return [f"{name}: {str(old)[:200]} -> {str(new)[:200]}" for old, new in pairs[:1]]


def compare_parts(kind: str, content: bytes, rendered: bytes) -> Counter[str]:
    """Return the number of parts of a file that are "bytes", "structure", or "different" after an identity translation.

    The parts are the members of an archive, or the whole file.
    """
    counts: Counter[str] = Counter()
    old, new = _parts(content), _parts(rendered)
    for name in old.keys() | new.keys():
        same = name in old and name in new
        if same and old[name] == new[name]:
            counts["bytes"] += 1
        elif same and not name and not differences(kind, name, content, rendered):
            counts["structure"] += 1
        else:
            counts["different"] += 1
    return counts


def _parts(content: bytes) -> dict[str, bytes]:
    if not content.startswith(b"PK"):
        return {"": content}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def round_trip(kind: str, files: Mapping[str, bytes], render: Render, row: Row, out: Path | None = None) -> None:
    """Translate files, and add the results to a row."""
    translations: dict[str, bytes] = {}
    for name, content in files.items():
        row.parts += compare_parts(kind, content, identity(name, content)) if kind != "pdf" else Counter()
        translated = render(name, content)
        row.segments += len(open_document(name, content, OPTIONS).segments)
        row.differences += differences(kind, name, content, translated)
        translations[translated_name(name)] = translated
        if out is not None:
            (out / "source").mkdir(parents=True, exist_ok=True)
            (out / "translation").mkdir(exist_ok=True)
            (out / "source" / name).write_bytes(content)
            (out / "translation" / translated_name(name)).write_bytes(translated)
    row.files += len(files)
    if SOFFICE and kind in IN_LIBREOFFICE:
        row.opened += sum(content.startswith(b"%PDF") for content in convert(translations, "pdf").values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--out", type=Path, help="folder for the files and their translations")
    options = parser.parse_args(arguments)
    translator = FileTranslator(Translator.load(STARTER), "en", "de")
    problems: list[str] = []

    def translate(name: str, content: bytes) -> bytes:
        result = translator.translate(name, content)
        problems.extend(f"{name}: {problem}" for problem in result.problems)
        return result.content

    widths = (10, 6, 15, 6, 10, 10, 9, 13, 13)

    def show(*columns: object) -> None:
        print(*(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True)), flush=True)

    show(
        "format",
        "files",
        "by LibreOffice",
        "bytes",
        "structure",
        "different",
        "segments",
        "same outline",
        "opened again",
    )
    for kind in options.formats or FORMATS:
        row = Row()
        round_trip(kind, realistic_files(kind), translate, row, options.out)
        if SOFFICE:
            files = libreoffice_files(kind)
            row.libreoffice = len(files)
            if files:
                round_trip(kind, files, translate, row, options.out)
        parts = [row.parts[equality] for equality in ("bytes", "structure", "different")]
        opened = row.opened if SOFFICE and kind in IN_LIBREOFFICE else "-"
        show(kind, row.files, row.libreoffice, *parts, row.segments, row.files - len(row.differences), opened)
        problems += row.differences
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
