"""PDF files (.pdf). The translation of their text layer is a Word document."""

from collections.abc import Sequence
from io import BytesIO

import docx
from docx.oxml import OxmlElement
from docx.shared import Pt
from docx.text.paragraph import Paragraph

from mt.text.documents.base import Document, DocumentOptions, SegmentList
from mt.text.documents.pdf_layout import MAX_LEVEL, Block, BlockKind, read_blocks
from mt.text.documents.pdf_lines import read_pdf
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.rendering import NOT_XML

_MIN_PAGE, _MAX_PAGE = 72, 1584  # points; Word accepts at most 22 inches


class PdfDocument(Document):
    """A PDF file. Its segments are headings, paragraphs, list items and running titles, in reading order.

    Rendering returns a .docx file with the translated headings, paragraphs and list items, and with the running titles
    as header and footer. The pages have the size of the first PDF page. Pictures, drawings, the lines of tables,
    positions, fonts, colours, links, notes and forms are lost. Each cell of a table becomes a paragraph.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if the content is not PDF, has no text layer, or exceeds a limit."""
        text = read_pdf(name, content, options)
        self._page_size = text.page_sizes[0]
        self._blocks = read_blocks(text)
        self.segments = SegmentList(name, options)
        self.segments.extend(Segment(block.text) for block in self._blocks if _has_text(block))

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of a .docx file with the translations of the segments."""
        assert len(translations) == len(self.segments)
        writer = WordWriter(self._page_size)
        remaining = iter(translations)
        for block in self._blocks:
            writer.add(block, NOT_XML.sub("", next(remaining).text) if _has_text(block) else block.text)
        return writer.content()


def _has_text(block: Block) -> bool:
    return any(map(str.isalnum, block.text))


class WordWriter:
    """Writer of blocks of text into a new Word document."""

    def __init__(self, page_size: tuple[float, float]) -> None:
        self._document = docx.Document()
        self._section = self._document.sections[0]
        self._end = self._document.element.body.sectPr  # after all paragraphs
        if all(_MIN_PAGE <= side <= _MAX_PAGE for side in page_size):
            self._section.page_width, self._section.page_height = map(Pt, page_size)
        self._running: dict[BlockKind, Paragraph] = {}
        names = {(BlockKind.HEADING, level): f"Heading {level}" for level in range(1, MAX_LEVEL + 1)}
        names[BlockKind.BULLET, 0] = "List Bullet"
        self._styles = {key: self._document.styles[name].style_id for key, name in names.items()}

    def add(self, block: Block, text: str) -> None:
        """Append `text` in the style of `block`. A running title is appended to the header or footer."""
        if block.kind in (BlockKind.HEADER, BlockKind.FOOTER):
            paragraph = self._running_title(block.kind)
        else:
            element = OxmlElement("w:p")
            self._end.addprevious(
                element
            )  # `add_paragraph` of the document reads all paragraphs before, and all styles
            paragraph = Paragraph(element, self._document._body)
        if style := self._styles.get((block.kind, block.level)):
            paragraph._p.style = style
        run = paragraph.add_run(text)
        if block.bold:
            run.bold = True

    def content(self) -> bytes:
        out = BytesIO()
        self._document.save(out)
        return out.getvalue()

    def _running_title(self, kind: BlockKind) -> Paragraph:
        """Return the paragraph of the header or footer. If it already contains a title, append a tab."""
        if kind in self._running:
            self._running[kind].add_run("\t")
        else:
            part = self._section.header if kind is BlockKind.HEADER else self._section.footer
            self._running[kind] = part.paragraphs[0]
        return self._running[kind]
