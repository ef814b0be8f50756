"""Fluent files: the texts that are found, and translations that fluent.syntax reads again."""

import re

import pytest
from fluent.syntax import FluentParser, ast

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment

FILES = {
    "menu": """# This file is free to use.
file-menu-open = Open a file…
    .accesskey = O
file-menu-close =
    .label = Close the window
    .tooltiptext = Close the window without saving
""",
    "brands": """-brand-short-name = Acme
    .gender = masculine
-sync-name = { -brand-short-name } Sync
welcome = Welcome to { -brand-short-name }, the friendly browser.
about-sync = { -sync-name(case: "lower") } keeps your data safe.
""",
    "plurals": """emails = { $unread ->
    [0] You have no new emails.
    [one] You have one new email.
   *[other] You have { $unread } new emails.
}
downloads = Downloading { NUMBER($count) } { $count ->
    [one] file
   *[other] files
} to { $folder }
""",
    "genders": """photos = { $name } { $count ->
    [one] added one photo
   *[other] added { $count } photos
} to { $gender ->
    [male] his stream
    [female] her stream
   *[other] their stream
}.
""",
    "paragraphs": """privacy =
    We do not share your data
    with other companies.

    You can delete your account at any time.
note = The first line
    goes on here.
""",
    "markup": """link-text = Read <a data-l10n-name="terms">the terms of use</a> before you go on.
strong = This <strong>cannot</strong> be undone.
""",
    "escapes": """brace = Write { "{" } to begin and { "}" } to end.
blank = { "" }    indented text
quote = The sign { "\\u00A0" } is a space.
""",
    "dates": """last-checked = Last checked: { DATETIME($when, month: "long", day: "numeric") }
price = It costs { NUMBER($price, currency: "EUR", style: "currency") }.
""",
    "groups": """### Texts of the settings

## General

language-label = Language
theme-label = Theme

## Privacy

cookies-label = Accept cookies from this site?
""",
    "errors": """good = The first message
bad = { $open
    and no end
also-good = The last message
= no name
""",
}


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


def texts(content: str) -> list[str]:
    return [segment.text for segment in open_document("a.ftl", content.encode()).segments]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_file_without_changes_has_the_same_bytes(content: str, line_end: str) -> None:
    data = content.replace("\n", line_end).encode()
    document = open_document("a.ftl", data)
    assert document.segments
    assert document.render([TranslatedSegment(segment.text) for segment in document.segments]) == data


@pytest.mark.parametrize("translate", ["{}", "[{}", "*{}", "{}.", ".{}"])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_translated_file_has_the_same_structure(content: str, translate: str) -> None:
    """Another parser finds the same messages, attributes, selectors, variants and placeables."""
    assert outline(changed(content, translate)) == outline(content)


def outline(content: str) -> list[str]:
    found = []
    for entry in FluentParser().parse(content).body:
        if isinstance(entry, (ast.Message, ast.Term)):
            found += [type(entry).__name__, entry.id.name, *(attribute.id.name for attribute in entry.attributes)]
            found += [placeable for pattern in patterns(entry) for placeable in placeables(pattern, content)]
        else:
            found.append(type(entry).__name__)
    return found


def patterns(entry: ast.Message | ast.Term) -> list[ast.Pattern]:
    return [*([entry.value] if entry.value else []), *(attribute.value for attribute in entry.attributes)]


def placeables(pattern: ast.Pattern, content: str) -> list[str]:
    found = []
    for element in pattern.elements:
        if isinstance(element, ast.Placeable) and isinstance(element.expression, ast.SelectExpression):
            for variant in element.expression.variants:
                found += [f"variant {variant.default}", *placeables(variant.value, content)]
        elif isinstance(element, ast.Placeable) and not isinstance(element.expression, ast.StringLiteral):
            assert element.span
            found.append(content[element.span.start : element.span.end])
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("menu", ["Open a file…", "Close the window", "Close the window without saving"]),
        (
            "brands",
            [
                *("Acme", "{ -brand-short-name } Sync", "Welcome to { -brand-short-name }, the friendly browser."),
                '{ -sync-name(case: "lower") } keeps your data safe.',
            ],
        ),
        (
            "plurals",
            [
                *("You have no new emails.", "You have one new email.", "You have { $unread } new emails."),
                *("Downloading { NUMBER($count) }", "file", "files", "to { $folder }"),
            ],
        ),
        (
            "paragraphs",
            [
                *("We do not share your data with other companies.", "You can delete your account at any time."),
                "The first line goes on here.",
            ],
        ),
        ("escapes", ["Write  to begin and  to end.", "indented text", 'The sign { "\\u00A0" } is a space.']),
        ("errors", ["The first message", "The last message"]),
    ],
)
def test_texts(name: str, expected: list[str]) -> None:
    assert [" ".join(text.split()) for text in texts(FILES[name])] == [" ".join(text.split()) for text in expected]


def test_placeables_are_kept_within_the_text() -> None:
    (segment,) = open_document("a.ftl", b"a = Hello, { $name }!\n").segments
    assert [segment.text[slice(*kept)] for kept in segment.kept] == ["{ $name }"]


def test_translations_are_escaped() -> None:
    document = open_document("a.ftl", b"a =\n    One\n\n    Two\n")
    written = document.render([TranslatedSegment("* {x}\n y"), TranslatedSegment("[z]")]).decode()
    assert written == 'a =\n    { "*" } { "{" }x{ "}" }  y\n\n    { "[" }z]\n'


@pytest.mark.parametrize("content", [b"no fluent here", b"{}"])
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(DocumentError, match=r"a\.ftl is not Fluent: it contains no message; accepted: lines such as"):
        open_document("a.ftl", content)


def test_limits() -> None:
    with pytest.raises(DocumentLimitExceeded, match="nested too deeply"):
        open_document("a.ftl", b"a = " + b"{" * 100_000)
    with pytest.raises(DocumentLimitExceeded, match=r"too many lines.*; accepted: at most 1,000,000"):
        open_document("a.ftl", b"\n" * 1_000_001)
    with pytest.raises(DocumentLimitExceeded, match=r"too many texts.*; accepted: at most 2"):
        open_document("a.ftl", b"a = b\n" * 3, DocumentOptions(max_segments=2))
