"""Word's .docx, read and written by python-docx."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO

import docx
from docx.opc.part import XmlPart
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.oxml.xmlchemy import BaseOxmlElement
from lxml import etree

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions
from mt.text.markup import Segment, Translated, arrange
from mt.text.markup.slots import Built, Item, ItemKind, around, build, trim, writes_nothing

Element = BaseOxmlElement
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PARTS = ("document.main+xml", "header+xml", "footer+xml")
_UNSEEN = ("lang", "noProof", "rtl", "webHidden")  # of a run's properties: no difference that a reader sees


@dataclass(frozen=True)
class _Slot:
    """A text of a paragraph: the items around it, its own, and its segment's number, -1 for none."""

    before: Sequence[Item[Element]]
    items: Sequence[Item[Element]]
    after: Sequence[Item[Element]]
    number: int = -1
    built: Built[Element] | None = None


class WordDocument:
    """Paragraphs of the body, its tables and text boxes, of headers and footers; a tab ends a segment.

    Formatting is placed by alignment, as tags are: what most of a paragraph has is the ground, and runs that look
    different are marks on it. Links keep their address, and pictures, breaks, fields, bookmarks and notes their place
    among the words. Tracked changes and embedded controls stay as they are. The file comes back by its contents; a
    paragraph in which nothing has changed is not touched.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Raises DocumentError for what is no .docx, or would unpack to more than it may."""
        _check_archive(name, content, options)
        try:
            self._document = docx.Document(BytesIO(content))
        except Exception as error:  # of a package that is not whole, python-docx and zipfile raise whatever comes
            raise DocumentError(f"{name} is not a .docx file: {error}") from error
        self.segments: list[Segment] = []
        self._paragraphs: list[tuple[Element, Element | None, list[_Slot]]] = []
        for part in self._document.part.package.iter_parts():
            if isinstance(part, XmlPart) and part.content_type.endswith(_PARTS):
                for paragraph in part.element.iter(qn("w:p")):
                    self._read(paragraph)

    def _read(self, paragraph: Element) -> None:
        ground = _ground(paragraph)
        slots: list[_Slot] = []
        for group in _split_at_tabs(list(_items(paragraph, _look(ground)))):
            begin, end = trim(group)
            middle = group[begin:end]
            if writes_nothing(middle, _as_it_is):
                slots.append(_Slot(group, (), ()))
                continue
            built = build(middle, _as_it_is, collapse=False)
            slots.append(_Slot(group[:begin], middle, group[end:], len(self.segments), built))
            self.segments.append(built.segment)
        if any(slot.built for slot in slots):
            self._paragraphs.append((paragraph, ground, slots))

    def render(self, translations: Sequence[Translated]) -> bytes:
        """The file with a translation for each segment."""
        assert len(translations) == len(self.segments)
        for paragraph, ground, slots in self._paragraphs:
            numbers = [slot.number for slot in slots if slot.built]
            if any(translations[n].text != self.segments[n].text for n in numbers):
                _Writer(paragraph, ground).write(slots, translations)
        out = BytesIO()
        self._document.save(out)
        return out.getvalue()


class _Writer:
    """Fills a paragraph anew: runs of text, and the elements that lie between them."""

    def __init__(self, paragraph: Element, ground: Element | None) -> None:
        self.ground = ground
        self.containers = [paragraph]
        self.looks: list[Element | None] = []
        for child in list(paragraph):
            if child.tag != qn("w:pPr"):
                paragraph.remove(child)

    def write(self, slots: Sequence[_Slot], translations: Sequence[Translated]) -> None:
        for slot in slots:
            self._items(slot.before)
            if slot.built is not None:
                segment, new = slot.built.segment, translations[slot.number]
                if new.text == segment.text:
                    self._items(slot.items)
                else:
                    self._translated(slot.built, new)
            self._items(slot.after)

    def _translated(self, built: Built[Element], new: Translated) -> None:
        for piece in arrange(built.segment, new):
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

    def _items(self, items: Sequence[Item[Element]]) -> None:
        for item in items:
            if item.kind is ItemKind.TEXT:
                self._text(item.text)
            elif item.kind is ItemKind.OPEN:
                self._open(item.parts[0])
            elif item.kind is ItemKind.CLOSE:
                self._close(item.parts[0])
            else:
                self._append(item.parts)

    def _open(self, element: Element) -> None:
        """A link becomes the place of what follows, the properties of a run its look."""
        if element.tag != qn("w:hyperlink"):
            self.looks.append(element)
            return
        link = deepcopy(element)
        for child in list(link):
            link.remove(child)
        self.containers[-1].append(link)
        self.containers.append(link)

    def _close(self, element: Element) -> None:
        (self.containers if element.tag == qn("w:hyperlink") else self.looks).pop()

    def _append(self, elements: Sequence[Element]) -> None:
        """Of what is empty: the properties of runs without text, and links without text, show nothing. What stood in a
        run gets one of its own."""
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
        look = self.looks[-1] if self.looks else self.ground
        if look is not None and len(look):
            run.append(deepcopy(look))
        written = OxmlElement("w:t")
        written.text = _NOT_XML.sub("", text)
        written.set(qn("xml:space"), "preserve")
        run.append(written)
        self.containers[-1].append(run)


def _items(parent: Element, ground: bytes) -> Iterator[Item[Element]]:
    """What a paragraph or a link consists of. Formatting that is not the ground's encloses its text."""
    field: list[Element] = []
    depth = 0
    for child in parent:
        if child.tag == qn("w:pPr"):
            continue
        marks = [each.get(qn("w:fldCharType")) for each in child.iter(qn("w:fldChar"))]
        depth += marks.count("begin") - marks.count("end")
        if depth > 0 or marks:
            field.append(child)
            if depth <= 0:
                yield Item(ItemKind.EMPTY, tuple(field))
                field, depth = [], 0
        elif child.tag == qn("w:hyperlink"):
            key = id(child)
            yield Item(ItemKind.OPEN, (child,), key=key)
            yield from _items(child, ground)
            yield Item(ItemKind.CLOSE, (child,), key=key)
        elif child.tag == qn("w:r"):
            yield from _run(child, ground)
        elif child.tag not in (qn("w:proofErr"), qn("w:lastRenderedPageBreak")):
            yield Item(ItemKind.EMPTY, (child,))
    if field:
        yield Item(ItemKind.EMPTY, tuple(field))


def _run(run: Element, ground: bytes) -> Iterator[Item[Element]]:
    """A run: its texts, and each other element of it. None is moved yet: pictures may stay, and text boxes have
    paragraphs that are still to be read."""
    properties = run.find(qn("w:rPr"))
    marked = _look(properties) != ground
    look: Element = OxmlElement("w:rPr") if properties is None else properties
    for child in run:
        if child.tag == qn("w:rPr") or child.tag == qn("w:lastRenderedPageBreak"):
            continue
        if child.tag == qn("w:t"):
            if marked:
                yield Item(ItemKind.OPEN, (look,), key=id(child))
            for text in around(child.text or ""):
                if text:
                    yield Item(ItemKind.TEXT, (child,), text)
            if marked:
                yield Item(ItemKind.CLOSE, (look,), key=id(child))
        else:
            yield Item(ItemKind.EMPTY, (child,), breaks=child.tag in (qn("w:tab"), qn("w:br"), qn("w:cr")))


def _ground(paragraph: Element) -> Element | None:
    """The run properties that most of a paragraph's text has."""
    counts: Counter[bytes] = Counter()
    found: dict[bytes, Element | None] = {}
    for run in paragraph.iter(qn("w:r")):
        properties = run.find(qn("w:rPr"))
        counts[_look(properties)] += sum(len(text.text or "") for text in run.iter(qn("w:t")))
        found.setdefault(_look(properties), properties)
    return found[counts.most_common(1)[0][0]] if counts else None


def _look(properties: Element | None) -> bytes:
    """What two runs must share to look alike."""
    if properties is None:
        return b""
    unseen = {qn(f"w:{name}") for name in _UNSEEN}
    return b"".join(etree.tostring(child, method="c14n") for child in properties if child.tag not in unseen)


def _split_at_tabs(items: Sequence[Item[Element]]) -> Iterator[list[Item[Element]]]:
    """The groups that lie between tabs which stand in no link and no marked run."""
    group: list[Item[Element]] = []
    depth = 0
    for item in items:
        depth += {ItemKind.OPEN: 1, ItemKind.CLOSE: -1}.get(item.kind, 0)
        group.append(item)
        if not depth and item.breaks and item.parts[0].tag == qn("w:tab"):
            yield group
            group = []
    yield group


def _as_it_is(text: str) -> Iterator[tuple[str, str | None]]:
    yield text, text


def _check_archive(name: str, content: bytes, options: DocumentOptions) -> None:
    """Raises DocumentError before anything is unpacked that should not be; zipfile reads no more than is declared."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            sizes = [info.file_size for info in archive.infolist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DocumentError(f"{name} is not a .docx file: {error}") from error
    if sum(sizes) > options.max_unpacked_bytes:
        raise DocumentError(
            f"{name} would unpack to {sum(sizes)} bytes; accepted: at most {options.max_unpacked_bytes}"
        )
