"""The realistic files of all formats: `realistic_files(".docx")`, and those that LibreOffice writes."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tests.text import realistic_pdfs
from tests.text.realistic import markup_files, open_document_files, program_files, text_files
from tests.text.realistic.office_files import sheet_files, slide_files, word_files
from tests.text.realistic.prose import Prose

SEED = 28
SOFFICE = shutil.which("soffice")


def _pdf_files(prose: Prose) -> Iterable[bytes]:
    return (file(Random(SEED))[0] for file in realistic_pdfs.FILES)


_WRITERS: dict[str, Callable[[Prose], Iterable[bytes]]] = {
    "arb": program_files.arb_files,
    "csv": partial(text_files.table_files, separator=","),
    "docx": word_files,
    "epub": open_document_files.book_files,
    "ftl": program_files.fluent_files,
    "html": markup_files.html_files,
    "json": program_files.json_files,
    "md": text_files.markdown_files,
    "odp": open_document_files.open_slide_files,
    "ods": open_document_files.open_sheet_files,
    "odt": open_document_files.open_text_files,
    "pdf": _pdf_files,
    "po": program_files.gettext_files,
    "pptx": slide_files,
    "properties": program_files.properties_files,
    "resx": markup_files.resx_files,
    "srt": text_files.subrip_files,
    "strings": program_files.strings_files,
    "tmx": markup_files.tmx_files,
    "tsv": partial(text_files.table_files, separator="\t"),
    "txt": text_files.text_files,
    "vtt": text_files.webvtt_files,
    "xhtml": partial(markup_files.html_files, xhtml=True),
    "xliff": markup_files.xliff_files,
    "xlsx": sheet_files,
    "xml": markup_files.xml_files,
    "android": markup_files.android_files,
    "yaml": program_files.yaml_files,
}
FORMATS = tuple(sorted(_WRITERS))
"""Names of the formats: their suffixes, and "android" for string resources, which are .xml."""

_CONVERSIONS: dict[str, tuple[str, Sequence[int]]] = {
    "csv": ("xlsx", [0, 1]),
    "docx": ("odt", [0, 1, 3, 4]),
    "epub": ("odt", [0, 1, 2, 4]),
    "html": ("docx", [0, 1, 4]),
    "odp": ("pptx", [0, 1, 2, 3]),
    "ods": ("xlsx", [0, 1, 3, 4]),
    "odt": ("docx", [0, 1, 2, 4]),
    "pdf": ("docx", [0, 2]),
    "pptx": ("odp", [0, 1, 2, 4]),
    "xlsx": ("ods", [0, 2, 3, 4]),
}
"""For each format that LibreOffice writes: the format of its source files, and their numbers."""

_FILTERS = {"csv": "csv:Text - txt - csv (StarCalc):44,34,76"}  # in UTF-8


def realistic_files(kind: str) -> dict[str, bytes]:
    """Return the files of a format by name: ten, or six of the formats of Office and OpenDocument."""
    suffix = "xml" if kind == "android" else kind
    return {
        f"{kind}{number}.{suffix}": content for number, content in enumerate(_WRITERS[kind](Prose(f"{SEED}/{kind}")))
    }


def libreoffice_files(kind: str) -> dict[str, bytes]:
    """Return the files of a format that LibreOffice converts from files of another format, by name."""
    if kind not in _CONVERSIONS:
        return {}
    source, numbers = _CONVERSIONS[kind]
    files = list(realistic_files(source).values())
    converted = convert({f"{kind}-libreoffice{number}.{source}": files[number] for number in numbers}, kind)
    return {f"{Path(name).stem}.{kind}": content for name, content in converted.items()}


def convert(files: Mapping[str, bytes], suffix: str) -> dict[str, bytes]:
    """Return the files that LibreOffice converts to another format, by the names of their sources.

    Raises: FileNotFoundError if LibreOffice writes no file.
    """
    assert SOFFICE is not None
    with tempfile.TemporaryDirectory() as folder:
        inside, out = Path(folder, "in"), Path(folder, "out")
        inside.mkdir()
        for name, content in files.items():
            (inside / name).write_bytes(content)
        profile = f"-env:UserInstallation=file://{folder}/profile"
        command: list[str | Path] = [
            SOFFICE,
            profile,
            "--headless",
            "--convert-to",
            _FILTERS.get(suffix, suffix),
            "--outdir",
            out,
        ]
        subprocess.run([*command, *(inside / name for name in files)], check=True, capture_output=True, timeout=600)
        return {name: (out / f"{Path(name).stem}.{suffix}").read_bytes() for name in files}
