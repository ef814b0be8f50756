"""Word documents (.docx), read by python-docx. Only the parts whose text changes are written."""

from collections.abc import Sequence
from io import BytesIO

import docx
from docx.opc.part import XmlPart
from docx.oxml.ns import qn

from mt.errors import DocumentError
from mt.text.documents.archive import check_archive, rewrite_archive
from mt.text.documents.base import DocumentOptions, SegmentList
from mt.text.documents.runs import RunParagraphs, RunSchema
from mt.text.markup import Segment, TranslatedSegment

_PARTS = ("document.main+xml", "header+xml", "footer+xml")


def _names(names: str) -> frozenset[str]:
    return frozenset(qn(f"w:{name}") for name in names.split())


_WORD = RunSchema(
    paragraph=qn("w:p"),
    run=qn("w:r"),
    properties=qn("w:rPr"),
    text=qn("w:t"),
    link=qn("w:hyperlink"),
    field_mark=qn("w:fldChar"),
    field_type=qn("w:fldCharType"),
    fields=_names("fldSimple"),
    first=_names("pPr"),
    dropped=_names("proofErr lastRenderedPageBreak"),
    breaks=_names("tab br cr"),
    tabs=_names("tab"),
    invisible=_names("lang noProof rtl webHidden"),
)


class WordDocument:
    """A .docx file. Segments are the paragraphs of body, tables, text boxes, headers and footers, split at tabs."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if it is not a .docx file, or exceeds a limit."""
        check_archive(name, ".docx", content, options)
        try:
            self._document = docx.Document(BytesIO(content))
        except Exception as error:  # python-docx and zipfile raise many types for a damaged package
            raise DocumentError(f"{name} is not a .docx file: {error}") from error
        self.segments: list[Segment] = SegmentList(name, options)
        self._name, self._content = name, content
        self._parts = [
            (part, RunParagraphs(name, part.element, _WORD, self.segments))
            for part in self._document.part.package.iter_parts()
            if isinstance(part, XmlPart) and part.content_type.endswith(_PARTS)
        ]

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a part without text is damaged.
        """
        assert len(translations) == len(self.segments)
        changed = {part.partname.membername: part for part, paragraphs in self._parts if paragraphs.write(translations)}
        return rewrite_archive(
            self._name, self._content, lambda member: changed[member].blob if member in changed else None
        )
