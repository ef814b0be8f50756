"""Word documents (.docx), read and written by python-docx."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO
from itertools import islice

import docx
from docx.opc.part import XmlPart
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.oxml.xmlchemy import BaseOxmlElement
from lxml import etree

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.archive import check_archive
from mt.text.documents.base import DocumentOptions, SegmentList
from mt.text.markup import Segment, TranslatedSegment, place_marks
from mt.text.markup.inline import (
    BuiltSegment,
    InlineItem,
    InlineKind,
    InlineText,
    decode_nothing,
    read_inline,
    split_whitespace,
)
from mt.text.markup.parsing import NOT_XML

Element = BaseOxmlElement
_PARTS = ("document.main+xml", "header+xml", "footer+xml")
_MAX_PROPERTIES, _MAX_VALUES = 200, 10_000  # most elements and characters of a run's format; Word has 40 properties
_INVISIBLE = ("lang", "noProof", "rtl", "webHidden")  # properties of a run that do not change its appearance


@dataclass(frozen=True)
class _Slot:
    """A text of a paragraph, and the index of its segment."""

    inline: InlineText[Element]
    number: int


class WordDocument:
    """A .docx file. Segments are the paragraphs of body, tables, text boxes, headers and footers, split at tabs.

    The format of most of the text of a paragraph is its base format. Runs in other formats are marks, which are placed
    by alignment, as are links, pictures, breaks, fields, bookmarks and notes. Tracked changes and embedded controls are
    kept. A paragraph is unchanged if all its translations equal their segments. The archive is written anew.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if it is not a .docx file, or exceeds a limit."""
        check_archive(name, ".docx", content, options)
        try:
            self._document = docx.Document(BytesIO(content))
        except Exception as error:  # python-docx and zipfile raise many types for a damaged package
            raise DocumentError(f"{name} is not a .docx file: {error}") from error
        self.segments: list[Segment] = SegmentList(name, options)
        self._paragraphs: list[tuple[Element, Element | None, list[_Slot]]] = []
        for part in self._document.part.package.iter_parts():
            if isinstance(part, XmlPart) and part.content_type.endswith(_PARTS):
                _check_formats(name, part.element)
                fields = _field_marks(part.element)
                for paragraph in part.element.iter(qn("w:p")):
                    self._read(paragraph, fields)

    def _read(self, paragraph: Element, fields: "_Fields") -> None:
        base = _base_format(paragraph)
        slots: list[_Slot] = []
        for group in _split_at_tabs(list(_items(paragraph, _format_key(base), fields))):
            inline = read_inline(group, decode_nothing, collapse=False)
            slots.append(_Slot(inline, len(self.segments)))
            if inline.built:
                self.segments.append(inline.built.segment)
        if any(slot.inline.built for slot in slots):
            self._paragraphs.append((paragraph, base, slots))

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation."""
        assert len(translations) == len(self.segments)
        for paragraph, base, slots in self._paragraphs:
            numbers = [slot.number for slot in slots if slot.inline.built]
            if any(translations[n].text != self.segments[n].text for n in numbers):
                _Writer(paragraph, base).write(slots, translations)
        out = BytesIO()
        self._document.save(out)
        return out.getvalue()


class _Writer:
    """A writer of the new content of a paragraph: runs of text, and the elements between the runs."""

    def __init__(self, paragraph: Element, base: Element | None) -> None:
        self.base = base
        self.containers = [paragraph]
        self.formats: list[Element | None] = []
        for child in list(paragraph):
            if child.tag != qn("w:pPr"):
                paragraph.remove(child)

    def write(self, slots: Sequence[_Slot], translations: Sequence[TranslatedSegment]) -> None:
        for slot in slots:
            inline, built = slot.inline, slot.inline.built
            self._items(inline.before)
            if built is not None and (new := translations[slot.number]).text != built.segment.text:
                self._translated(built, new)
            else:
                self._items(inline.items)
            self._items(inline.after)

    def _translated(self, built: BuiltSegment[Element], new: TranslatedSegment) -> None:
        for piece in place_marks(built.segment, new):
            if piece.opens >= 0:
                mark = built.segment.marks[piece.opens]
                if mark.empty or mark.kept:
                    self._append(built.openings[piece.opens])
                else:
                    self._open(built.openings[piece.opens][0])
            elif piece.closes >= 0:
                self._close(built.openings[piece.closes][0])
            else:
                self._text(piece.text)

    def _items(self, items: Sequence[InlineItem[Element]]) -> None:
        for item in items:
            if item.kind is InlineKind.TEXT:
                self._text(item.text)
            elif item.kind is InlineKind.OPEN:
                self._open(item.parts[0])
            elif item.kind is InlineKind.CLOSE:
                self._close(item.parts[0])
            else:
                self._append(item.parts)

    def _open(self, element: Element) -> None:
        """Begin a mark: a link becomes the parent of the following text, run properties become its format."""
        if element.tag != qn("w:hyperlink"):
            self.formats.append(element)
            return
        link = element.makeelement(element.tag, element.attrib, element.nsmap)
        self.containers[-1].append(link)
        self.containers.append(link)

    def _close(self, element: Element) -> None:
        (self.containers if element.tag == qn("w:hyperlink") else self.formats).pop()

    def _append(self, elements: Sequence[Element]) -> None:
        """Append elements without text. An element of a run gets a new run; run properties and links are dropped."""
        for element in elements:
            if element.tag in (qn("w:rPr"), qn("w:hyperlink")):
                continue
            place, run = self.containers[-1], element.getparent()
            if run is not None and run.tag == qn("w:r"):
                place = OxmlElement("w:r")
                place.extend(deepcopy(run.findall(qn("w:rPr"))))
                self.containers[-1].append(place)
            place.append(element)

    def _text(self, text: str) -> None:
        run = OxmlElement("w:r")
        run_format = self.formats[-1] if self.formats else self.base
        if run_format is not None and len(run_format):
            run.append(deepcopy(run_format))
        written = OxmlElement("w:t")
        written.text = NOT_XML.sub("", text)
        written.set(qn("xml:space"), "preserve")
        run.append(written)
        self.containers[-1].append(run)


_Fields = dict[Element, int]
"""Maps elements to the number of fields that begin in them minus the number of fields that end in them."""


def _field_marks(root: Element) -> _Fields:
    """Return the `_Fields` of a tree, in one pass even if text boxes are nested. Paragraphs are counted separately."""
    marks: _Fields = {}
    if next(root.iter(qn("w:fldChar")), None) is None:
        return marks
    for _, element in etree.iterwalk(root, events=("end",)):
        if element.tag == qn("w:fldChar"):
            marks[element] = {"begin": 1, "end": -1}.get(element.get(qn("w:fldCharType")), 0)
        if element in marks and element.tag != qn("w:p") and (parent := element.getparent()) is not None:
            marks[parent] = marks.get(parent, 0) + marks[element]
    return marks


def _check_formats(name: str, root: Element) -> None:
    """Raise DocumentLimitExceeded for a run format that is too large to be copied to each of its texts."""
    for properties in root.iter(qn("w:rPr")):
        size = sum(1 for _ in islice(properties.iter(), _MAX_PROPERTIES + 1))
        if size > _MAX_PROPERTIES or sum(len(v) for child in properties.iter() for v in child.values()) > _MAX_VALUES:
            raise DocumentLimitExceeded(
                f"{name} has a text format that is too large; accepted: at most {_MAX_PROPERTIES} properties with "
                f"{_MAX_VALUES:,} characters"
            )


def _items(parent: Element, base: bytes, fields: _Fields) -> Iterator[InlineItem[Element]]:
    """Yield the items of a paragraph or link. OPEN and CLOSE items enclose text in another format than `base`."""
    field: list[Element] = []
    depth = 0
    for child in parent:
        if child.tag == qn("w:pPr"):
            continue
        depth += fields.get(child, 0)
        if depth > 0 or child in fields:
            field.append(child)
            if depth <= 0:
                yield InlineItem(InlineKind.EMPTY, tuple(field))
                field, depth = [], 0
        elif child.tag == qn("w:hyperlink"):
            key = id(child)
            yield InlineItem(InlineKind.OPEN, (child,), key=key)
            yield from _items(child, base, fields)
            yield InlineItem(InlineKind.CLOSE, (child,), key=key)
        elif child.tag == qn("w:r"):
            yield from _run(child, base)
        elif child.tag not in (qn("w:proofErr"), qn("w:lastRenderedPageBreak")):
            yield InlineItem(InlineKind.EMPTY, (child,))
    if field:
        yield InlineItem(InlineKind.EMPTY, tuple(field))


def _run(run: Element, base: bytes) -> Iterator[InlineItem[Element]]:
    """Yield the items of a run: its texts, and its other elements as EMPTY items."""
    properties = run.find(qn("w:rPr"))
    marked = _format_key(properties) != base
    run_format: Element = OxmlElement("w:rPr") if properties is None else properties
    for child in run:
        if child.tag == qn("w:rPr") or child.tag == qn("w:lastRenderedPageBreak"):
            continue
        if child.tag == qn("w:t"):
            if marked:
                yield InlineItem(InlineKind.OPEN, (run_format,), key=id(child))
            for text in split_whitespace(child.text or ""):
                if text:
                    yield InlineItem(InlineKind.TEXT, (child,), text)
            if marked:
                yield InlineItem(InlineKind.CLOSE, (run_format,), key=id(child))
        else:
            yield InlineItem(InlineKind.EMPTY, (child,), breaks=child.tag in (qn("w:tab"), qn("w:br"), qn("w:cr")))


def _runs(parent: Element) -> Iterator[Element]:
    """Yield the runs of a paragraph or link, except the runs in text boxes."""
    for child in parent:
        if child.tag == qn("w:r"):
            yield child
        elif child.tag == qn("w:hyperlink"):
            yield from _runs(child)


def _base_format(paragraph: Element) -> Element | None:
    counts: Counter[bytes] = Counter()
    by_format: dict[bytes, Element | None] = {}
    for run in _runs(paragraph):
        properties = run.find(qn("w:rPr"))
        key = _format_key(properties)
        counts[key] += sum(len(text.text or "") for text in run.findall(qn("w:t")))
        by_format.setdefault(key, properties)
    return by_format[counts.most_common(1)[0][0]] if counts else None


def _format_key(properties: Element | None) -> bytes:
    """Return a key that is equal for run properties with the same appearance."""
    if properties is None:
        return b""
    invisible = {qn(f"w:{name}") for name in _INVISIBLE}
    return b"".join(etree.tostring(child, method="c14n") for child in properties if child.tag not in invisible)


def _split_at_tabs(items: Sequence[InlineItem[Element]]) -> Iterator[list[InlineItem[Element]]]:
    """Yield groups of items. A group ends after each tab that is not in a link or a marked run."""
    group: list[InlineItem[Element]] = []
    depth = 0
    for item in items:
        depth += {InlineKind.OPEN: 1, InlineKind.CLOSE: -1}.get(item.kind, 0)
        group.append(item)
        if not depth and item.breaks and item.parts[0].tag == qn("w:tab"):
            yield group
            group = []
    yield group
