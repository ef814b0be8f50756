"""Files: what a person reads taken out as segments, and put back translated; the structure stays."""

from collections.abc import Callable
from pathlib import PurePath

from mt.errors import DocumentError, did_you_mean
from mt.text.documents.base import Document, DocumentOptions
from mt.text.documents.gettext import PoDocument
from mt.text.documents.markdown import open_markdown
from mt.text.documents.markup import open_markup
from mt.text.documents.plain import open_json, open_subtitles, open_text
from mt.text.documents.word import WordDocument
from mt.text.documents.xliff import open_xliff

__all__ = ["SUFFIXES", "Document", "DocumentOptions", "open_document"]

Opener = Callable[[str, bytes, DocumentOptions], Document]

_OPENERS: dict[str, Opener] = {
    ".docx": WordDocument,
    ".htm": open_markup,
    ".html": open_markup,
    ".json": lambda name, content, _: open_json(name, content),
    ".markdown": open_markdown,
    ".md": open_markdown,
    ".po": PoDocument,
    ".pot": PoDocument,
    ".srt": lambda name, content, _: open_subtitles(name, content),
    ".txt": lambda name, content, _: open_text(name, content),
    ".vtt": lambda name, content, _: open_subtitles(name, content),
    ".xhtml": open_markup,
    ".xlf": open_xliff,
    ".xliff": open_xliff,
    ".xml": open_markup,
}
SUFFIXES = tuple(_OPENERS)


def open_document(name: str, content: bytes, options: DocumentOptions | None = None) -> Document:
    """A file of the kind that its name says, taken apart.

    With translations that are the segments' own texts, .txt, .html, .xml, .md, .srt, .vtt and .json come back byte for
    byte, .xliff does outside of its targets, and .docx and .po by their contents. Raises DocumentError for a suffix
    that is not in SUFFIXES, for content that is not of this kind, and for what exceeds the limits.
    """
    options = options or DocumentOptions()
    suffix = PurePath(name.replace("\\", "/")).suffix.lower()
    if suffix not in _OPENERS:
        accepted = ", ".join(SUFFIXES)
        raise DocumentError(f"{name!r} has the suffix {suffix!r}{did_you_mean(suffix, SUFFIXES)}; accepted: {accepted}")
    if len(content) > options.max_bytes:
        raise DocumentError(f"{name} has {len(content)} bytes; accepted: at most {options.max_bytes}")
    document = _OPENERS[suffix](name, content, options)
    if len(document.segments) > options.max_segments:
        raise DocumentError(f"{name} has {len(document.segments)} texts; accepted: at most {options.max_segments}")
    return document
