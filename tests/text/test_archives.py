"""E-books and OpenDocument files: zip archives whose members in HTML and XML are translated."""

from collections.abc import Mapping

import pytest

from tests.text.documents import archive, texts

NAMES = " ".join(
    f'xmlns:{name}="urn:{name}"'
    for name in ("office", "text", "table", "style", "number", "dc", "draw", "presentation", "svg")
)
CONTENT = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document-content {NAMES}><office:automatic-styles><number:number-style style:name="N1">
<number:text>hours</number:text></number:number-style></office:automatic-styles>
<office:body><office:text><text:h text:outline-level="1">The title</text:h>
<text:p text:style-name="P1">A <text:span text:style-name="T1">red</text:span> house<text:note text:id="1">
<text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p></text:note-body></text:note>
&amp; a<text:s text:c="2"/>tree<office:annotation><dc:creator>Ann</dc:creator><text:p>Why?</text:p></office:annotation>
</text:p><table:table><table:table-row><table:table-cell><text:p>One</text:p></table:table-cell>
<table:table-cell><text:p>Two</text:p><text:p/></table:table-cell></table:table-row></table:table>
<text:p>Page <text:page-number>7</text:page-number></text:p>
<text:p>The <text:ruby><text:ruby-base>dog</text:ruby-base><text:ruby-text>kept</text:ruby-text></text:ruby> of
<text:title>a name</text:title> runs</text:p>
<text:p>Left<text:tab/><text:span>right</text:span><text:span><text:s/>side</text:span></text:p>
<table:table><table:table-row><table:table-cell table:formula="of:=IF(1;&quot;kept&quot;)" office:value-type="string">
<text:p>kept</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="45">
<text:p>45 kept</text:p></table:table-cell></table:table-row></table:table><draw:frame presentation:placeholder="true">
<draw:text-box><text:p>Click, kept</text:p></draw:text-box></draw:frame></office:text></office:body>
</office:document-content>"""
STYLES = f"""<?xml version="1.0"?><office:document-styles {NAMES}><office:styles><style:style style:name="Body">
</style:style></office:styles><office:master-styles><style:header><text:p>The header</text:p></style:header>
<draw:frame presentation:class="title"><text:p>kept prompt</text:p></draw:frame>
</office:master-styles></office:document-styles>"""
OPEN_DOCUMENT = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "content.xml": CONTENT,
    "styles.xml": STYLES,
    "Object 1/content.xml": f"<office:document-content {NAMES}><table:table-cell><text:p>Axis</text:p><draw:g>"
    "<svg:desc>Kept.A1:Kept.A2</svg:desc></draw:g></table:table-cell></office:document-content>",
    "meta.xml": "<office:document-meta><dc:title>Kept</dc:title></office:document-meta>",
    "Pictures/1.png": "\x89PNG",
}
MARKS = f"""<office:document-content {NAMES} xmlns:form="f"><style:style style:name="T1"><style:text-properties
style:text-position="super 58%"/></style:style><form:button form:label="Save it"/><text:p>The dog<text:span
text:style-name="T1">1</text:span> sleeps. <text:span>Name:</text:span>a <draw:frame><svg:title>A picture</svg:title>
<svg:desc>of a dog</svg:desc></draw:frame><text:a office:title="A hint">red cat</text:a> runs</text:p>
</office:document-content>"""
CHAPTER = """<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>The book</title></head>
<body><h1>One</h1><p>A <b>big</b> dog.<br/>It sleeps.</p></body></html>"""
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": "<container><rootfiles>kept</rootfiles></container>",
    "OEBPS/chapter.xhtml": CHAPTER,
    "OEBPS/toc.ncx": "<ncx><head><meta/></head><docTitle><text>The book</text></docTitle><docAuthor><text>Ann</text>"
    "</docAuthor><navMap><navPoint><navLabel><text>One</text></navLabel></navPoint></navMap></ncx>",
    "OEBPS/style.css": "p {color: red}",
}


TEXTS = "The title|A note|A red house|One|Two|Page|The dog of a name runs|Left|right side|The header|Axis"
PICTURE = '<svg xmlns="svg"><title>A map</title><g><path/><text>a river</text></g></svg>'
CUT = CONTENT[:800] + "</text:p></office:text></office:body></office:document-content>"
CHARTS = {"content.xml": CONTENT[:700], "Chart A/content.xml": OPEN_DOCUMENT["Object 1/content.xml"]}


@pytest.mark.parametrize(
    ("name", "members", "texts_of"),
    [
        ("a.odt", OPEN_DOCUMENT, TEXTS),
        ("a.odt", {"content.xml": MARKS}, "A picture|of a dog|Save it|A hint|The dog sleeps. Name: a red cat runs"),
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
