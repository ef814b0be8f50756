import io
from typing import Any

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup.tokens import MAX_TOKENS
from scripts.attack.payloads import pdf
from tests.text.documents import archive, encoded
from tests.text.test_archives import BOOK, OPEN_DOCUMENT
from tests.text.test_office import DRAWING, PRESENTATION, SHEET, SHOW
from tests.text.test_tmx import FILES as MEMORIES
from tests.text.test_tmx import memory

LIMITS: dict[str, Any] = {"max_bytes": 2_000_000, "max_unpacked_bytes": 1_000_000, "max_segments": 1000}
GERMAN = {"target_language": "de"}
A_DOG = b"BT /F 12 Tf 72 700 Td (A dog) Tj ET"
TWO_TEXTS = b"BT /F 9 Tf 72 700 Td (A dog) Tj ET BT /F 20 Tf 72 600 Td (A cat) Tj ET"
LARGE_FORMAT = f"<p:sld {SHOW} {DRAWING}><a:rPr b='{'1' * 10_001}'/></p:sld>"
MANY_FILES = archive({f"{n}.png": "" for n in range(20_001)})
STARTED = "1\n00:00:01,000 --> 00:00:02,000\na\0b\n"


def name_of(value: object) -> str:
    """Name a value of a row. The bytes of some files differ from run to run, and pytest-xdist needs equal names."""
    return "bytes" if isinstance(value, bytes) else str(value)[:40]


def locked() -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption("secret"))
    canvas.drawString(72, 700, "A dog")
    canvas.save()
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.doc", "", r"file extension '.doc'.*accepted: .arb, .csv"),
        ("a.docs", "", r"did you mean .docx"),
        ("a.txt", bytes(range(128, 256)), "not text in UTF-8 at byte 0; accepted: UTF-8, UTF-16 or UTF-32, or another"),
        ("a.txt", "The dog\0 sleeps.\n", "not text: character 8 is NUL; accepted: UTF-8, UTF-16 or UTF-32"),
        ("a.srt", STARTED.encode("utf-16"), "is NUL; accepted"),
        ("a.json", '{"a": }', "line 1, column 7"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.yaml", "a: [1", "a.yaml is not YAML: .*line 2, column 1"),
        ("a.yaml", "[" * 200, "nested too deeply; accepted: at most 100 levels"),
        ("a.strings", "hello", "a.strings has no text"),
        ("a.srt", "no times here", "no cue"),
        ("a.xlf", "<html>", "not XLIFF"),
        ("a.ftl", "no fluent here", r"a\.ftl is not Fluent: it contains no message; accepted: lines such as"),
        ("a.po", 'msgid "a\nmsgstr', "not a .po file"),
        ("a.po", 'msgid "a"\nmsgid "b"\n', "po file: line 2: the entry before this line has no msgstr"),
        ("a.po", 'msgid "a" b"\nmsgstr ""\n', 'po file: line 1: \'"a" b"\' is not a string in quotes'),
        ("a.po", '"a"\n', "po file: line 1: '\"a\"' is neither a keyword, a string nor a comment"),
        ("a.po", "# only a comment\n", "po file: it contains no entry; accepted: at least one msgid"),
        ("a.po", __file__, "line 1: .* is neither a keyword, a string nor a comment"),  # no file is opened
        ("a.tmx", MEMORIES["plain"], "the target language must be given"),
        ("a.xlsx", archive(PRESENTATION), "a.xlsx is not a .xlsx file: the archive contains no file with text"),
        ("a.xlsx", archive({"xl/sharedStrings.xml": f"<sst {SHEET}>"}), "xl/sharedStrings.xml is not XML"),
        ("a.pptx", archive({"s.xml": LARGE_FORMAT}), "text format that is too large"),
        ("a.epub", "PK", "a.epub is not a .epub file: open it in its program and save it again .File is not a zip"),
        ("a.odt", archive(BOOK), "a.odt is not a .odt file: the archive contains no file with text"),
        ("a.odt", archive(OPEN_DOCUMENT).replace(b"PK\x01\x02", b"PK\x01\x03"), "is not a .odt file"),
        ("a.pdf", "%PDF-1.4\nrubbish", "a.pdf is not a PDF file, or is damaged"),
        ("a.pdf", pdf(b"0 0 100 100 re f"), "has no text layer; accepted: a PDF with text"),
        ("a.pdf", locked(), "protected by a password"),
    ],
    ids=name_of,
)
def test_errors_name_the_problem(name: str, content: str | bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        open_document(name, encoded(content), DocumentOptions(**LIMITS))


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("a.tmx", "<tmx></tmx>", GERMAN, "a.tmx is not TMX: it contains no <tmx> element with a <tu>"),
        ("a.csv", "a,b\n1,2", {"columns": ("c", "3")}, "'c', '3'; accepted: a number from 1 to 2, or a, b"),
        ("a.txt", "a", {"encoding": "klingon"}, "the encoding 'klingon' is unknown; accepted: such as utf-16"),
        ("a.txt", "a", {"encoding": "punycode"}, "the encoding 'punycode' is unknown"),
    ],
    ids=name_of,
)
def test_errors_name_an_option(name: str, content: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        open_document(name, content.encode(), DocumentOptions(**options))


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("a.txt", "x" * 2_000_001, {}, "2000001 bytes; accepted: at most 2000000"),
        ("a.txt", "a\n" * 1001, {}, "too many texts.*; accepted: at most 1,000"),
        ("a.txt", "a" * 1001, {"max_characters": 1000}, "too many characters.*; accepted: at most 1,000"),
        ("a.html", "<p>a" * 1001, {}, "too many texts.*; accepted: at most 1,000"),
        ("a.html", "<b>" * 5001, {}, "too many tags.*; accepted: at most 5,000"),
        ("a.srt", "\n" * (MAX_TOKENS + 1), {}, "too many lines.*; accepted: at most 1,000,000"),
        ("a.csv", "," * (MAX_TOKENS + 1), {}, "too many cells.*; accepted: at most 1,000,000"),
        ("a.json", "[" + '"a",' * 1000 + '"a"]', {}, "too many texts.*; accepted: at most 1,000"),
        ("a.json", "[" * (MAX_TOKENS + 1), {}, "too many values.*; accepted: at most 1,000,000"),
        ("a.po", 'msgid "a"\nmsgstr ""\n' * 1001, {}, "too many texts.*; accepted: at most 1,000"),
        ("a.ftl", "a = " + "{" * 100_000, {}, "nested too deeply"),
        ("a.ftl", "\n" * (MAX_TOKENS + 1), {}, "too many lines.*; accepted: at most 1,000,000"),
        ("a.ftl", "a = b\n" * 1001, {}, "too many texts.*; accepted: at most 1,000"),
        ("a.tmx", memory(MEMORIES["plain"] * 3), {**GERMAN, "max_segments": 2},
         "too many texts.*; accepted: at most 2"),
        ("a.docx", archive({"word/document.xml": "\0" * 3_000_000}), {}, "would unpack to 3000000 bytes"),
        ("a.odt", archive({"content.xml": "a" * 2_000_000}), {}, "unpack to 2000000 bytes; accepted: at most"),
        ("a.odt", archive({f"{n}.png": "" for n in range(20_001)}), {"max_bytes": 10**7},
         "20001 files; accepted: at most 20000"),
        ("a.epub", archive({"a.html": "<p>a" * 1001}), {}, "too many texts.*; accepted: at most 1,000"),
        ("a.pdf", pdf(A_DOG, 5001), {}, "5,001 pages; accepted: at most 5,000"),
        ("a.pdf", pdf(A_DOG), {"max_characters": 4}, "too many characters.*; accepted: at most 4"),
        ("a.pdf", pdf(TWO_TEXTS), {"max_segments": 1}, "too many texts.*; accepted: at most 1"),
    ],
    ids=name_of,
)  # fmt: skip
def test_errors_name_a_limit(
    monkeypatch: pytest.MonkeyPatch, name: str, content: str | bytes, options: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr("mt.text.markup.tokens.MAX_TOKENS", 5000)  # a million tags take seconds
    with pytest.raises(DocumentLimitExceeded, match=problem):
        open_document(name, encoded(content), DocumentOptions(**{**LIMITS, **options}))
