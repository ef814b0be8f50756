"""HTML and XML files."""

import re

from mt.text.documents.base import DocumentOptions, TextDocument, decode_text
from mt.text.markup import parse_html, parse_xml

_DECLARED = re.compile(
    rb"""<\?xml[^>]*?\sencoding=["']([\w.:-]+)|<meta[^>]*?\scharset=["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_META = re.compile(rb"""<meta[^>]*?\scontent=["'][^"'>]*?charset=([\w.:-]+)""", re.IGNORECASE)
_DECLARED_WITHIN = 1024  # bytes, as the HTML standard has it


def declared_encoding(content: bytes) -> str | None:
    """The encoding that HTML or XML says it is in."""
    head = content[:_DECLARED_WITHIN]
    found = _DECLARED.search(head) or _META.search(head)
    return next(name for name in found.groups() if name).decode("ascii") if found else None


def open_markup(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """HTML, or XML by its suffix, in the encoding that it declares; what that cannot write becomes a reference."""
    text, encoding = decode_text(name, content, declared_encoding(content))
    document = TextDocument(encoding, "xmlcharrefreplace")
    document.embed((parse_xml if name.lower().endswith(".xml") else parse_html)(text, options.markup))
    return document
