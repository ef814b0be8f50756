"""Word documents (.docx), read by python-docx. Only the parts whose text changes are written."""

from collections.abc import Sequence
from io import BytesIO

import docx
from docx.opc.oxml import serialize_part_xml
from docx.opc.part import XmlPart
from docx.oxml.ns import qn

from mt.errors import DocumentError
from mt.text.documents.archive import check_archive, rewrite_archive
from mt.text.documents.base import DocumentOptions, SegmentList
from mt.text.documents.run_items import Element, RunSchema
from mt.text.documents.runs import RunParagraphs, parse_part
from mt.text.markup import Segment, TranslatedSegment

_PARTS = ("document.main+xml", "endnotes+xml", "footer+xml", "footnotes+xml", "header+xml")


def _names(names: str) -> frozenset[str]:
    return frozenset(qn(f"w:{name}") for name in names.split())


_WORD = RunSchema(
    paragraph=qn("w:p"),
    run=qn("w:r"),
    properties=qn("w:rPr"),
    text=qn("w:t"),
    characters={qn("w:noBreakHyphen"): "\u2011"},
    wrappers=_names("bdo customXml dir hyperlink ins moveTo sdt smartTag"),
    content=qn("w:sdtContent"),
    transparent=_names("ruby rubyBase"),
    field_mark=qn("w:fldChar"),
    field_type=qn("w:fldCharType"),
    instruction=qn("w:instrText"),
    instruction_attribute=qn("w:instr"),
    fields=_names("fldSimple"),
    first=_names("customXmlPr fldData pPr sdtEndPr sdtPr smartTagPr"),
    dropped=_names("lastRenderedPageBreak proofErr rt rubyPr softHyphen"),
    breaks=_names("tab br cr"),
    tabs=_names("tab"),
    invisible=_names("lang noProof rtl webHidden"),
)


class WordDocument:
    """A .docx file.

    Its segments are the paragraphs of body, tables, text boxes, notes, headers and footers, split at tabs.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if the content is not a .docx file, or exceeds a limit."""
        check_archive(name, ".docx", content, options)
        try:
            document = docx.Document(BytesIO(content))
        except Exception as error:  # python-docx and zipfile raise many types for a damaged package
            raise DocumentError(f"{name} is not a .docx file: {error}") from error
        self.segments: list[Segment] = SegmentList(name, options)
        self._name, self._content = name, content
        self._parts: dict[str, tuple[Element, RunParagraphs]] = {}
        for part in document.part.package.iter_parts():
            if part.content_type.endswith(_PARTS):
                member = part.partname.membername
                root = part.element if isinstance(part, XmlPart) else parse_part(name, member, part.blob)
                self._parts[member] = root, RunParagraphs(name, root, _WORD, self.segments)

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a part without text is damaged.
        """
        assert len(translations) == len(self.segments)
        changed = {
            member: serialize_part_xml(root)
            for member, (root, paragraphs) in self._parts.items()
            if paragraphs.write(translations)
        }
        return rewrite_archive(self._name, self._content, changed.get)
