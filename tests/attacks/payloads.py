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
    "txt-lines": ("a.txt", lambda n: b"a\n" * (n // 2)),
    "docx-nested": ("a.docx", lambda n: nested_runs(min(120, n // 100), n)),
}
"""File name and a function from a size in bytes to content."""

LARGE_DOCUMENTS: dict[str, tuple[str, bytes]] = {
    "txt-segments": ("a.txt", b"a\n" * 4_500_000),
    "html-tokens": ("a.html", b"<b>" * 3_000_000),
}
