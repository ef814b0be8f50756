"""E-books and OpenDocument files: zip archives whose members in HTML and XML are translated."""

import zipfile
from collections.abc import Mapping
from io import BytesIO

import pytest

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from tests.text.documents import archive, package, texts

OPEN_DOCUMENT, BOOK = package("open_document"), package("book")
CONTENT, CHAPTER = OPEN_DOCUMENT["content.xml"], BOOK["OEBPS/chapter.xhtml"]
TEXTS = "The title|A note|A red house|One|One|Two|Page|The dog of a name runs|Left|right side|The header|Axis"
PICTURE = '<svg xmlns="svg"><title>A map</title><g><path/><text>a river</text></g></svg>'
CUT = CONTENT[:800] + "</text:p></office:text></office:body></office:document-content>"
CHARTS = {"content.xml": CONTENT[:700], "Chart A/content.xml": OPEN_DOCUMENT["Object 1/content.xml"]}


@pytest.mark.parametrize(
    ("name", "members", "texts_of"),
    [
        ("a.odt", OPEN_DOCUMENT, TEXTS),
        ("a.odt", package("marks"), "A picture|of a dog|Save it|A hint|The dog sleeps. Name: a red cat runs"),
        ("a.epub", BOOK, "The book|One|A big dog.|It sleeps.|The book|One"),
        ("a.epub", {"c 1.xml": CHAPTER}, "The book|One|A big dog.|It sleeps."),
        ("a.epub", {"2.dat": "<!DOCTYPE HTML>\n<title>A dog</title><p>&nbsp;It ran<br>home"}, "A dog|It ran home"),
        ("a.epub", {"a.svg": PICTURE}, "A map|a river"),
        ("a.epub", {"N.XML": BOOK["OEBPS/toc.ncx"]}, "The book|One"),
        ("a.odt", {"Content.xml": CUT}, "The title|A red house|A note"),
        ("a.odp", CHARTS, "Axis|The title|A red|A note"),
    ],
)
def test_texts_of_an_archive(name: str, members: Mapping[str, str], texts_of: str) -> None:
    result, expected = texts(name, archive(members)), texts_of.split("|")
    assert [text for text in expected if not any(text in other for other in result)] == []
    assert len(result) == len(expected)
    kept = ("hours", "Why", "Ann", "Kept", "kept", "color")
    assert [text for text in result if any(word in text for word in kept)] == []


def test_a_line_break_before_a_capital_divides_a_paragraph_of_a_known_language() -> None:
    breaks = "A dog<text:line-break/>The cat<text:line-break/>sleeps</text:p>"
    content = archive(
        {
            "content.xml": CONTENT.partition("<office:automatic-styles>")[0]
            + f"<text:p>{breaks}</office:document-content>"
        }
    )
    options = DocumentOptions(source_language="en", target_language="de")
    assert [segment.text for segment in open_document("a.odt", content, options).segments] == [
        "A dog",
        "The cat sleeps",
    ]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_a_damaged_archive_is_refused_whatever_compresses_it(method: int) -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archived:
        archived.writestr("content.xml", CONTENT)
    content, refused = bytearray(file.getvalue()), 0
    for place in range(60, 90):
        damaged = content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]
        try:
            open_document("a.odt", bytes(damaged), DocumentOptions())
        except DocumentError:
            refused += 1
    assert refused
