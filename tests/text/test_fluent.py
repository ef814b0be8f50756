"""Fluent files: the texts that are found, and translations that fluent.syntax reads again."""

import re
from pathlib import Path

import pytest
from fluent.syntax import FluentParser, ast

from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment

FILES = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "realistic" / "files").glob("*.ftl")}


def changed(content: str, translate: str = "{}") -> str:
    """The file with translations in which each word is aligned with the word at the same place."""
    document = open_document("a.ftl", content.encode())
    translations = []
    for segment in document.segments:
        words = [match.span() for match in re.finditer(r"\S+", segment.text)]
        text, end = "", 0
        for begin, after in segment.kept:
            text, end = text + segment.text[end:begin].upper() + segment.text[begin:after], after
        text += segment.text[end:].upper()
        moved = len(translate.partition("{}")[0])
        links = tuple((word, (word[0] + moved, word[1] + moved)) for word in words)
        translations.append(TranslatedSegment(translate.format(text), links))
    return document.render(translations).decode()


@pytest.mark.parametrize("translate", ["{}", "[{}", "*{}", "{}.", ".{}"])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_translated_file_has_the_same_structure(content: str, translate: str) -> None:
    """Another parser finds the same messages, attributes, selectors, variants and placeables."""
    assert outline(changed(content, translate)) == outline(content)


def outline(content: str) -> list[str]:
    result = []
    for entry in FluentParser().parse(content).body:
        if isinstance(entry, (ast.Message, ast.Term)):
            result += [type(entry).__name__, entry.id.name, *(attribute.id.name for attribute in entry.attributes)]
            result += [placeable for pattern in patterns(entry) for placeable in placeables(pattern, content)]
        else:
            result.append(type(entry).__name__)
    return result


def patterns(entry: ast.Message | ast.Term) -> list[ast.Pattern]:
    return [*([entry.value] if entry.value else []), *(attribute.value for attribute in entry.attributes)]


def placeables(pattern: ast.Pattern, content: str) -> list[str]:
    result = []
    for element in pattern.elements:
        if isinstance(element, ast.Placeable) and isinstance(element.expression, ast.SelectExpression):
            for variant in element.expression.variants:
                result += [f"variant {variant.default}", *placeables(variant.value, content)]
        elif isinstance(element, ast.Placeable) and not isinstance(element.expression, ast.StringLiteral):
            assert element.span
            result.append(content[element.span.start : element.span.end])
    return result


def test_placeables_are_kept_within_the_text() -> None:
    (segment,) = open_document("a.ftl", b"a = Hello, { $name }!\n").segments
    assert [segment.text[slice(*kept)] for kept in segment.kept] == ["{ $name }"]


def test_translations_are_escaped() -> None:
    document = open_document("a.ftl", b"a =\n    One\n\n    Two\n")
    written = document.render([TranslatedSegment("* {x}\n y"), TranslatedSegment("[z]")]).decode()
    assert written == 'a =\n    { "*" } { "{" }x{ "}" }  y\n\n    { "[" }z]\n'
