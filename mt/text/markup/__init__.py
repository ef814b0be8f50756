"""HTML and XML: what a person reads taken out as segments, and put back translated; all else comes back as it was."""

from mt.text.markup.document import Markup, MarkupOptions, parse_html, parse_xml
from mt.text.markup.marks import Mark, Piece, Segment, Translated, link_words
from mt.text.markup.placement import arrange
from mt.text.markup.units import Link, Range

__all__ = [
    "Link",
    "Mark",
    "Markup",
    "MarkupOptions",
    "Piece",
    "Range",
    "Segment",
    "Translated",
    "arrange",
    "link_words",
    "parse_html",
    "parse_xml",
]
