"""Presentations (.pptx) and workbooks (.xlsx): zip archives of XML files.

The texts in the XML files are replaced, and everything else is copied. The libraries python-pptx and openpyxl are not
used: openpyxl drops formats within a cell, pictures and charts, and neither library reads the labels of charts and
diagrams.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import PurePath

from lxml import etree

from mt.errors import DocumentError
from mt.text.documents.archive import DAMAGES, check_archive, rewrite_archive
from mt.text.documents.base import DocumentOptions, SegmentList
from mt.text.documents.run_items import Element, RunSchema
from mt.text.documents.runs import RunParagraphs, parse_part
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.inline import split_whitespace
from mt.text.markup.parsing import NOT_XML

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_NUMBERS = re.compile(r"(\d+)")


def _names(namespace: str, names: str) -> frozenset[str]:
    return frozenset(namespace + name for name in names.split())


_SHAPE = RunSchema(
    paragraph=f"{_DRAWING}p",
    run=f"{_DRAWING}r",
    properties=f"{_DRAWING}rPr",
    text=f"{_DRAWING}t",
    link=f"{_DRAWING}hlinkClick",
    fields=_names(_DRAWING, "fld"),
    first=_names(_DRAWING, "pPr"),
    last=_names(_DRAWING, "endParaRPr"),
    breaks=_names(_DRAWING, "br"),
    invisible=_names("", "altLang bmk dirty err lang noProof smtClean smtId"),
    preserve_space=False,
)
"""Element names of paragraphs in slides, notes, tables, text boxes, diagrams and the titles of charts."""

_CELLS = [
    RunSchema(
        paragraph=f"{_SHEET}{paragraph}",
        run=f"{_SHEET}r",
        properties=f"{_SHEET}rPr",
        text=f"{_SHEET}t",
        dropped=_names(_SHEET, "rPh phoneticPr"),
        splits_lines=True,
    )
    for paragraph in ("si", "is")
]
"""Element names of cell texts with several formats.

A workbook stores such a text in its table of all texts (element `si`), or in the cell (element `is`).
"""

_MEMBERS = {
    ".pptx": re.compile(r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/(data|drawing)|charts/chart)\d*\.xml"),
    ".xlsx": re.compile(
        r"xl/(sharedStrings|worksheets/sheet\d*|(drawings/drawing|charts/chart|diagrams/data)\d*)\.xml"
    ),
}
_COLUMNS = re.compile(r"xl/(tables/table|pivotCache/pivotCacheDefinition)\d*\.xml")


class OfficeDocument:
    """A .pptx or .xlsx file.

    The segments of a presentation are the paragraphs of slides, notes, tables, text boxes, diagrams and charts. The
    segments of a workbook are the lines of cells, and the texts of text boxes, diagrams and charts. Formulas, numbers,
    names of sheets and comments are kept, and so are the column names of tables, because formulas refer to them.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if the content is not a .pptx or .xlsx file, or exceeds a limit."""
        suffix = PurePath(name).suffix.lower()
        check_archive(name, suffix, content, options)
        self.segments: list[Segment] = SegmentList(name, options)
        self._name, self._content = name, content
        self._members: dict[str, _Member] = {}
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                names = sorted(archive.namelist(), key=_natural_order)
                kept = {
                    column
                    for member in names
                    if _COLUMNS.fullmatch(member)
                    for column in _column_names(parse_part(name, member, archive.read(member)))
                }
                for member in names:
                    if _MEMBERS[suffix].fullmatch(member):
                        root = parse_part(name, member, archive.read(member))
                        self._members[member] = _Member(name, root, self.segments, kept)
        except DAMAGES as error:
            raise DocumentError(f"{name} is not a {suffix} file: {error}") from error
        if not self._members:
            raise DocumentError(f"{name} is not a {suffix} file: the archive contains no file with text")

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a file in the archive is damaged.
        """
        assert len(translations) == len(self.segments)

        def render_member(name: str) -> bytes | None:
            member = self._members.get(name)
            if member is None or not member.write(translations):
                return None
            rendered: bytes = etree.tostring(member.root, xml_declaration=True, encoding="UTF-8", standalone=True)
            return rendered

        return rewrite_archive(self._name, self._content, render_member)


class _Member:
    """An XML file of the archive, and the texts in it."""

    def __init__(self, name: str, root: Element, segments: list[Segment], kept: set[str]) -> None:
        self.root = root
        self._values = [_Value(element, segments) for element in _plain_texts(root) if element.text not in kept]
        self._paragraphs = [RunParagraphs(name, root, schema, segments, kept) for schema in (_SHAPE, *_CELLS)]

    def write(self, translations: Sequence[TranslatedSegment]) -> bool:
        """Replace the texts in the XML tree by their translations. Return whether the tree has changed."""
        changed = [value.write(translations) for value in self._values]
        changed += [paragraphs.write(translations) for paragraphs in self._paragraphs]
        return any(changed)


class _Value:
    """An element with text that has no formats. Each line of the text that contains a letter is a segment."""

    def __init__(self, element: Element, segments: list[Segment]) -> None:
        self._element, self._segments = element, segments
        self._parts: list[str | int] = []  # white space, or the index of a segment
        for line in (element.text or "").splitlines(keepends=True):
            before, text, after = split_whitespace(line)
            if any(map(str.isalpha, text)):
                self._parts += [before, len(segments), after]
                segments.append(Segment(text))
            else:
                self._parts.append(line)

    def write(self, translations: Sequence[TranslatedSegment]) -> bool:
        numbers = [part for part in self._parts if isinstance(part, int)]
        if all(translations[number].text == self._segments[number].text for number in numbers):
            return False
        parts = (translations[part].text if isinstance(part, int) else part for part in self._parts)
        text = NOT_XML.sub("", "".join(parts))
        self._element.text = text
        if text != text.strip() and self._element.tag.startswith(_SHEET):
            self._element.set(_SPACE, "preserve")
        return True


def _plain_texts(root: Element) -> Iterator[Element]:
    """Yield the elements with texts that have no formats: the texts of cells, and the labels of charts."""
    for schema in _CELLS:
        for cell in root.iter(schema.paragraph):
            yield from cell.findall(schema.text)
    for cache in root.iter(f"{_CHART}strCache"):
        yield from cache.iter(f"{_CHART}v")


def _column_names(root: Element) -> Iterator[str]:
    """Yield the names of the columns of tables and of the fields of pivot tables in an XML tree."""
    for element in root.iter(f"{_SHEET}tableColumn", f"{_SHEET}cacheField"):
        if name := element.get("name"):
            yield name


def _natural_order(member: str) -> list[tuple[bool, int, str]]:
    """Return a sort key for file names that compares numbers by value: slide2.xml comes before slide10.xml."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in _NUMBERS.split(member)]
