"""Paragraphs that consist of formatted runs, as in Word documents, presentations and worksheets.

A run is a piece of text with one format.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lxml import etree

from mt.errors import DocumentError, DocumentLimitExceeded
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

Element = Any  # of lxml, which has no types
_MAX_PROPERTIES, _MAX_VALUES = (
    200,
    10_000,
)  # maximum number of elements and characters in the format of a run; Word has 40 properties
_MAX_FIELD = 40  # maximum number of characters of a field that is read as a part of its sentence
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(frozen=True)
class RunSchema:
    """Names of the XML elements of paragraphs in one file format.

    - A `paragraph` contains `run` and `link` elements. A run contains `properties`, which are its format, and `text`
      elements.
    - Elements in `first` and `last` stay at the beginning and the end of a paragraph. Elements in `dropped` are left
      out of translated paragraphs. Elements in `breaks` separate words.
    - The text of a paragraph is split at elements in `tabs` and, if `splits_lines` is true, at line breaks.
    - The attribute `field_type` of a `field_mark` tells whether a field begins or ends there. Elements in `fields` are
      fields. All fields are kept.
    - `invisible` contains the names of children and attributes of `properties` that do not change how a run looks.
    - If `preserve_space` is true, new text elements get the attribute `xml:space="preserve"`.
    """

    paragraph: str
    run: str
    properties: str
    text: str
    link: str = ""
    field_mark: str = ""
    field_type: str = ""
    fields: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()
    tabs: frozenset[str] = frozenset()
    invisible: frozenset[str] = frozenset()
    splits_lines: bool = False
    preserve_space: bool = True


@dataclass(frozen=True)
class _Slot:
    """A part of a paragraph. If it has a segment, `segment_index` is the index of the segment."""

    inline: InlineText[Element]
    segment_index: int


def parse_part(name: str, member: str, content: bytes) -> Element:
    """Parse the XML file `member` of the archive `name`. Raises: DocumentError if it is not XML."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"{name}: {member} is not XML: {error}") from error


class RunParagraphs:
    """The paragraphs of an XML tree. `schema` names the elements, and the texts are appended to `segments`.

    The base format of a paragraph is the format of most of its text. Runs in other formats are marks. Marks, links,
    pictures, breaks, fields, bookmarks and notes are placed by alignment. Tracked changes and embedded controls are
    kept. A paragraph is unchanged if all its translations equal their segments. Paragraphs whose text is in `kept` are
    not translated.
    """

    def __init__(
        self, name: str, root: Element, schema: RunSchema, segments: list[Segment], kept: Container[str] = ()
    ) -> None:
        """Read the XML tree `root`. `name` is the name of the file in error messages.

        Raises: DocumentLimitExceeded if the format of a run is too large.
        """
        self._schema, self._segments = schema, segments
        self._paragraphs: list[tuple[Element, Element | None, list[_Slot]]] = []
        _check_formats(name, root, schema)
        fields = _field_marks(root, schema)
        for paragraph in root.iter(schema.paragraph):
            if not kept or "".join(text.text or "" for text in paragraph.iter(schema.text)) not in kept:
                self._read(paragraph, fields)

    def _read(self, paragraph: Element, fields: "_Fields") -> None:
        reader = _Reader(self._schema, fields)
        base = reader.base_format(paragraph)
        slots: list[_Slot] = []
        for group in reader.groups(list(reader.items(paragraph, reader.format_key(base)))):
            inline = read_inline(group, decode_nothing, collapse=False)
            slots.append(_Slot(inline, len(self._segments)))
            if inline.built:
                self._segments.append(inline.built.segment)
        if any(slot.inline.built for slot in slots):
            self._paragraphs.append((paragraph, base, slots))

    def write(self, translations: Sequence[TranslatedSegment]) -> bool:
        """Replace the texts in the XML tree by their translations. Return whether the tree has changed.

        `translations` contains a translation for each segment in `segments`.
        """
        changed = False
        for paragraph, base, slots in self._paragraphs:
            numbers = [slot.segment_index for slot in slots if slot.inline.built]
            if any(translations[n].text != self._segments[n].text for n in numbers):
                _Writer(self._schema, paragraph, base).write(slots, translations)
                changed = True
        return changed


class _Writer:
    """Writer of the new content of a paragraph: runs of text, and the elements between the runs."""

    def __init__(self, schema: RunSchema, paragraph: Element, base: Element | None) -> None:
        self.schema, self.base = schema, base
        self.containers = [paragraph]
        self.formats: list[Element | None] = []
        self.last = [child for child in paragraph if child.tag in schema.last]
        for child in list(paragraph):
            if child.tag not in schema.first:
                paragraph.remove(child)

    def write(self, slots: Sequence[_Slot], translations: Sequence[TranslatedSegment]) -> None:
        for slot in slots:
            inline, built = slot.inline, slot.inline.built
            self._items(inline.before)
            if built is not None and (new := translations[slot.segment_index]).text != built.segment.text:
                self._translated(built, new)
            else:
                self._items(inline.items)
            self._items(inline.after)
        self.containers[0].extend(self.last)

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
        """Begin a mark: a link becomes the parent of the following runs, run properties become their format."""
        if element.tag != self.schema.link:
            self.formats.append(element)
            return
        self.containers.append(etree.SubElement(self.containers[-1], element.tag, element.attrib, element.nsmap))

    def _close(self, element: Element) -> None:
        (self.containers if element.tag == self.schema.link else self.formats).pop()

    def _append(self, elements: Sequence[Element]) -> None:
        """Append elements without text to the paragraph. Run properties and links are left out.

        An element that was in a run is put into a new run with the same format.
        """
        for element in elements:
            if element.tag in (self.schema.properties, self.schema.link):
                continue
            place, run = self.containers[-1], element.getparent()
            if run is not None and run.tag == self.schema.run:
                place = etree.SubElement(place, self.schema.run)
                place.extend(deepcopy(run.findall(self.schema.properties)))
            place.append(element)

    def _text(self, text: str) -> None:
        run = etree.SubElement(self.containers[-1], self.schema.run)
        run_format = self.formats[-1] if self.formats else self.base
        if run_format is not None and (len(run_format) or run_format.attrib):
            run.append(deepcopy(run_format))
        written = etree.SubElement(run, self.schema.text)
        written.text = NOT_XML.sub("", text)
        if self.schema.preserve_space:
            written.set(_SPACE, "preserve")


_Fields = dict[Element, int]
"""Map from an element to the number of fields that begin in it minus the number of fields that end in it."""


def _field_marks(root: Element, schema: RunSchema) -> _Fields:
    """Return the `_Fields` of an XML tree.

    Fields that begin or end in a paragraph are not counted for the elements around the paragraph, such as a text box.
    """
    marks: _Fields = {}
    if not schema.field_mark or next(root.iter(schema.field_mark), None) is None:
        return marks
    for _, element in etree.iterwalk(root, events=("end",)):
        if element.tag == schema.field_mark:
            marks[element] = {"begin": 1, "end": -1}.get(element.get(schema.field_type) or "", 0)
        if element in marks and element.tag != schema.paragraph and (parent := element.getparent()) is not None:
            marks[parent] = marks.get(parent, 0) + marks[element]
    return marks


def _check_formats(name: str, root: Element, schema: RunSchema) -> None:
    """Check that each run format is small enough to be copied to each text of its run.

    Raises: DocumentLimitExceeded if a format is too large. `name` is the name of the file in the message.
    """
    for properties in root.iter(schema.properties):
        size = sum(1 for _ in islice(properties.iter(), _MAX_PROPERTIES + 1))
        if size > _MAX_PROPERTIES or sum(len(v) for child in properties.iter() for v in child.values()) > _MAX_VALUES:
            raise DocumentLimitExceeded(
                f"{name} has a text format that is too large; accepted: at most {_MAX_PROPERTIES} properties with "
                f"{_MAX_VALUES:,} characters"
            )


@dataclass(frozen=True)
class _Reader:
    """Reader of the inline items of paragraphs."""

    schema: RunSchema
    fields: _Fields

    def items(self, parent: Element, base_key: str) -> Iterator[InlineItem[Element]]:
        """Yield the inline items of a paragraph or link.

        OPEN and CLOSE items enclose each link, and each text whose `format_key` differs from `base_key`.
        """
        schema = self.schema
        field: list[Element] = []
        depth = 0
        for child in parent:
            if child.tag in schema.first or child.tag in schema.last or child.tag in schema.dropped:
                continue
            depth += self.fields.get(child, 0)
            if depth > 0 or child in self.fields:
                field.append(child)
                if depth <= 0:
                    yield self._field(field)
                    field, depth = [], 0
            elif child.tag == schema.link:
                key = id(child)
                yield InlineItem(InlineKind.OPEN, (child,), key=key)
                yield from self.items(child, base_key)
                yield InlineItem(InlineKind.CLOSE, (child,), key=key)
            elif child.tag == schema.run:
                yield from self._run(child, base_key)
            elif child.tag in schema.fields:
                yield self._field([child])
            else:
                yield InlineItem(InlineKind.EMPTY, (child,), breaks=child.tag in schema.breaks)
        if field:
            yield self._field(field)

    def _field(self, elements: Sequence[Element]) -> InlineItem[Element]:
        """Return the item of a field. Its value, such as the number of a page, is part of the sentence around it."""
        value = "".join(text.text or "" for element in elements for text in element.iter(self.schema.text)).strip()
        kind = InlineKind.KEPT if 0 < len(value) <= _MAX_FIELD else InlineKind.EMPTY
        return InlineItem(kind, tuple(elements), value if kind is InlineKind.KEPT else "")

    def _run(self, run: Element, base_key: str) -> Iterator[InlineItem[Element]]:
        """Yield the inline items of a run. Each text yields TEXT items, and each other element an EMPTY item.

        If the `format_key` of the run differs from `base_key`, OPEN and CLOSE items enclose each text.
        """
        schema = self.schema
        properties = run.find(schema.properties)
        marked = self.format_key(properties) != base_key
        run_format = run.makeelement(schema.properties) if properties is None else properties
        for child in run:
            if child.tag == schema.properties or child.tag in schema.dropped:
                continue
            if child.tag == schema.text:
                if marked:
                    yield InlineItem(InlineKind.OPEN, (run_format,), key=id(child))
                for text in self._texts(child.text or ""):
                    yield InlineItem(InlineKind.TEXT, (child,), text)
                if marked:
                    yield InlineItem(InlineKind.CLOSE, (run_format,), key=id(child))
            else:
                yield InlineItem(InlineKind.EMPTY, (child,), breaks=child.tag in schema.breaks)

    def _texts(self, text: str) -> Iterator[str]:
        """Yield the leading white space, the rest, and the trailing white space of a text, if not empty.

        If `splits_lines` of the schema is true, each line is split separately.
        """
        lines = text.splitlines(keepends=True) if self.schema.splits_lines else [text]
        for line in lines:
            yield from filter(None, split_whitespace(line))

    def _runs(self, parent: Element) -> Iterator[Element]:
        """Yield the runs of a paragraph or link, but not the runs in text boxes."""
        for child in parent:
            if child.tag == self.schema.run:
                yield child
            elif child.tag == self.schema.link:
                yield from self._runs(child)

    def base_format(self, paragraph: Element) -> Element | None:
        """Return the run properties of most of the text of a paragraph. Return None if that text has no properties."""
        counts: Counter[str] = Counter()
        by_format: dict[str, Element | None] = {}
        for run in self._runs(paragraph):
            properties = run.find(self.schema.properties)
            key = self.format_key(properties)
            counts[key] += sum(len(text.text or "") for text in run.findall(self.schema.text))
            by_format.setdefault(key, properties)
        return by_format[counts.most_common(1)[0][0]] if counts else None

    def format_key(self, properties: Element | None) -> str:
        """Return a string that is the same for all run properties with the same appearance."""
        if properties is None:
            return ""
        invisible = self.schema.invisible
        attributes = sorted((name, value) for name, value in properties.attrib.items() if name not in invisible)
        children = [
            [(inner.tag, sorted(inner.items()), inner.text) for inner in child.iter(etree.Element)]
            for child in properties
            if child.tag not in invisible
        ]
        return repr((attributes, children)) if attributes or children else ""

    def groups(self, items: Sequence[InlineItem[Element]]) -> Iterator[list[InlineItem[Element]]]:
        """Yield the items of a paragraph in groups. Each group becomes a segment.

        A group ends after a tab or, if the schema has `splits_lines`, after a line break. Tabs and line breaks in a
        link or in a marked run do not end a group.
        """
        group: list[InlineItem[Element]] = []
        depth = 0
        for item in items:
            depth += {InlineKind.OPEN: 1, InlineKind.CLOSE: -1}.get(item.kind, 0)
            group.append(item)
            tab = item.breaks and item.parts[0].tag in self.schema.tabs
            if not depth and (tab or (self.schema.splits_lines and "\n" in item.text)):
                yield group
                group = []
        yield group
