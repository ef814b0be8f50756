"""HTML and XML: extraction of translatable segments, and rendering of their translations."""

from mt.text.alignment import Link, Range
from mt.text.markup.marks import Mark, MarkedPiece, Segment, TranslatedSegment
from mt.text.markup.parsing import Markup, MarkupOptions, parse_html, parse_xml
from mt.text.markup.placement import place_marks
from mt.text.markup.well_formed import xml_problem

__all__ = [
    "Link",
    "Mark",
    "MarkedPiece",
    "Markup",
    "MarkupOptions",
    "Range",
    "Segment",
    "TranslatedSegment",
    "parse_html",
    "parse_xml",
    "place_marks",
    "xml_problem",
]
