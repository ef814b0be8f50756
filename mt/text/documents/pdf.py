"""PDF files (.pdf). The translation of their text layer is a Word document."""

from collections.abc import Sequence
from io import BytesIO

import docx
from docx.shared import Pt
from docx.text.paragraph import Paragraph

from mt.text.documents.base import Document, DocumentOptions, SegmentList
from mt.text.documents.pdf_layout import MAX_LEVEL, Block, BlockKind, read_blocks
from mt.text.documents.pdf_lines import read_pdf
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.rendering import NOT_XML

_BULLETS = "List Bullet"
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
        self._slots: list[int] = []  # the index of the segment of each block, or -1
        for block in self._blocks:
            translated = any(map(str.isalnum, block.text))
            self._slots.append(len(self.segments) if translated else -1)
            if translated:
                self.segments.append(Segment(block.text))

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of a .docx file with the translations of the segments."""
        assert len(translations) == len(self.segments)
        writer = _WordWriter(self._page_size)
        for block, slot in zip(self._blocks, self._slots, strict=True):
            writer.add(block, block.text if slot < 0 else NOT_XML.sub("", translations[slot].text))
        return writer.content()


class _WordWriter:
    """Writer of blocks of text into a new Word document."""

    def __init__(self, page_size: tuple[float, float]) -> None:
        self._document = docx.Document()
        self._section = self._document.sections[0]
        if all(_MIN_PAGE <= side <= _MAX_PAGE for side in page_size):
            self._section.page_width, self._section.page_height = map(Pt, page_size)
        self._running: dict[BlockKind, Paragraph] = {}
        names = [_BULLETS, *(f"Heading {level}" for level in range(1, MAX_LEVEL + 1))]
        self._styles = {name: self._document.styles[name].style_id for name in names}

    def add(self, block: Block, text: str) -> None:
        """Append `text` in the style of `block`. A running title is appended to the header or footer."""
        match block.kind:
            case BlockKind.HEADER | BlockKind.FOOTER:
                paragraph = self._running_title(block.kind)
            case BlockKind.HEADING:
                paragraph = self._styled(f"Heading {block.level}")
            case BlockKind.BULLET:
                paragraph = self._styled(_BULLETS)
            case BlockKind.PARAGRAPH:
                paragraph = self._document.add_paragraph()
        run = paragraph.add_run(text)
        if block.bold:
            run.bold = True

    def _styled(self, name: str) -> Paragraph:
        """Append a paragraph with the style `name`, and return it.

        `add_paragraph(style=...)` is not used, because it reads all styles each time.
        """
        paragraph = self._document.add_paragraph()
        paragraph._p.style = self._styles[name]
        return paragraph

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
