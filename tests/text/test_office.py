"""Presentations and workbooks: the texts that are found, and what a translation changes."""

import io
import zipfile
from collections.abc import Mapping

import pytest

from mt.errors import DocumentError
from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment
from tests.text.test_archives import archive, capitals

DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
CHART = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SLIDE = f"""<?xml version="1.0"?><p:sld xmlns:p="p" xmlns:r="r" {DRAWING}><a:p><a:pPr lvl="1"/>
<a:r><a:rPr lang="en-US" dirty="0"/><a:t>A </a:t></a:r><a:r><a:rPr lang="en-US" b="1"/><a:t>red</a:t></a:r>
<a:r><a:rPr lang="de-DE"/><a:t> house</a:t></a:r><a:endParaRPr lang="en-US"/></a:p>
<a:tbl><a:tc><a:p><a:r><a:t>Cell one</a:t></a:r><a:br/><a:r><a:t>below</a:t></a:r></a:p></a:tc></a:tbl>
<a:p><a:r><a:t>Page </a:t></a:r><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p></p:sld>"""
PRESENTATION = {
    "ppt/slides/slide10.xml": f"<p:sld xmlns:p='p' {DRAWING}><a:p><a:r><a:t>Last</a:t></a:r></a:p></p:sld>",
    "ppt/slides/slide2.xml": SLIDE,
    "ppt/notesSlides/notesSlide1.xml": f"<n {DRAWING}><a:p><a:r><a:t>A note</a:t></a:r></a:p></n>",
    "ppt/charts/chart1.xml": f"<c:chart {CHART} {DRAWING}><a:p><a:r><a:t>Sales</a:t></a:r></a:p><c:strCache><c:pt>"
    "<c:v>East</c:v></c:pt></c:strCache><c:numCache><c:v>three</c:v></c:numCache></c:chart>",
    "ppt/slideMasters/slideMaster1.xml": f"<m {DRAWING}><a:p><a:r><a:t>Kept</a:t></a:r></a:p></m>",
    "ppt/media/image1.png": "\x89PNG",
}
TEXTS = f"""<?xml version="1.0"?><sst {SHEET}><si><t>A dog</t></si><si><t>Price</t></si><si><t>12.5</t></si>
<si><t>First line\nsecond line</t></si><si><r><t>This is </t></r><r><rPr><b/></rPr><t>very</t></r>
<r><t xml:space="preserve"> good</t></r><rPh><t>kana</t></rPh></si></sst>"""
WORKBOOK = {
    "xl/sharedStrings.xml": TEXTS,
    "xl/worksheets/sheet1.xml": f'<worksheet {SHEET}><c t="s"><v>0</v></c><c t="str"><f>IF(A1="kept",1)</f><v>kept</v>'
    '</c><c t="inlineStr"><is><t>Inline</t></is></c></worksheet>',
    "xl/tables/table1.xml": f'<table {SHEET}><tableColumn name="Price"/></table>',
    "xl/workbook.xml": '<workbook><sheet name="Kept"/></workbook>',
    "xl/comments1.xml": f"<comments {SHEET}><t>Kept</t></comments>",
}


@pytest.mark.parametrize(
    ("name", "members", "texts"),
    [
        ("a.pptx", PRESENTATION, ["Sales", "East", "A note", "A red house", "Cell one below", "Page 7", "Last"]),
        ("a.xlsx", WORKBOOK, ["A dog", "First line", "second line", "This is very good", "Inline"]),
    ],
)
def test_texts(name: str, members: Mapping[str, str], texts: list[str]) -> None:
    document = open_document(name, archive(members))
    assert sorted(segment.text for segment in document.segments) == sorted(texts)


def test_a_translated_presentation() -> None:
    translated = capitals("a.pptx", PRESENTATION)
    slide = translated.read("ppt/slides/slide2.xml").decode()
    assert '<a:pPr lvl="1"/>' in slide and '<a:endParaRPr lang="en-US"/></a:p>' in slide
    assert '<a:r><a:rPr lang="en-US" b="1"/><a:t>RED</a:t></a:r>' in slide
    assert "<a:t>A </a:t>" in slide and "<a:t> HOUSE</a:t>" in slide and "xml:space" not in slide
    assert "<a:t>CELL ONE</a:t></a:r><a:br/>" in slide
    assert '<a:fld type="slidenum"><a:t>7</a:t></a:fld>' in slide
    chart = translated.read("ppt/charts/chart1.xml").decode()
    assert "<c:v>EAST</c:v>" in chart and "<c:v>three</c:v>" in chart and "<a:t>SALES</a:t>" in chart
    for kept in ("ppt/slideMasters/slideMaster1.xml", "ppt/media/image1.png"):
        assert translated.read(kept).decode() == PRESENTATION[kept]


def test_a_translated_workbook() -> None:
    translated = capitals("a.xlsx", WORKBOOK)
    texts = translated.read("xl/sharedStrings.xml").decode()
    assert "<si><t>A DOG</t></si><si><t>Price</t></si><si><t>12.5</t></si>" in texts  # formulas refer to table columns
    assert "<si><t>FIRST LINE\nSECOND LINE</t></si>" in texts
    assert '<r><rPr><b/></rPr><t xml:space="preserve">VERY</t></r>' in texts and "kana" not in texts
    sheet = translated.read("xl/worksheets/sheet1.xml").decode()
    assert '<f>IF(A1="kept",1)</f><v>kept</v>' in sheet and "<is><t>INLINE</t></is>" in sheet
    for kept in ("xl/tables/table1.xml", "xl/workbook.xml", "xl/comments1.xml"):
        assert translated.read(kept).decode() == WORKBOOK[kept]


@pytest.mark.parametrize(("name", "members"), [("a.pptx", PRESENTATION), ("a.xlsx", WORKBOOK)])
def test_a_file_without_changes_is_the_same(name: str, members: Mapping[str, str]) -> None:
    content = archive(members)
    document = open_document(name, content)
    rendered = zipfile.ZipFile(
        io.BytesIO(document.render([TranslatedSegment(segment.text) for segment in document.segments]))
    )
    assert {member: rendered.read(member).decode() for member in members} == members


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.pptx", b"PK rubbish", "a.pptx is not a .pptx file: File is not a zip file"),
        ("a.xlsx", archive(PRESENTATION), "a.xlsx is not a .xlsx file: the archive contains no file with text"),
        ("a.xlsx", archive({"xl/sharedStrings.xml": "<sst>"}), "xl/sharedStrings.xml is not XML"),
        (
            "a.pptx",
            archive({"ppt/slides/slide1.xml": f"<a:rPr {DRAWING} b='{'1' * 10_001}'/>"}),
            "text format that is too large",
        ),
    ],
)
def test_a_file_that_cannot_be_used(name: str, content: bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        open_document(name, content)


def test_formats_with_a_relative_namespace() -> None:
    """A canonical form of XML does not exist for such names, which damaged files have."""
    runs = "".join(
        f'<a:r><a:rPr><p:x b="{b}"/></a:rPr><a:t>{text}</a:t></a:r>' for b, text in ((1, "A "), (1, "dog "), (2, "ran"))
    )
    document = open_document(
        "a.pptx", archive({"ppt/slides/slide1.xml": f"<p:sld xmlns:p='p' {DRAWING}><a:p>{runs}</a:p></p:sld>"})
    )
    assert [(segment.text, len(segment.marks)) for segment in document.segments] == [("A dog ran", 1)]
