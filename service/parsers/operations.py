"""Operations of a parser process. They keep no state: writing a document parses it again.

Arguments and results are pickled, so they are plain data: segments of a document, and their translations.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import MarkupOptions, Segment, TranslatedSegment, parse_html, parse_xml


def read_document(name: str, content: bytes, options: DocumentOptions) -> list[Segment]:
    """Return the segments of a document. Raises DocumentError."""
    return list(open_document(name, content, options).segments)


def write_document(
    name: str, content: bytes, options: DocumentOptions, translations: Sequence[TranslatedSegment]
) -> bytes:
    """Return a document with a translation for each of its segments. Raises DocumentError."""
    return open_document(name, content, options).render(translations)


def read_markup(text: str, xml: bool, options: MarkupOptions) -> list[Segment]:
    """Return the segments of marked-up text."""
    return list((parse_xml if xml else parse_html)(text, options).segments)


def write_markup(
    text: str, xml: bool, options: MarkupOptions, versions: Sequence[Sequence[TranslatedSegment]]
) -> list[str]:
    """Return marked-up text once per version: the translations of its segments, best first, then alternatives."""
    markup = (parse_xml if xml else parse_html)(text, options)
    return [markup.render(translations) for translations in versions]


OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation for operation in (read_document, write_document, read_markup, write_markup)
}
