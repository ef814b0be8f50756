"""Translation of files: extraction of their translatable segments, and rendering with the translations."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import PurePath

from mt.errors import DocumentError, DocumentLimitExceeded, did_you_mean
from mt.text.documents import resources
from mt.text.documents.archive import ArchiveDocument
from mt.text.documents.base import Document, DocumentOptions
from mt.text.documents.checks import CheckedDocument
from mt.text.documents.gettext import open_po
from mt.text.documents.markdown import open_markdown
from mt.text.documents.markup import open_markup
from mt.text.documents.office import OfficeDocument
from mt.text.documents.packages import root_name
from mt.text.documents.plain import open_json, open_subtitles, open_text
from mt.text.documents.tables import open_table
from mt.text.documents.tmx import open_tmx
from mt.text.documents.xliff import open_xliff
from mt.text.documents.yaml import open_yaml

__all__ = ["PACKED_SUFFIXES", "SUFFIXES", "Document", "DocumentOptions", "open_document", "translated_name"]

Opener = Callable[[str, bytes, DocumentOptions], Document]


def _open_xml(name: str, content: bytes, options: DocumentOptions) -> Document:
    is_android = root_name(BytesIO(content)).rpartition("}")[2] == "resources"
    return (resources.open_android if is_android else open_markup)(name, content, options)


def _at_first_use(module: str, opener: str) -> Opener:
    """Return a function that imports the function `opener` from `module` and calls it.

    The module is loaded at the first call only, because few processes need the library that it imports.
    """

    def open_imported(name: str, content: bytes, options: DocumentOptions) -> Document:
        function: Opener = getattr(import_module(module), opener)
        return function(name, content, options)

    return open_imported


_OPENERS: dict[str, Opener] = {
    suffix: opener
    for suffixes, opener in (
        (".arb .json", open_json),
        (".csv .tsv", open_table),
        (".docx .pptx .xlsx", OfficeDocument),
        (".epub .odp .ods .odt", ArchiveDocument),
        (".ftl", _at_first_use("mt.text.documents.fluent", "open_fluent")),
        (".htm .html .xhtml", open_markup),
        (".markdown .md .mdx", open_markdown),
        (".mqxliff .mxliff .sdlxliff .xlf .xliff", open_xliff),
        (".pdf", _at_first_use("mt.text.documents.pdf", "PdfDocument")),
        (".po .pot", open_po),
        (".properties", resources.open_properties),
        (".resx", resources.open_resx),
        (".srt .vtt", open_subtitles),
        (".strings", resources.open_strings),
        (".stringsdict", resources.open_stringsdict),
        (".tmx", open_tmx),
        (".txt", open_text),
        (".xml", _open_xml),
        (".yaml .yml", open_yaml),
    )
    for suffix in suffixes.split()
}
SUFFIXES = tuple(sorted(_OPENERS))

PACKED_SUFFIXES = (".docx", ".epub", ".odp", ".ods", ".odt", ".pdf", ".pptx", ".xlsx")
"""File name suffixes of the binary formats."""


def translated_name(name: str, language: str = "") -> str:
    """Return the file name of the translation of the file `name` into `language`.

    `a.txt` becomes `a_de.txt` or, without a language, stays. `a.pdf` becomes `a_de.pdf.docx`, so that it does not take
    the name of the translation of `a.docx`.
    """
    suffix = PurePath(name).suffix
    stem = name[: len(name) - len(suffix)] + (f"_{language}" if language else "")
    return stem + suffix + (".docx" if suffix.lower() == ".pdf" else "")


def open_document(name: str, content: bytes, options: DocumentOptions | None = None) -> Document:
    """Parse the content of a file. The suffix of `name` selects the format.

    If every translation equals its segment, rendering returns the bytes of `content`, with these exceptions: .xliff and
    .tmx change in their targets and in the added variants, .po has the same content but other bytes, and .pdf becomes
    .docx. In formats that are archives, such as .docx, each file in the archive has the same bytes.

    The document is parsed again after rendering. Rendering raises DocumentError if the structure has changed.

    Raises: DocumentError if the suffix is not in SUFFIXES, the content is not in the format of the suffix or has text,
    but no text to translate, or a limit is exceeded.
    """
    options = options or DocumentOptions()
    suffix = PurePath(name.replace("\\", "/")).suffix.lower()
    if suffix not in _OPENERS:
        accepted = ", ".join(SUFFIXES)
        hint = did_you_mean(suffix, SUFFIXES)
        raise DocumentError(f"{name!r} has the file extension {suffix!r}{hint}; accepted: {accepted}")
    if len(content) > options.max_bytes:
        raise DocumentLimitExceeded(f"{name} has {len(content)} bytes; accepted: at most {options.max_bytes}")
    written = translated_name(name)
    open_source, open_translation = _OPENERS[suffix], _OPENERS[PurePath(written).suffix.lower()]
    return CheckedDocument(name, content, options, partial(open_source, name), partial(open_translation, written))
