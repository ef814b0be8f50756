"""Hostile inputs by name: small files and bodies that took seconds or gigabytes when they were found."""

import io
import zipfile
from collections.abc import Callable


def docx(document: str) -> bytes:
    """Return a .docx file with this word/document.xml."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/word/document.xml" ContentType='
            '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="rId1" Target="word/document.xml" Type='
            '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        )
        archive.writestr("word/document.xml", document)
    return file.getvalue()


def nested_runs(depth: int, texts: int) -> bytes:
    """Return a .docx file whose paragraphs and runs are nested."""
    inner = "<w:t/>" * texts
    body = "<w:p><w:r>" * depth + inner + "</w:r></w:p>" * depth
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return docx(f'<?xml version="1.0"?><w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')


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
    "docx-nested": ("a.docx", lambda n: nested_runs(min(120, n // 100), n)),
}
"""File name and a function from a size in bytes to content."""

LARGE_DOCUMENTS: dict[str, tuple[str, bytes]] = {
    "txt-segments": ("a.txt", b"a\n" * 4_500_000),
    "html-tokens": ("a.html", b"<b>" * 3_000_000),
}
