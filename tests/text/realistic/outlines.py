"""The outline of a file: its structure without its texts, as another library than the parser of the product reads it.

An outline is a list with an entry for each place, in order: the place, and `TEXT` for a text with letters, otherwise
the value. A translation has the outline of its source.
"""

import csv
import io
import json
import re
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import markdown
import openpyxl
import polib
import pptx
import pysubs2
import yaml
from fluent.syntax import FluentParser, FluentSerializer, ast
from odf import opendocument

TEXT = "TEXT"
Outline = list[tuple[Any, ...]]
_TEXTS = ("descr", "title", "promptTitle", "prompt", "errorTitle", "error")  # attributes of Office with text
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_RUNS = {
    *("r", "t", "rPr", "span", "s", "tab", "br", "lang", "proofErr", "lastRenderedPageBreak", "hyperlink"),
    *("line-break", "a", "soft-page-break"),
}
"""Elements within paragraphs whose number may change: runs, and what is split or merged with them."""

_TRANSLATED_ATTRIBUTES = {"alt", "title", "placeholder", "aria-label", "content", "value", "label", "lang", "xml:lang"}
_INLINE = {"a", "b", "i", "em", "strong", "span", "sup", "sub", "br", "code", "kbd", "font", "u", "s", "img"}


def mark_text(value: str) -> str:
    """Return `TEXT` for a text with letters, otherwise the text without the white space around it."""
    return TEXT if any(map(str.isalpha, value)) else value.strip()


def decoded(content: bytes) -> str:
    """Decode a text by its byte order mark, or as UTF-8 or Latin-1."""
    codec = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(codec)
    except UnicodeDecodeError:
        return content.decode("latin-1")


def text_outline(content: bytes) -> Outline:
    lines = re.split(r"\r\n|\r|\n", decoded(content))
    return [(re.match(r"\s*", line)[0], mark_text(line)) for line in lines]  # type: ignore[index]


def markdown_outline(content: bytes) -> Outline:
    """Outline of the page that the package Markdown makes of a file."""
    text = decoded(content).replace("\r\n", "\n")
    return html_outline(markdown.markdown(text, extensions=["extra", "sane_lists"]).encode())


def subtitle_outline(content: bytes) -> Outline:
    text = decoded(content)
    events = pysubs2.SSAFile.from_string(text, "vtt" if text.startswith("WEBVTT") else "srt")
    return [(event.start, event.end, mark_text(event.plaintext)) for event in events]


def table_outline(content: bytes) -> Outline:
    text = decoded(content)
    separator = max(",;\t|", key=(text.splitlines() or [""])[0].count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [(row, column, mark_text(cell)) for row, cells in enumerate(rows) for column, cell in enumerate(cells)]


def _values(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, (*place, key))
    elif isinstance(value, list):
        yield (*place, len(value))
        for number, inner in enumerate(value):
            yield from _values(inner, (*place, number))
    else:
        yield (*place, mark_text(value) if isinstance(value, str) else value)


def json_outline(content: bytes) -> Outline:
    return list(_values(json.loads(decoded(content))))


_AnyTag: Any = type("_AnyTag", (yaml.SafeLoader,), {})  # reads values with unknown tags
_AnyTag.add_multi_constructor("!", lambda loader, tag, node: [tag, loader.construct_scalar(node)])


def yaml_outline(content: bytes) -> Outline:
    comments = re.findall(r"(?m)^\s*#.*$", decoded(content))
    return [*_values(list(yaml.load_all(decoded(content), _AnyTag))), ("comments", len(comments))]


def properties_outline(content: bytes) -> Outline:
    """Outline by the rules of java.util.Properties."""
    lines: list[str] = []
    continued = False
    for line in re.split(r"\r\n|\r|\n", decoded(content)):
        if not continued and line.lstrip(" \t\f")[:1] in ("#", "!", ""):
            continue
        lines.append(lines.pop() + line.lstrip() if continued else line.lstrip())
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        lines[-1] = lines[-1][:-1] if continued else lines[-1]
    outline: Outline = []
    for line in lines:
        key = re.match(r"(?:\\.|[^\\\s=:])*", line)
        assert key is not None
        value = re.sub(r"^\s*[=:]?\s*", "", line[key.end() :])
        value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), value)
        outline.append((key[0], mark_text(re.sub(r"\\(.)", r"\1", value))))
    return outline


def strings_outline(content: bytes) -> Outline:
    """Outline by the rules of property lists: pairs of strings or words, and comments."""
    token = re.compile(r'\s*(?:/\*.*?\*/|//[^\r\n]*|"((?:[^"\\]|\\.)*)"|([\w.]+)|([=;]))', re.DOTALL)
    tokens, place, text = [], 0, decoded(content)
    while text[place:].strip():
        match = token.match(text, place)
        if match is None:
            raise ValueError(f"unexpected {text[place : place + 20]!r}")
        place = match.end()
        if match.lastindex:
            tokens.append(match[match.lastindex])
    if any((sign != "=;"[number % 4 == 3]) for number, sign in enumerate(tokens) if number % 2):
        raise ValueError("a pair is damaged")
    return [(key, mark_text(value)) for key, value in zip(tokens[::4], tokens[2::4], strict=True)]


def fluent_outline(content: bytes) -> Outline:
    """Outline of the entries, selectors and placeables."""
    outline: Outline = []

    def pattern(place: tuple[Any, ...], value: ast.Pattern | None) -> None:
        letters, placeables = "", []
        for element in value.elements if value else ():
            if isinstance(element, ast.TextElement):
                letters += element.value
            elif isinstance(element.expression, ast.SelectExpression):
                outline.append((*place, "select", type(element.expression.selector).__name__))
                for variant in element.expression.variants:
                    key = getattr(variant.key, "name", None) or getattr(variant.key, "value", None)
                    pattern((*place, key, variant.default), variant.value)
            elif not isinstance(element.expression, ast.StringLiteral):
                entry = ast.Message(ast.Identifier("a"), ast.Pattern([element]))
                placeables.append(FluentSerializer().serialize_entry(entry))
        outline.append((*place, mark_text(letters), *sorted(placeables)))

    for entry in FluentParser().parse(decoded(content).replace("\r\n", "\n")).body:
        if isinstance(entry, (ast.Message, ast.Term)):
            pattern((entry.id.name,), entry.value)
            for attribute in entry.attributes:
                pattern((entry.id.name, attribute.id.name), attribute.value)
        else:
            outline.append((type(entry).__name__, getattr(entry, "content", "")))
    return outline


def gettext_outline(content: bytes) -> Outline:
    """Outline of the entries, after a check by msgfmt."""
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(content)
        file.flush()
        checked = subprocess.run(["msgfmt", "--check-format", "-o", "/dev/null", file.name], capture_output=True)
    if checked.returncode:
        raise ValueError(checked.stderr.decode())
    outline: Outline = []
    for entry in polib.pofile(decoded(content)):
        flags = sorted(set(entry.flags) - {"fuzzy"})
        outline.append((entry.msgctxt, entry.msgid, entry.msgid_plural, entry.comment, entry.tcomment))
        outline.append((*entry.occurrences, *flags, entry.obsolete))
    return outline


class _HtmlOutline(HTMLParser):
    """Block tags in order with their texts, and the number of inline tags of each kind."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.outline: Outline = []
        self.inline: Counter[str] = Counter()
        self.text = ""

    def _flush(self) -> None:
        if self.text.strip():
            self.outline.append((mark_text(self.text),))
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = sorted(
            (name, mark_text(value or "") if name in _TRANSLATED_ATTRIBUTES else value) for name, value in attrs
        )
        if tag in _INLINE:
            self.inline[f"{tag} {values}"] += 1
        else:
            self._flush()
            self.outline.append((tag, *values))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self._flush()
            self.outline.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.outline.append(("comment", data))


def html_outline(content: bytes) -> Outline:
    text = decoded(content)
    if 'charset="iso-8859-1"' in text or 'encoding="iso-8859-1"' in text:
        text = content.decode("latin-1")
    parser = _HtmlOutline()
    parser.feed(text)
    parser.close()
    parser._flush()
    return [*parser.outline, *sorted(parser.inline.items())]


def xhtml_outline(content: bytes) -> Outline:
    _root(content)
    return html_outline(content)


def _root(content: bytes) -> ElementTree.Element:
    """Parse XML with expat; entities of a document type are removed."""
    content = re.sub(rb"&(?!amp;|lt;|gt;|quot;|apos;|#)[\w.]+;", b"", content)
    return ElementTree.fromstring(content, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True)))


def _elements(root: ElementTree.Element, place: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield the elements with their attributes, and whether an element contains a text of its own."""
    tag = root.tag if isinstance(root.tag, str) else "comment"
    own = "".join([root.text or "", *(child.tail or "" for child in root)])
    place = f"{place}/{tag.rpartition('}')[2]}"
    attributes = ((name, "" if name in ("lang", _LANG) else value) for name, value in root.attrib.items())
    yield (place, *sorted(attributes), mark_text(own) if tag != "comment" else own)
    for child in root:
        yield from _elements(child, place)


def xml_outline(content: bytes) -> Outline:
    return list(_elements(_root(content)))


def xliff_outline(content: bytes) -> Outline:
    """Outline without targets and states, and the number of units without a target."""
    root = _root(content)
    empty = 0
    for parent in list(root.iter()):
        parent.attrib.pop("state", None)
        names = {child.tag.rpartition("}")[2]: child for child in parent if isinstance(child.tag, str)}
        if "source" in names:
            parent.tail = parent.tail if parent.tail and parent.tail.strip() else ""
            target = names.get("target")
            source_text = "".join(names["source"].itertext())
            empty += target is None or bool("".join(target.itertext()).strip()) != bool(source_text.strip())
            if target is not None:
                parent.remove(target)
    assert empty >= 0
    return list(_elements(root))


def tmx_outline(content: bytes) -> Outline:
    """Outline without variants in German."""
    root = _root(content)
    for unit in root.iter("tu"):
        for variant in unit.findall("tuv"):
            if (variant.get(_LANG) or variant.get("lang") or "").startswith("de"):
                unit.remove(variant)
    return list(_elements(root))


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def archive_outline(content: bytes) -> Outline:
    """Outline of all XML members of an archive: elements outside of paragraphs, and numbers of those within."""
    outline: Outline = []
    for name, member in sorted(_members(content).items()):
        if not name.endswith((".xml", ".rels", ".xhtml", ".html", ".ncx", ".opf")):
            outline.append((name, member))
            continue
        if name.endswith(("html",)):
            outline += [(name, *entry) for entry in xhtml_outline(member)]
            continue
        inline: Counter[str] = Counter()
        for element in _root(member).iter():
            tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"
            if tag in _RUNS:
                continue
            if tag in ("p", "h", "si", "is"):
                outline.append((name, tag, mark_text("".join(element.itertext()))))
            attributes = (
                (name, "" if name in ("lang", _LANG, *_TEXTS) else value) for name, value in element.attrib.items()
            )
            inline[f"{tag} {sorted(attributes)}"] += 1
        outline += [(name, *entry) for entry in sorted(inline.items())]
    return outline


def sheet_outline(content: bytes) -> Outline:
    """Outline of the cells of a workbook, as openpyxl reads them, and of the archive."""
    outline: Outline = []
    for sheet in openpyxl.load_workbook(io.BytesIO(content)).worksheets:
        outline.append(
            (sheet.title, sheet.dimensions, *sorted(map(str, sheet.merged_cells.ranges)), len(sheet._charts))
        )
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.value is not None):
            value = mark_text(cell.value) if cell.data_type == "s" else str(cell.value)
            link, comment = cell.hyperlink and cell.hyperlink.target, cell.comment and cell.comment.text
            outline.append((cell.coordinate, value, cell.number_format, cell.font.b, link, comment))
    return outline + archive_outline(content)


def slide_outline(content: bytes) -> Outline:
    """Outline of the shapes of a presentation, as python-pptx reads them, and of the archive."""
    outline: Outline = []
    for number, slide in enumerate(pptx.Presentation(io.BytesIO(content)).slides):
        for shape in slide.shapes:
            frame = shape.text_frame if shape.has_text_frame else None
            levels = [(p.level, mark_text(p.text)) for p in frame.paragraphs] if frame else []
            outline.append((number, shape.shape_type, shape.left, shape.top, *levels))
    return outline + archive_outline(content)


def open_document_outline(content: bytes) -> Outline:
    """Outline of the archive, after odfpy has read it."""
    document = opendocument.load(io.BytesIO(content))
    return [(document.mimetype,), *archive_outline(content)]


OUTLINES: dict[str, Callable[[bytes], Outline]] = {
    "android": xml_outline,
    "arb": json_outline,
    "csv": table_outline,
    "docx": archive_outline,
    "epub": archive_outline,
    "ftl": fluent_outline,
    "html": html_outline,
    "json": json_outline,
    "md": markdown_outline,
    "odp": open_document_outline,
    "ods": open_document_outline,
    "odt": open_document_outline,
    "po": gettext_outline,
    "pptx": slide_outline,
    "properties": properties_outline,
    "resx": xml_outline,
    "srt": subtitle_outline,
    "strings": strings_outline,
    "tmx": tmx_outline,
    "tsv": table_outline,
    "txt": text_outline,
    "vtt": subtitle_outline,
    "xhtml": xhtml_outline,
    "xliff": xliff_outline,
    "xlsx": sheet_outline,
    "xml": xml_outline,
    "yaml": yaml_outline,
}
