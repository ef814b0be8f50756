"""Paragraphs that consist of formatted runs, as in Word documents, presentations and worksheets.

A run is a piece of text with one format.
"""

from collections.abc import Container, Iterator, Sequence
from copy import deepcopy
from itertools import islice

from lxml import etree

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.clauses import divides_lines
from mt.text.documents.run_items import (
    Element,
    FieldCode,
    Item,
    Part,
    RunFormat,
    RunReader,
    RunSchema,
    Wrapper,
    is_prompt,
    new_run,
    run_properties,
    wrapper_content,
)
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.inline import BuiltSegment, InlineKind, InlineText, decode_nothing, read_inline

_MAX_PROPERTIES = 200  # maximum number of elements in the format of a run; Word has 40 properties
_MAX_VALUES = 10_000  # maximum number of characters in it

_Slot = tuple[InlineText[Part], int]  # a part of a paragraph, and the index of its segment if it has one


def parse_part(name: str, member: str, content: bytes) -> Element:
    """Parse the XML file `member` of the archive `name`. Raises: DocumentError if it is not XML."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"{name}: {member} is not XML: {error}") from error


class RunParagraphs:
    """The paragraphs of an XML tree. `schema` names the elements, and the texts are appended to `segments`.

    The base format of a paragraph is the format of most of its text. Runs in other formats are marks, and so are
    wrappers, such as links, content controls and tracked insertions. Marks, pictures, breaks, fields, bookmarks, notes
    and deleted text are placed by alignment. The prompt of an empty content control is a paragraph of its own, and
    stands for a word of the sentence around it. A paragraph is unchanged if all its translations equal their segments.
    Paragraphs whose text, without regard to case, is in `kept` are not translated.
    """

    def __init__(
        self, name: str, root: Element, schema: RunSchema, segments: list[Segment], language: str, kept: Container[str]
    ) -> None:
        """Read the XML tree `root`, in a source language. `name` is the name of the file in error messages.

        Raises: DocumentLimitExceeded if the format of a run is too large.
        """
        self._schema, self._segments, self._language = schema, segments, language
        self._paragraphs: list[tuple[Element, Element | None, list[_Slot]]] = []
        _check_formats(name, root, schema)
        reader = RunReader(schema)
        for paragraph in root.iter(*schema.paragraphs, *filter(None, [schema.content])):
            if paragraph.tag == schema.content and not is_prompt(schema, paragraph.getparent()):
                continue
            if not kept or "".join(text.text or "" for text in paragraph.iter(schema.text)).casefold() not in kept:
                self._read(paragraph, reader)

    def _read(self, paragraph: Element, reader: RunReader) -> None:
        base, items = reader.read(paragraph)
        slots: list[_Slot] = []
        for group in _groups(items, self._schema, self._language):
            inline = read_inline(group, decode_nothing, collapse=False)
            slots.append((inline, len(self._segments)))
            if inline.built:
                self._segments.append(inline.built.segment)
        if any(inline.built for inline, _ in slots):
            self._paragraphs.append((paragraph, base, slots))

    def write(self, translations: Sequence[TranslatedSegment]) -> None:
        """Replace the texts in the XML tree by their translations: one for each segment in `segments`."""
        for paragraph, base, slots in self._paragraphs:
            numbers = [number for inline, number in slots if inline.built]
            if any(translations[n].text != self._segments[n].text for n in numbers):
                _Writer(self._schema, paragraph, base).write(slots, translations)


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
        for inline, number in slots:
            self._items(inline.before)
            if (built := inline.built) and translations[number].text != built.segment.text:
                self._translated(built, translations[number])
            else:
                self._items(inline.items)
            self._items(inline.after)
        self.containers[0].extend(self.last)

    def _translated(self, built: BuiltSegment[Part], new: TranslatedSegment) -> None:
        for piece in built.pieces(new):
            if piece.opens >= 0:
                mark = built.segment.marks[piece.opens]
                if mark.empty or mark.kept:
                    self._append(built.openings[piece.opens])
                else:
                    self._open(built.openings[piece.opens][0])
            elif piece.closes >= 0:
                self._close(built.openings[piece.closes][0], built.closings[piece.closes])
            else:
                self._text(piece.text)

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.kind is InlineKind.TEXT:
                self._text(item.text)
            elif item.kind is InlineKind.OPEN:
                self._open(item.parts[0])
            elif item.kind is InlineKind.CLOSE:
                self._close(item.parts[0], item.parts[0])
            else:
                self._append(item.parts)

    def _open(self, part: Part) -> None:
        """Begin a mark: a wrapper becomes the parent of the following runs, run properties become their format."""
        if isinstance(part, RunFormat):
            self.formats.append(part.properties)
        elif isinstance(part, FieldCode):
            self._append(part.elements)
        else:
            wrapper = part.element
            content = wrapper_content(self.schema, wrapper)
            copy = self._copy(wrapper, self.containers[-1])
            self.containers.append(copy if content is wrapper else self._copy(content, copy))

    def _copy(self, element: Element, parent: Element) -> Element:
        """Append a copy of a wrapper, or of the element in it that contains its runs, without the runs."""
        copy = etree.SubElement(parent, element.tag, element.attrib, element.nsmap)
        copy.extend([child for child in element if child.tag in self.schema.first])
        return copy

    def _close(self, opening: Part, closing: Part | None) -> None:
        if isinstance(opening, RunFormat):
            self.formats.pop()
        elif isinstance(opening, Wrapper):
            self.containers.pop()
        elif closing is not None:
            self._append(closing.elements)

    def _append(self, elements: Sequence[Part]) -> None:
        """Append elements without text to the paragraph. Tags of wrappers and formats are left out.

        An element that was in a run is put into a new run with the same format.
        """
        for element in elements:
            if isinstance(element, FieldCode):
                self._append(element.elements)
            elif not isinstance(element, Wrapper | RunFormat):
                place, run = self.containers[-1], element.getparent()
                if run is not None and run.tag == self.schema.run:
                    place = etree.SubElement(place, self.schema.run)
                    if (properties := run_properties(self.schema, run)) is not None:
                        place.append(deepcopy(properties))
                place.append(element)

    def _text(self, text: str) -> None:
        run_format = self.formats[-1] if self.formats else self.base
        self.containers[-1].append(new_run(self.schema, run_format, text))


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


def _groups(items: Sequence[Item], schema: RunSchema, language: str) -> Iterator[list[Item]]:
    """Yield the items of a paragraph in groups, which become segments, but never divide a link or a marked run.

    A group ends after a tab, and after a line break that divides texts or, if the schema has `splits_lines`, any one.
    """
    group: list[Item] = []
    depth = 0
    for number, item in enumerate(items):
        depth += {InlineKind.OPEN: 1, InlineKind.CLOSE: -1}.get(item.kind, 0)
        group.append(item)
        parts = item.parts if item.breaks and schema.tabs else ()
        tab = any(next(part.iter(*schema.tabs), None) is not None for part in parts)
        if item.breaks and not (depth or tab):
            before, after = group[-20:], items[number + 1 : number + 4]
            tab = divides_lines("".join(one.text for one in before), "".join(one.text for one in after), language)
        if not depth and (tab or (schema.splits_lines and "\n" in item.text)):
            yield group
            group = []
    yield group
