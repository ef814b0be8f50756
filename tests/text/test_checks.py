"""A file with text and nothing to translate is an error, and so is a translation that would damage a file."""

from collections.abc import Hashable, Sequence

import pytest

from mt.errors import DocumentError
from mt.text.documents import Document, DocumentOptions, open_document
from mt.text.documents.checks import CheckedDocument
from mt.text.markup import TranslatedSegment
from tests.text.documents import archive, encoded, render
from tests.text.test_archives import CONTENT
from tests.text.test_office import DRAWING, SHEET, SHOW
from tests.text.test_word_runs import inside, run, word_file

KEPT = "has text, but all of it is of kinds that are not translated"
PRICE = f"<sst {SHEET}><si><t>Price</t></si></sst>"
HEAD = CONTENT.partition("<office:body>")[0]
FORMULA = '<table:table-cell table:formula="of:=A1"><text:p>sum</text:p></table:table-cell>'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", "<title translate=no>Der Titel</title><pre>a text</pre>"),
        ("a.xml", "<a translate='no'>текст</a>"),
        ("a.md", "```\nprint(1)\n```\n"),
        ("a.docx", word_file(f"<w:p>{inside('moveFrom', run('gone'))}</w:p>")),
        ("a.xlsx", archive({"a": PRICE, "b": f'<table {SHEET}><tableColumn name="Price"/></table>'})),
        ("a.ods", archive({"content.xml": f"{HEAD}<office:body>{FORMULA}</office:body></office:document-content>"})),
        ("a.epub", archive({"a.xhtml": "<html><body><code>a = b</code></body></html>"})),
    ],
)
def test_a_file_whose_text_is_not_translated_is_an_error(name: str, content: str | bytes) -> None:
    with pytest.raises(DocumentError, match=KEPT):
        open_document(name, encoded(content))


def test_a_column_without_text_is_an_error() -> None:
    with pytest.raises(DocumentError, match=KEPT):
        open_document("a.csv", b"id,name\n1,two dogs\n", DocumentOptions(columns=("id",)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "1;2\n"),
        ("a.yaml", "key: 12\n"),
        ("a.html", "<script>var text</script><style>p {color: red}</style><p>12</p>"),
        ("a.po", 'msgid "dog"\nmsgstr "Hund"\n'),
        ("a.docx", word_file("<w:p><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>")),
        ("a.pptx", archive({"a": f"<p:sld {SHOW} {DRAWING}><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sld>"})),
        ("a.ods", archive({"content.xml": f"{HEAD}</office:document-content>"})),
        ("a.epub", archive({"a.xhtml": "<html><body><img src='a.png'/></body></html>"})),
    ],
)
def test_a_file_without_text_to_translate_is_returned(name: str, content: str | bytes) -> None:
    assert render(name, content) == encoded(content)


class Damaged(Document):
    def __init__(self, document: Document, written: bytes) -> None:
        self.segments, self.decisions, self.has_text = document.segments, document.decisions, document.has_text
        self.document, self.written = document, written

    def structure(self) -> list[Hashable]:
        return self.document.structure()

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        return self.written


TAB, TEXT = "<w:r><w:tab/></w:r>", run("A dog")


@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        ("a.txt", "A dog\nA cat\n", "Ein Hund\n\tx  y\nKatze\n"),
        ("a.csv", "dog,cat\n", "Hund, x,Katze\n"),
        ("a.strings", '"k" = "dog";\n"l" = "cat";\n', '"k" = "Ein "Hund"";\n"l" = "Katze";\n'),
        ("a.html", "<p>A dog</p>", "<p>Ein <b>Hund</p>"),
        ("a.docx", word_file(f"<w:p>{TEXT}{TAB}{TEXT}</w:p>"), word_file(f"<w:p>{TEXT}{TEXT}</w:p>")),
        ("a.docx", word_file(f"<w:p>{inside('ins', TEXT)}{TEXT}</w:p>"), word_file(f"<w:p>{TEXT}{TEXT}</w:p>")),
    ],
)
def test_a_damaged_translation_is_an_error(name: str, content: str | bytes, written: str | bytes) -> None:
    def parse(data: bytes, options: DocumentOptions) -> Document:
        return open_document(name, data, options)

    def parse_source(data: bytes, options: DocumentOptions) -> Document:
        return Damaged(parse(data, options), encoded(written))

    document = CheckedDocument(name, encoded(content), DocumentOptions(), parse_source, parse)
    with pytest.raises(DocumentError, match=r"the translation of a\.\w+ would be damaged: "):
        document.render([])
