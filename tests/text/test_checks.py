"""A file with text and nothing to translate is an error, and so is a translation that would damage a file."""

from collections.abc import Sequence

import pytest

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document, resources, runs, tables
from mt.text.markup import TranslatedSegment, parsing
from tests.text.test_archives import CONTENT, archive
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
        open_document(name, content.encode() if isinstance(content, str) else content)


def test_a_column_without_text_is_an_error() -> None:
    with pytest.raises(DocumentError, match=KEPT):
        open_document("a.csv", b"id,name\n1,two dogs\n", DocumentOptions(columns=("id",)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "12.5\n"),
        ("a.csv", "1;2\n"),
        ("a.json", '{"key": 1, "url": null}'),
        ("a.yaml", "key: 12\n"),
        ("a.html", "<script>var text</script><style>p {color: red}</style><p>12</p>"),
        ("a.xml", "<a name='text'/>"),
        ("a.po", 'msgid "dog"\nmsgstr "Hund"\n'),
        ("a.docx", word_file("<w:p><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>")),
        ("a.pptx", archive({"a": f"<p:sld {SHOW} {DRAWING}><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sld>"})),
        ("a.ods", archive({"content.xml": f"{HEAD}</office:document-content>"})),
        ("a.epub", archive({"a.xhtml": "<html><body><img src='a.png'/></body></html>"})),
    ],
)
def test_a_file_without_text_to_translate_is_returned(name: str, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    document = open_document(name, data)
    assert document.render([TranslatedSegment(segment.text) for segment in document.segments]) == data


def as_it_is(text: str, *_: object, **__: object) -> str:
    return text


def nothing(self: object, elements: Sequence[object]) -> None:
    return


def no_copy(self: object, element: object, parent: object) -> object:
    return parent


TAB = word_file(f"<w:p>{run('A dog')}<w:r><w:tab/></w:r>{run('ran')}</w:p>")
INSERTED = word_file(f"<w:p>{run('A ')}{inside('ins', run('dog'))}{run(' ran')}</w:p>")


@pytest.mark.parametrize(
    ("name", "content", "owner", "writer", "replacement"),
    [
        ("a.txt", "A dog\nA cat\n", tables, "_write", as_it_is),
        ("a.csv", "dog,cat\n", tables, "_write", as_it_is),
        ("a.strings", '"k" = "dog";\n"l" = "cat";\n', resources, "_write_string", as_it_is),
        ("a.html", "<p>A dog</p>", parsing, "escape", as_it_is),
        ("a.docx", TAB, runs._Writer, "_append", nothing),
        ("a.docx", INSERTED, runs._Writer, "_copy", no_copy),
    ],
)
def test_a_damaged_translation_is_an_error(
    name: str, content: str | bytes, owner: object, writer: str, replacement: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writers of the formats are broken here: they escape nothing, or leave out elements."""
    monkeypatch.setattr(owner, writer, replacement)
    document = open_document(name, content.encode() if isinstance(content, str) else content)
    translations = [TranslatedSegment(f"{segment.text}, <b>x\n<c>") for segment in document.segments]
    with pytest.raises(DocumentError, match=r"the translation of a\.\w+ would be damaged: "):
        document.render(translations)
