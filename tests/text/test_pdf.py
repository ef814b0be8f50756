"""PDF files: headings, paragraphs and lists are found in their lines, and become those of a Word document."""

import io
import tomllib
from pathlib import Path

import docx
import pytest

from mt.text.documents import DocumentOptions, open_document, translated_name
from mt.text.documents.pdf_layout import Block, BlockKind, read_blocks
from mt.text.documents.pdf_lines import SOFT_HYPHEN, PdfLine, PdfText, read_pdf
from mt.text.markup import TranslatedSegment
from scripts.attack.payloads import pdf

FOLDER = Path(__file__).parent / "pdfs"
BLOCKS: dict[str, list[list[str]]] = tomllib.loads((FOLDER / "blocks.toml").read_text(encoding="utf-8"))
"""The kind and the text of each block."""

PAGE = (600.0, 800.0)
STYLES = {"paragraph": "Normal", "bullet": "List Bullet", "heading 1": "Heading 1", "heading 2": "Heading 2"}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_word_document_has_the_blocks(name: str) -> None:
    document = open_document("a.pdf", (FOLDER / f"{name}.pdf").read_bytes())
    translations = [TranslatedSegment(segment.text.upper()) for segment in document.segments]
    written = docx.Document(io.BytesIO(document.render(translations)))
    body = [(STYLES[kind], text.upper()) for kind, text in BLOCKS[name] if kind != "header"]
    assert [(paragraph.style.name, paragraph.text) for paragraph in written.paragraphs if paragraph.style] == body
    headers = [text.upper() for kind, text in BLOCKS[name] if kind == "header"]
    assert [paragraph.text for paragraph in written.sections[0].header.paragraphs if paragraph.text] == headers


def test_the_pages_have_the_same_size() -> None:
    document = open_document("a.pdf", pdf(b"BT /F 12 Tf 72 700 Td (A dog) Tj ET"))
    section = docx.Document(io.BytesIO(document.render([TranslatedSegment("Ein Hund")]))).sections[0]
    assert section.page_width and section.page_height
    assert (section.page_width.pt, section.page_height.pt) == PAGE


def laid_out(texts: list[str]) -> list[PdfLine]:
    """Lines of 12 points below each other, whose widths are those of their texts."""
    return [PdfLine(text, 0, 72, 72 + 6 * len(text), 700 - 14 * row, 12, False) for row, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("lines", "paragraphs"),
    [
        (["A long line of the text with con-", "tent"], ["A long line of the text with content"]),
        (["A long line of a well-known text well-", "known"], ["A long line of a well-known text well-known"]),
        (["A long line of the text at the Nord-", "See"], ["A long line of the text at the Nord-See"]),
        (["A long line of the text on Haus-", "und Gartentüren"], ["A long line of the text on Haus- und Gartentüren"]),
        (["Name: Anna Schmidt", "Town: Berlin"], ["Name: Anna Schmidt", "Town: Berlin"]),
        ([f"A long line of the text with con{SOFT_HYPHEN}", "tent"], ["A long line of the text with content"]),
        (["A short end.", "The next text has a long line."], ["A short end.", "The next text has a long line."]),
        (["A long line ends where a page ends", "and goes on."], ["A long line ends where a page ends and goes on."]),
        (["1. The first item", "2. The second item"], ["1. The first item", "2. The second item"]),
    ],
)
def test_lines_are_joined(lines: list[str], paragraphs: list[str]) -> None:
    assert [block.text for block in read_blocks(PdfText(laid_out(lines), [PAGE]))] == paragraphs


def test_short_items_within_a_wide_column_are_not_joined() -> None:
    text = "The lines of this text are all of one length"
    wide = [PdfLine(text, 0, 72, 336, 700 - 14 * row, 12, False) for row in range(2)]
    nested = [PdfLine(f"Red {text}", 0, 100, 150, 672 - 14 * row, 12, False) for row, text in enumerate(("cat", "Dog"))]
    assert [block.text for block in read_blocks(PdfText([*wide, *nested], [PAGE]))][-2:] == ["Red cat", "Red Dog"]


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"5 Tc (Spaced out words) Tj", "Spaced out words"),
        (b"5 Tc (A b c) Tj", "A b c"),
        (b"(See it) Tj /F 8 Tf 5 Ts (1) Tj /F 12 Tf 0 Ts ( and H) Tj /F 8 Tf -3 Ts (2) Tj", "See it¹ and H₂"),
    ],
)
def test_characters_of_a_line(stream: bytes, text: str) -> None:
    (line,) = read_pdf("a.pdf", pdf(b"BT /F 12 Tf 72 700 Td " + stream + b" ET"), DocumentOptions()).lines
    assert line.text == text


def test_paragraphs_and_running_titles() -> None:
    text = "The lines of this text are all of one length"
    lines = [PdfLine(text, 0, 72, 336, 700 - 14 * row, 12, False) for row in range(3)]
    indented = PdfLine(text, 0, 90, 354, 658, 12, False)
    below = PdfLine(text, 0, 72, 336, 620, 12, False)
    result = read_blocks(PdfText([*lines, indented, below], [PAGE]))
    assert [len(block.text) // len(text) for block in result] == [3, 1, 1]
    lines = []
    for page in range(4):
        lines.append(PdfLine("The title", page, 72, 120, 780, 9, False))
        lines.append(PdfLine(f"Body of page number {page}.", page, 72, 300, 400, 12, False))
        lines.append(PdfLine(f"Annual report | {page + 1}", page, 72, 120, 30, 9, False))
        lines.append(PdfLine(f"Page {page + 1} of 4", page, 200, 250, 30, 9, False))
    result = read_blocks(PdfText(lines, [PAGE] * 4))
    assert result[:2] == [Block(BlockKind.HEADER, "The title"), Block(BlockKind.FOOTER, "Annual report")]
    assert [block.text for block in result[2:]] == [f"Body of page number {page}." for page in range(4)]


def test_the_translation_has_another_name() -> None:
    assert [translated_name(name) for name in ("a/b.c.PDF", "a.docx", "none")] == ["a/b.c.PDF.docx", "a.docx", "none"]
    assert [translated_name(name, "de") for name in ("a.pdf", "a.docx")] == ["a_de.pdf.docx", "a_de.docx"]
