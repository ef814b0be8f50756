"""Hostile inputs by name: small files and bodies that took seconds or gigabytes when they were found."""

import io
import zipfile
from collections.abc import Callable


def packed(members: dict[str, str]) -> bytes:
    """Return a zip archive of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def docx(document: str) -> bytes:
    """Return a .docx file with this word/document.xml."""
    return packed(
        {
            "[Content_Types].xml": '<?xml version="1.0"?>'
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/word/document.xml" ContentType='
            '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
            "_rels/.rels": '<?xml version="1.0"?>'
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="rId1" Target="word/document.xml" Type='
            '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
            "word/document.xml": document,
        }
    )


def word(body: str) -> bytes:
    """Return a .docx file with this body."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return docx(f'<?xml version="1.0"?><w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')


def slide(body: str) -> bytes:
    """Return a .pptx file with one slide with this text body."""
    space = "http://schemas.openxmlformats.org/drawingml/2006/main"
    return packed({"ppt/slides/slide1.xml": f'<?xml version="1.0"?><a:txBody xmlns:a="{space}">{body}</a:txBody>'})


def workbook(texts: str) -> bytes:
    """Return an .xlsx file with these shared strings and a table, whose column names are not translated."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return packed(
        {
            "xl/sharedStrings.xml": f'<?xml version="1.0"?><sst xmlns="{space}">{texts}</sst>',
            "xl/tables/table1.xml": f'<?xml version="1.0"?><table xmlns="{space}"><tableColumn name="Number"/></table>',
        }
    )


def open_document_text(body: str) -> bytes:
    """Return an .odt file with this content."""
    space = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    return packed({"content.xml": f'<?xml version="1.0"?><body xmlns:text="{space}">{body}</body>'})


def nested_runs(depth: int, texts: int) -> bytes:
    """Return a .docx file whose paragraphs and runs are nested."""
    return word("<w:p><w:r>" * depth + "<w:t/>" * texts + "</w:r></w:p>" * depth)


def xliff(inner: str) -> bytes:
    """Return an XLIFF 1.2 file with this inside of its unit."""
    return (
        '<?xml version="1.0"?><xliff version="1.2"><file source-language="en" target-language="de"><body>'
        f'<trans-unit id="1"><source>House</source>{inner}</trans-unit></body></file></xliff>'
    ).encode()


def pdf(stream: bytes, pages: int = 1) -> bytes:
    """Return a PDF file whose pages have this content."""
    kids = b" ".join(b"%d 0 R" % (5 + page) for page in range(pages))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % pages,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >> stream\n" % len(stream) + stream + b"\nendstream",
    ]
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
    objects += [page + b" /Resources << /Font << /F 3 0 R >> >> >>"] * pages
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(content))
    return content + b"xref\n0 %d\n" % size + table + trailer


def tmx(units: bytes) -> bytes:
    """Return a TMX file with these units."""
    return b'<tmx version="1.4"><header srclang="en"/><body>' + units + b"</body></tmx>"


def pdf_text(shown: bytes, size: int) -> bytes:
    """Return a PDF file that shows this again and again, until it has `size` bytes."""
    return pdf(b"BT /F 12 Tf 14 TL 72 700 Td " + shown * (size // len(shown)) + b"ET")


SIZED_DOCUMENTS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "xliff-target-spaces": ("a.xliff", lambda n: xliff("<target" + " " * n + "x/>")),
    "md-footnotes": ("a.md", lambda n: b"[^" * (n // 2)),
    "md-brackets": ("a.md", lambda n: b"[" * n),
    "md-emphasis": ("a.md", lambda n: b"*a_" * (n // 3)),
    "md-links": ("a.md", lambda n: b"[a](" * (n // 4)),
    "po-charset": ("a.po", lambda n: b'msgid ""\nmsgstr "' + b"Content-Type:" * (n // 13) + b'"\n'),
    "po-continued": ("a.po", lambda n: b'msgid "a"\nmsgstr ""\n' + b'"a"\n' * (n // 4)),
    "srt-newlines": ("a.srt", lambda n: b"1\n00:00:01,000 --> 00:00:02,000\nHouse" + b"\n" * n),
    "srt-spaces": ("a.srt", lambda n: b"1\n00:00:01,000 --> 00:00:02,000" + b" " * n + b"x\nHouse\n"),
    "srt-numbers": ("a.srt", lambda n: b"1\n" * (n // 2)),
    "vtt-blank": ("a.vtt", lambda n: b"WEBVTT\n" + b"\n \n" * (n // 3)),
    "html-cdata": ("a.html", lambda n: b"<![CDATA[>" * (n // 10)),
    "html-translate": ("a.html", lambda n: b'<p translate="no">' * (n // 18)),
    "html-tags": ("a.html", lambda n: b"<b>" * (n // 3)),
    "html-comments": ("a.html", lambda n: b"<!--" * (n // 4)),
    "html-attributes": ("a.html", lambda n: b"<p " + b"a " * (n // 2) + b">x</p>"),
    "html-open-tag": ("a.html", lambda n: b"<" * n),
    "html-punycode": ("a.html", lambda n: b"<meta charset=punycode>" + b"a" * (n // 2) + b"-" + b"b" * (n // 2)),
    "html-paragraphs": ("a.html", lambda n: b"<p>" * (n // 3)),
    "json-nested": ("a.json", lambda n: b"[" * (n // 2) + b"]" * (n // 2)),
    "json-strings": ("a.json", lambda n: b"[" + b'"a",' * (n // 4) + b'"a"]'),
    "ftl-braces": ("a.ftl", lambda n: b"a = " + b"{" * n),
    "ftl-selections": ("a.ftl", lambda n: b"a = " + b"{ $a ->\n *[b] " * min(40, n // 16) + b"c" * n),
    "ftl-variants": ("a.ftl", lambda n: b"a = { $a ->\n" + b" [b] c\n" * (n // 7) + b" *[d] e\n }"),
    "ftl-junk": ("a.ftl", lambda n: b"a = {\n" * (n // 6)),
    "ftl-lines": ("a.ftl", lambda n: b"a =\n" + b"    b\n" * (n // 6)),
    "ftl-indent": ("a.ftl", lambda n: b"a =\n" + b" " * n + b"b"),
    "tmx-units": ("a.tmx", lambda n: tmx(b'<tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>' * (n // 48))),
    "tmx-nested": ("a.tmx", lambda n: tmx(b'<tu><tuv xml:lang="en"><seg>' * (n // 28))),
    "tmx-variants": ("a.tmx", lambda n: tmx(b"<tu>" + b'<tuv xml:lang="en"><seg>a</seg></tuv>' * (n // 37) + b"</tu>")),
    "tmx-languages": (
        "a.tmx",
        lambda n: tmx(b"".join(b'<tu><tuv xml:lang="en-%05d"><seg>a' % number for number in range(n // 34))),
    ),
    "pdf-words": ("a.pdf", lambda n: pdf_text(b"(a dog) Tj T* ", n)),
    "pdf-line": ("a.pdf", lambda n: pdf_text(b"(aaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj ", n)),
    "pdf-hyphens": ("a.pdf", lambda n: pdf_text(b"(a-) Tj T* ", n)),
    "pdf-cells": ("a.pdf", lambda n: pdf_text(b"(a) Tj 90 0 Td ", n)),
    "pdf-backward": ("a.pdf", lambda n: pdf_text(b"(a) Tj -1 0 Td ", n)),
    "pdf-fonts": ("a.pdf", lambda n: pdf_text(b"/F 12 Tf (a) Tj /F 13 Tf (b) Tj T* ", n)),
    "pdf-states": ("a.pdf", lambda n: pdf(b"q " * (n // 2))),
    "pdf-pages": ("a.pdf", lambda n: pdf(b"BT /F 12 Tf 72 790 Td (Title) Tj ET", n // 170)),
    "txt-lines": ("a.txt", lambda n: b"a\n" * (n // 2)),
    "txt-breaks": ("a.txt", lambda n: b"a\r" * (n // 2)),
    "csv-cells": ("a.csv", lambda n: b"a," * (n // 2)),
    "csv-quotes": ("a.csv", lambda n: b'"' * n),
    "csv-open-quotes": ("a.csv", lambda n: b'a,"' * (n // 3)),
    "csv-rows": ("a.csv", lambda n: b"a\n" * (n // 2)),
    "yaml-list": ("a.yaml", lambda n: b"- a b\n" * (n // 6)),
    "yaml-flow": ("a.yaml", lambda n: b"[" + b"a b, " * (n // 5) + b"]"),
    "yaml-nested": ("a.yaml", lambda n: b"- " * (n // 2)),
    "yaml-open-flow": ("a.yaml", lambda n: b"[{" * (n // 2)),
    "yaml-lines": ("a.yaml", lambda n: b"a:\n" + b"  b\n" * (n // 4)),
    "yaml-block": ("a.yaml", lambda n: b"a: >\n" + b"  b c\n" * (n // 6)),
    "yaml-blank-block": ("a.yaml", lambda n: b"a: |\n" + b"\n" * n),
    "yaml-anchors": ("a.yaml", lambda n: b"- &a b\n- *a\n" * (n // 12)),
    "yaml-keys": ("a.yaml", lambda n: b"".join(b"a%06d: b\n" % number for number in range(n // 11))),
    "yaml-comments": ("a.yaml", lambda n: b"a: b\n" + b"#\n" * (n // 2)),
    "yaml-braces": ("a.yaml", lambda n: b"a: '" + b"{" * n + b"'"),
    "yaml-messages": ("a.yaml", lambda n: b"a: '" + b"{a, plural, one {" * (n // 17) + b"}}" * (n // 17) + b"'"),
    "yaml-branches": ("a.yaml", lambda n: b"a: '{a, plural, " + b"one {b} " * (n // 8) + b"}'"),
    "yaml-escapes": ("a.yaml", lambda n: b'a: "' + b"\\u00e4" * (n // 6) + b'"'),
    "properties-lines": ("a.properties", lambda n: b"a=b\n" * (n // 4)),
    "properties-spaces": ("a.properties", lambda n: b" " * n + b"a"),
    "properties-backslashes": ("a.properties", lambda n: b"a=" + b"\\" * n),
    "properties-continued": ("a.properties", lambda n: b"a=" + b"b\\\n" * (n // 3)),
    "properties-escapes": ("a.properties", lambda n: b"a=" + b"\\ud83d" * (n // 6)),
    "properties-newlines": ("a.properties", lambda n: b"\n" * n),
    "strings-lines": ("a.strings", lambda n: b'"a" = "b";\n' * (n // 11)),
    "strings-quotes": ("a.strings", lambda n: b'"a" = ' + b'"' * n),
    "strings-comments": ("a.strings", lambda n: b'"a" = "b";' + b"/*" * (n // 2)),
    "strings-slashes": ("a.strings", lambda n: b'"a" = "b";' + b"/ " * (n // 2)),
    "strings-backslashes": ("a.strings", lambda n: b'"a" = "' + b"\\" * n),
    "arb-members": ("a.arb", lambda n: b"{" + b",".join(b'"a%06d": "b"' % number for number in range(n // 15)) + b"}"),
    "arb-braces": ("a.arb", lambda n: b'{"a": "' + b"{a" * (n // 2) + b'"}'),
    "arb-messages": ("a.arb", lambda n: b'{"a": "' + b"{a, select, b {" * (n // 15) + b"}}" * (n // 15) + b'"}'),
    "arb-closed": ("a.arb", lambda n: b'{"a": "' + b"{a}" * (n // 3) + b'"}'),
    "resx-data": ("a.resx", lambda n: b"<root>" + b"<data><value>a</value></data>" * (n // 29) + b"</root>"),
    "resx-nested": ("a.resx", lambda n: b"<root>" + b"<data><value>" * (n // 13)),
    "resx-values": ("a.resx", lambda n: b"<root><data>" + b"<value>a</value>" * (n // 16) + b"</data></root>"),
    "xml-elements": ("a.xml", lambda n: b"<a>" + b"<b>c</b>" * (n // 8) + b"</a>"),
    "xml-open": ("a.xml", lambda n: b"<a>" * (n // 3)),
    "xml-doctype": ("a.xml", lambda n: b"<!DOCTYPE a [" + b'<!ENTITY a "b">' * (n // 15)),
    "xml-references": ("a.xml", lambda n: b"<a>" + b"&a;" * (n // 3) + b"</a>"),
    "xml-android": (
        "a.xml",
        lambda n: b"<resources><plurals>" + b"<item>a<b>c</b></item>" * (n // 22) + b"</plurals></resources>",
    ),
    "xhtml-nested": ("a.xhtml", lambda n: b"<div>" * (n // 11) + b"a" + b"</div>" * (n // 11)),
    "docx-nested": ("a.docx", lambda n: nested_runs(min(120, n // 100), n)),
    "docx-runs": ("a.docx", lambda n: word("<w:p>" + "<w:r><w:t>a b</w:t></w:r>" * (n // 25) + "</w:p>")),
    "docx-formats": (
        "a.docx",
        lambda n: word(
            "<w:p>" + "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r><w:r><w:t>b </w:t></w:r>" * (n // 67) + "</w:p>"
        ),
    ),
    "docx-tabs": ("a.docx", lambda n: word("<w:p><w:r>" + "<w:t>a</w:t><w:tab/>" * (n // 20) + "</w:r></w:p>")),
    "docx-texts": ("a.docx", lambda n: word("<w:p><w:r>" + "<w:t>a </w:t>" * (n // 14) + "</w:r></w:p>")),
    "docx-fields": (
        "a.docx",
        lambda n: word("<w:p>" + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * (n // 46) + "</w:p>"),
    ),
    "docx-links": (
        "a.docx",
        lambda n: word(
            "<w:p>"
            + "<w:hyperlink>" * min(200, n // 100)
            + "<w:r><w:t>a</w:t></w:r>" * (n // 23)
            + "</w:hyperlink>" * min(200, n // 100)
            + "</w:p>"
        ),
    ),
    "docx-paragraphs": ("a.docx", lambda n: word("<w:p><w:r><w:t>a</w:t></w:r></w:p>" * (n // 34))),
    "pptx-paragraphs": ("a.pptx", lambda n: slide("<a:p><a:r><a:t>a</a:t></a:r></a:p>" * (n // 34))),
    "pptx-runs": (
        "a.pptx",
        lambda n: slide(
            "<a:p>" + '<a:r><a:rPr b="1"/><a:t>a </a:t></a:r><a:r><a:t>b </a:t></a:r>' * (n // 62) + "</a:p>"
        ),
    ),
    "pptx-nested": (
        "a.pptx",
        lambda n: slide(
            "<a:p><a:r>" * min(100, n // 100) + "<a:t>a</a:t>" * (n // 12) + "</a:r></a:p>" * min(100, n // 100)
        ),
    ),
    "xlsx-texts": ("a.xlsx", lambda n: workbook("<si><t>a b</t></si>" * (n // 19))),
    "xlsx-lines": ("a.xlsx", lambda n: workbook("<si><t>" + "a&#10;" * (n // 6) + "</t></si>")),
    "xlsx-runs": (
        "a.xlsx",
        lambda n: workbook("<si>" + "<r><rPr><b/></rPr><t>a </t></r><r><t>b </t></r>" * (n // 47) + "</si>"),
    ),
    "xlsx-nested": (
        "a.xlsx",
        lambda n: workbook("<si>" * min(200, n // 100) + "<t>a b</t>" * (n // 10) + "</si>" * min(200, n // 100)),
    ),
    "odt-paragraphs": ("a.odt", lambda n: open_document_text("<text:p>a</text:p>" * (n // 18))),
    "odt-spans": (
        "a.odt",
        lambda n: open_document_text("<text:p>" + "a <text:span>b</text:span> " * (n // 27) + "</text:p>"),
    ),
    "odt-nested": (
        "a.odt",
        lambda n: open_document_text(
            "<text:p>" + "<text:span>a " * (n // 25) + "</text:span>" * (n // 25) + "</text:p>"
        ),
    ),
    "odt-spaces": ("a.odt", lambda n: open_document_text("<text:p>" + "a<text:s/>" * (n // 10) + "</text:p>")),
    "epub-paragraphs": ("a.epub", lambda n: packed({"a.xhtml": "<p>a <b>b</b> c</p>" * (n // 19)})),
    "epub-members": ("a.epub", lambda n: packed({f"{number}.xhtml": "<p>a" for number in range(n // 100)})),
}
"""File name and a function from a size in bytes to content."""

LARGE_DOCUMENTS: dict[str, tuple[str, bytes]] = {
    "txt-segments": ("a.txt", b"a\n" * 4_500_000),
    "html-tokens": ("a.html", b"<b>" * 3_000_000),
}
