"""HTML and XML: extraction of translatable segments, and rendering of their translations."""

from mt.text.markup.marks import Segment, TranslatedSegment
from mt.text.markup.parsing import Markup, MarkupOptions, parse_html, parse_xml, xml_problem

__all__ = ["Markup", "MarkupOptions", "Segment", "TranslatedSegment", "parse_html", "parse_xml", "xml_problem"]
