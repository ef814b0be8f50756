"""Fluent files: the texts that are found, and translations that fluent.syntax reads again."""

import re
from pathlib import Path

import pytest
from fluent.syntax import FluentParser, ast
from fluent.syntax.visitor import Transformer

from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment
from tests.text.documents import translated

FILES = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "realistic" / "files").glob("*.ftl")}


class WithoutText(Transformer):
    """Removes the texts of patterns, and the string literals that escape them."""

    def visit_Pattern(self, node: ast.Pattern) -> ast.Pattern:
        self.generic_visit(node)
        placeables = [element for element in node.elements if isinstance(element, ast.Placeable)]
        node.elements = [element for element in placeables if not isinstance(element.expression, ast.StringLiteral)]
        return node


@pytest.mark.parametrize("translate", ["{}", "[{}", "*{}", "{}.", ".{}"])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_translated_file_has_the_same_structure(content: str, translate: str) -> None:
    """Another parser finds the same messages, attributes, selectors, variants and placeables."""

    def capitals(text: str) -> str:
        parts = re.split(r"(\{[^}]*\})", text)
        return translate.format("".join(part if part.startswith("{") else part.upper() for part in parts))

    before, after = (
        WithoutText().visit(FluentParser().parse(text)) for text in (content, translated("a.ftl", content, capitals))
    )
    assert before.equals(after)


def test_placeables_are_kept_within_the_text() -> None:
    (segment,) = open_document("a.ftl", b"a = Hello, { $name }!\n").segments
    assert [segment.text[slice(*kept)] for kept in segment.kept] == ["{ $name }"]


def test_translations_are_escaped() -> None:
    document = open_document("a.ftl", b"a =\n    One\n\n    Two\n")
    written = document.render([TranslatedSegment("* {x}\n y"), TranslatedSegment("[z]")]).decode()
    assert written == 'a =\n    { "*" } { "{" }x{ "}" }  y\n\n    { "[" }z]\n'
