"""Word documents (.docx), presentations (.pptx) and workbooks (.xlsx): zip archives of XML files (ISO/IEC 29500).

The texts in the XML files are replaced, and everything else is copied. The libraries python-docx, python-pptx and
openpyxl are not used: they follow relationships, which many files lack or which lead nowhere, know one of the two sets
of namespaces (Transitional and Strict), and do not read the labels of charts and diagrams. openpyxl drops formats
within a cell, pictures and charts.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain

from lxml import etree

from mt.languages import regional_tag
from mt.text.documents.base import Document, DocumentOptions, SegmentList
from mt.text.documents.chunks import chunk_members, open_chunk
from mt.text.documents.packages import Package, PackageDocument, script_kind, with_language
from mt.text.documents.run_items import XML_SPACE, Element, RunSchema
from mt.text.documents.runs import RunParagraphs, parse_part
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.attributes import same_language
from mt.text.markup.inline import VALUES, split_whitespace
from mt.text.markup.marks import Mark, Part, render_parts, text_of
from mt.text.markup.rendering import NOT_XML
from mt.text.word_tables import read_tables

_NUMBERS = re.compile(r"(\d+)")
_ROOT, _HEADER_CODE, _FILE_NAME = map(re.compile, read_tables("documents/patterns.toml")["office"].values())
_HEADER_VALUE = re.compile(r"&[&PNDTFAGZ]")  # such as the number of the page, and "&" itself
_NAMES = read_tables("documents/office.toml")
_TEXT_ROOTS, _NAMING_ROOTS = _NAMES["text_roots"].split(), _NAMES["naming_roots"].split()
_ATTRIBUTES = {element: names.split() for element, names in _NAMES["attributes"].items()}
_FORMULAS = ("{*}f", "{*}formula", "{*}formula1", "{*}formula2", "{*}definedName")
_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_PROPERTIES = "/metadata/core-properties}coreProperties"
_HEADERS = tuple(f"{{*}}{pages}{kind}" for pages in ("first", "odd", "even") for kind in ("Header", "Footer"))
_AREAS = {".docx": "wordprocessingml", ".pptx": "presentationml", ".xlsx": "spreadsheetml"}
_CHART_EX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"


def _kind(root: str) -> str:
    """Return the area of the namespace of a root element, the last part of the namespace, and the name of the element.

    Return "" for a namespace that is not one of Office.
    """
    match = _ROOT.fullmatch(root)
    return "/".join(part for part in match.groups() if part and part != "purl") if match else ""


def _namespace(area: str, strict: bool) -> str:
    """Return a namespace in braces, such as that of `drawingml/main`, from the Transitional or the Strict set."""
    if strict:
        return f"{{http://purl.oclc.org/ooxml/{area}}}"
    return f"{{http://schemas.openxmlformats.org/{area.replace('/', '/2006/')}}}"


def _named(namespace: str, names: str) -> frozenset[str]:
    return frozenset(namespace + name for name in names.split())


@lru_cache
def _word_schema(strict: bool) -> RunSchema:
    """Return the element names of paragraphs in Word documents."""
    word = _namespace("wordprocessingml/main", strict)
    return RunSchema(
        paragraphs=_named(word, "p"),
        run=f"{word}r",
        properties=f"{word}rPr",
        text=f"{word}t",
        characters={f"{word}noBreakHyphen": "\u2011"},
        wrappers=_named(word, "bdo customXml dir hyperlink ins moveTo sdt smartTag"),
        content=f"{word}sdtContent",
        transparent=_named(word, "ruby rubyBase"),
        field_mark=f"{word}fldChar",
        field_type=f"{word}fldCharType",
        instruction=f"{word}instrText",
        instruction_attribute=f"{word}instr",
        fields=_named(word, "fldSimple"),
        first=_named(word, "customXmlPr fldData pPr sdtEndPr sdtPr smartTagPr"),
        dropped=_named(word, "lastRenderedPageBreak proofErr rt rubyPr softHyphen"),
        breaks=_named(word, "tab ptab br cr"),
        tabs=_named(word, "tab ptab"),
        invisible=_named(word, "lang noProof rtl webHidden"),
    )


@lru_cache
def _shape_schema(strict: bool) -> RunSchema:
    """Return the element names of paragraphs in slides, notes, tables, text boxes, diagrams and titles of charts."""
    drawing = _namespace("drawingml/main", strict)
    return RunSchema(
        paragraphs=_named(drawing, "p"),
        run=f"{drawing}r",
        properties=f"{drawing}rPr",
        text=f"{drawing}t",
        link=f"{drawing}hlinkClick",
        fields=_named(drawing, "fld"),
        first=_named(drawing, "pPr"),
        last=_named(drawing, "endParaRPr"),
        breaks=_named(drawing, "br"),
        invisible=_named("", "altLang bmk dirty err lang noProof smtClean smtId"),
        preserve_space=False,
    )


@lru_cache
def _cell_schema(strict: bool) -> RunSchema:
    """Return the element names of texts of cells with several formats.

    A workbook stores such a text in its table of all texts (element `si`), or in the cell (element `is`).
    """
    sheet = _namespace("spreadsheetml/main", strict)
    return RunSchema(
        paragraphs=_named(sheet, "is si"),
        run=f"{sheet}r",
        properties=f"{sheet}rPr",
        text=f"{sheet}t",
        dropped=_named(sheet, "rPh phoneticPr"),
        splits_lines=True,
    )


class OfficeDocument(PackageDocument):
    """A .docx, .pptx or .xlsx file.

    The segments of a Word document are the paragraphs of body, tables, text boxes, notes, headers and footers, split at
    tabs. Those of a presentation are the paragraphs of slides, notes, tables and text boxes, and those of a workbook
    the lines of cells, text boxes, headers and footers. Alternative texts, hints and watermarks are segments, too. The
    texts of diagrams and charts follow, and files that Word inserts (`chunks`). Of layouts and master slides, only text
    that slides show is translated. Formulas, numbers, names of sheets and comments are kept, and so are the column
    names of tables, and cells with a text that a formula, a list of choices or a filter of the workbook names.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if the content has another format, or exceeds a limit."""
        package = Package(name, content, options)
        super().__init__(package, options)
        kinds = {member: _kind(root) for member, root in package.roots.items()}
        members = [member for member, kind in kinds.items() if kind in _TEXT_ROOTS]
        read = {member for member, kind in kinds.items() if kind in _NAMING_ROOTS}.union(members)
        if not any(kinds[member].startswith(_AREAS[package.suffix]) for member in members):
            raise package.error("the archive contains no file with text")
        roots = {member: parse_part(name, member, package.read(member)) for member in read}
        kept = {
            text.casefold()
            for member, root in roots.items()
            if kinds[member] in _NAMING_ROOTS
            for text in _named_texts(root)
        }
        members.sort(key=lambda member: (_TEXT_ROOTS.index(kinds[member]), _natural_order(member)))
        self._styles = [member for member, kind in kinds.items() if kind == "wordprocessingml/main/styles"]
        for member in members:
            self._add(member, _Member(name, roots[member], options, kept))
        for member in chunk_members(package) if package.suffix == ".docx" else ():
            self._add(member, open_chunk(package, member, options))

    def _with_languages(self, member: str, content: bytes) -> bytes:
        if self._package.roots.get(member, "").endswith(_PROPERTIES):
            return with_language(content, *self._languages)
        if member in self._styles:
            root = parse_part(self._package.name, member, content)
            return _written(root) if _write_languages(root, *self._languages) else content
        return content


class _Member(Document):
    """An XML file of the archive, which is a document."""

    def __init__(self, name: str, root: Element, options: DocumentOptions, kept: set[str]) -> None:
        self._root = root
        self.segments = SegmentList(name, options)
        self._languages = options.source_language, options.target_language
        strict = any("purl.oclc.org" in namespace for namespace in root.nsmap.values())
        self._values = [
            _Value(element, attribute, self.segments)
            for element, attribute in _plain_texts(root, strict)
            if ((element.get(attribute) if attribute else element.text) or "").casefold() not in kept
        ]
        self._schemas = (_word_schema(strict), _shape_schema(strict), _cell_schema(strict))
        self._paragraphs = [
            RunParagraphs(name, shown, schema, self.segments, options.source_language, kept)
            for schema in self._schemas
            for shown in _shown_elements(root)
        ]
        names = [schema.text for schema in self._schemas]
        texts = (element.text or "" for shown in _shown_elements(root) for element in shown.iter(*names))
        self.has_text = any(any(map(str.isalpha, text)) for text in texts)

    def structure(self) -> list[Hashable]:
        """Return the numbers of the elements, except those that are written anew with each text."""
        counts = Counter(element.tag for element in self._root.iter(etree.Element))
        for schema in self._schemas:
            for properties in self._root.iter(schema.properties):
                counts.subtract(element.tag for element in properties.iter(etree.Element))
            for name in (schema.run, schema.text, *schema.dropped, *schema.characters, *schema.transparent):
                counts.pop(name, None)
        return [*sorted(pair for pair in counts.items() if pair[1])]

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file. Its XML tree is changed."""
        for value in self._values:
            value.write(translations)
        for paragraphs in self._paragraphs:
            paragraphs.write(translations)
        _write_languages(self._root, *self._languages)
        return _written(self._root)


class _Value:
    """A text without formats: that of an element or, if `attribute` is not empty, of its attribute.

    Each line that contains a letter is a segment. Codes for formats in headers of worksheets divide segments.
    """

    def __init__(self, element: Element, attribute: str, segments: list[Segment]) -> None:
        self._element, self._attribute = element, attribute
        self._text = (element.get(attribute) if attribute else element.text) or ""
        self._parts: list[Part] = []
        header = element.tag.endswith(("Header", "Footer"))
        for line in self._text.splitlines(keepends=True):
            for piece in _HEADER_CODE.split(line) if header else (line,):
                before, body, after = split_whitespace(piece)
                values = list(_HEADER_VALUE.finditer(body)) if header else []
                letters = any(map(str.isalpha, _HEADER_VALUE.sub("", body) if header else body))
                if not letters or piece[:1] == "&" or body in VALUES:
                    self._parts.append(piece)
                else:
                    self._parts += [before, partial(text_of, len(segments)), after]
                    segments.append(Segment(body, tuple(Mark(*value.span(), kept=True) for value in values)))

    def write(self, translations: Sequence[TranslatedSegment]) -> None:
        """Write the text into the XML tree if it differs from that of the source."""
        text = NOT_XML.sub("", render_parts(self._parts, translations))
        if text == self._text:
            return
        if self._attribute:
            self._element.set(self._attribute, text)
            return
        self._element.text = text
        if text != text.strip() and self._element.tag.endswith("}t"):
            self._element.set(XML_SPACE, "preserve")


def _written(root: Element) -> bytes:
    content: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return content


def _shown_elements(root: Element) -> Iterator[Element]:
    """Yield the elements whose text a reader sees: the root, or the shapes of a layout that are no placeholders."""
    if not root.tag.endswith(("}sldLayout", "}sldMaster")):
        yield root
        return
    for shape in root.iter("{*}sp", "{*}graphicFrame"):
        if next(shape.iter("{*}ph"), None) is None:
            yield shape


def _plain_texts(root: Element, strict: bool) -> Iterator[tuple[Element, str]]:
    """Yield texts that have no formats, as pairs of an element and the name of its attribute, or "" for its content.

    These are the texts of cells, the labels of charts, the headers and footers of worksheets, and attributes.
    """
    schema, chart = _cell_schema(strict), _namespace("drawingml/chart", strict)
    cells = (text for cell in root.iter(*schema.paragraphs) for text in cell.findall(schema.text))
    labels = (value for cache in root.iter(f"{chart}strCache") for value in cache.iter(f"{chart}v"))
    dimensions = root.iter(f"{_CHART_EX}strDim", f"{_CHART_EX}txData")
    points = (value for texts in dimensions for value in texts.iter(f"{_CHART_EX}pt", f"{_CHART_EX}v"))
    headers = root.iter(*_HEADERS) if root.tag.endswith("}worksheet") else ()
    yield from ((element, "") for element in chain(cells, labels, points, headers))
    for element in root.iter(*(f"{{*}}{name}" for name in _ATTRIBUTES)):
        for name in element.attrib:
            known = name.rpartition("}")[2] in _ATTRIBUTES[element.tag.rpartition("}")[2]]
            if known and not _FILE_NAME.fullmatch(element.get(name)):
                yield element, name


def _write_languages(root: Element, source: str, target: str) -> bool:
    """Write the target language where formats of text name the source language. Return whether there was such a place.

    A format of Word names a language for each kind of script.
    """
    if not source or not target:
        return False
    changed = False
    written, kinds = regional_tag(target), (script_kind(source), script_kind(target))
    for element in root.iter("{*}lang"):
        namespace = element.tag.rpartition("}")[0] + "}"
        if same_language(element.get(namespace + kinds[0], ""), source):
            element.set(namespace + kinds[1], written)
            changed = True
    for element in root.iter("{*}rPr", "{*}endParaRPr", "{*}defRPr"):
        if same_language(element.get("lang", ""), source):
            element.set("lang", written)
            changed = True
    return changed


def _named_texts(root: Element) -> Iterator[str]:
    """Yield the texts of cells that an XML tree names: columns of tables, texts in formulas, choices and filters."""
    for element in root.iter("{*}tableColumn", "{*}cacheField", "{*}filter", "{*}customFilter"):
        if name := element.get("name" if element.get("val") is None else "val"):
            yield name
    for formula in root.iter(*_FORMULAS):
        for literal in filter(None, _LITERAL.findall(formula.text or "")):
            text = literal.replace('""', '"')
            yield text
            if formula.tag.endswith("formula1"):  # a list of choices
                yield from map(str.strip, text.split(","))


def _natural_order(member: str) -> list[tuple[bool, int, str]]:
    """Return a sort key for file names that compares numbers by value: slide2.xml comes before slide10.xml."""
    return [(part.isdecimal(), len(part) if part.isdecimal() else 0, part) for part in _NUMBERS.split(member)]
