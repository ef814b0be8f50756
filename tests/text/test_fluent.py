"""Fluent files: what is kept within a text, and what is escaped in a translation."""

from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment


def test_placeables_are_kept_within_the_text() -> None:
    (segment,) = open_document("a.ftl", b"a = Hello, { $name }!\n").segments
    assert [segment.text[slice(*kept)] for kept in segment.kept] == ["{ $name }"]


def test_translations_are_escaped() -> None:
    document = open_document("a.ftl", b"a =\n    One\n\n    Two\n\n    Three\n")
    written = document.render([TranslatedSegment("* {x}\n y"), TranslatedSegment("[z]"), TranslatedSegment(".w")])
    assert written.decode() == 'a =\n    { "*" } { "{" }x{ "}" }  y\n\n    { "[" }z]\n\n    { "." }w\n'
