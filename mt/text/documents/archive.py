"""Zip archives of HTML and XML files: e-books (.epub) and OpenDocument files (.odt, .ods, .odp)."""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mt.text.documents.base import DocumentOptions, SegmentList, TextDocument
from mt.text.documents.markup import declared_encoding, with_languages
from mt.text.documents.packages import Package, with_language
from mt.text.encoding import decode_text
from mt.text.markup import Markup, MarkupOptions, Segment, TranslatedSegment, parse_html
from mt.text.markup.elements import Dialect
from mt.text.markup.parsing import parse_dialect

Parse = Callable[[str, list[Segment]], Markup]

_RAISED_STYLE = re.compile(
    r'<style:style\b[^<>]{0,300}?\sstyle:name="([^"<>]{1,100})"[^<>]{0,300}>\s{0,100}'
    r'<style:text-properties\b[^<>]{0,1000}?\sstyle:text-position="(?:super|[1-9])'
)
_HTML_NAME = re.compile(r".*\.x?html?", re.IGNORECASE)

_HIDDEN = """office:annotation office:automatic-styles office:font-face-decls office:meta office:scripts office:settings
office:styles text:note-citation text:ruby-text text:tracked-changes"""
_FIELDS = """presentation:date-time presentation:footer presentation:header text:author-initials text:author-name
text:bibliography-mark text:chapter text:character-count text:conditional-text text:creation-date
text:creation-time text:creator text:database-display text:database-name text:date text:dde-connection
text:description text:editing-cycles text:editing-duration text:expression text:file-name text:image-count
text:initial-creator text:keywords text:measure text:modification-date text:modification-time text:note-ref
text:object-count text:page-count text:page-number text:page-variable-get text:paragraph-count text:print-date
text:print-time text:printed-by text:sequence text:sheet-name text:subject
text:table-count text:table-formula text:template-name text:time text:title text:user-defined text:user-field-get
text:user-field-input text:variable-get text:variable-input text:variable-set text:word-count"""
_VALUES = """table:formula office:value office:date-value office:time-value office:boolean-value
presentation:placeholder"""
_APART = "text:note draw:caption draw:connector draw:custom-shape draw:ellipse draw:frame draw:g draw:line draw:rect"
_OPEN_DOCUMENT = Dialect(
    xml=True,
    splitting=frozenset({"svg:desc", "svg:title", "text:p", "text:h", "text:tab"}),
    textless=frozenset(_HIDDEN.split()),
    kept=frozenset(_FIELDS.split()),
    notes=frozenset(_APART.split()),
    breaks=frozenset({"text:s", "text:line-break"}),
    spaces=frozenset({"text:s"}),
    attributes=True,
    textless_attributes=frozenset(_VALUES.split()),
)
"""Rules for the content of OpenDocument files: the texts are paragraphs and headings, split at tabs.

Not translated are styles, comments, fields, readings of words (ruby), empty placeholders, and cells with a
formula, number, date or time.
"""

_STYLES = replace(_OPEN_DOCUMENT, textless_attributes=_OPEN_DOCUMENT.textless_attributes | {"presentation:class"})
"""Rules for styles.xml, which contains the headers and footers of pages.

The titles and outlines of master slides are not translated. They are prompts that no slide shows.
"""

_OBJECT = replace(_OPEN_DOCUMENT, textless=_OPEN_DOCUMENT.textless | {"svg:desc"})
"""Rules for an embedded object, such as a chart.

The descriptions of the object are not translated, because they name the cells that the object shows.
"""

_TABLE_OF_CONTENTS = Dialect(xml=True, splitting=frozenset({"text"}), textless=frozenset({"head", "docAuthor"}))


_PACKAGE = Dialect(
    xml=True,
    splitting=frozenset({"dc:description", "dc:title"}),
    textless=frozenset(
        {
            *("dc:contributor", "dc:coverage", "dc:creator", "dc:date", "dc:format", "dc:identifier", "dc:language"),
            *("dc:publisher", "dc:relation", "dc:rights", "dc:source", "dc:subject", "dc:type"),
            *("collection", "guide", "manifest", "meta", "spine", "tours"),
        }
    ),
)
"""Rules for the description of an e-book: its titles and descriptions are translated."""


def _parse_html(options: MarkupOptions, text: str, segments: list[Segment]) -> Markup:
    return parse_html(text, options, segments)


def _parse_xml(dialect: Dialect, text: str, segments: list[Segment]) -> Markup:
    return parse_dialect(text, replace(dialect, raised=frozenset(_RAISED_STYLE.findall(text))), segments)


def _parser(member: str, root: str, package: Package, options: MarkupOptions) -> Parse | None:
    """Return the parser of a member with the root element `root`, or None if the member has no text."""
    name = root.rpartition("}")[2].lower()
    if package.suffix == ".epub":
        if name in ("ncx", "package"):
            dialect = _TABLE_OF_CONTENTS if name == "ncx" else _PACKAGE
            return partial(_parse_xml, replace(dialect, languages=options.languages))
        return partial(_parse_html, options) if name in ("html", "svg") or _HTML_NAME.fullmatch(member) else None
    if name not in ("document-content", "document-styles"):
        return None
    if "/" in member:  # an embedded object has a folder with files of the same names
        return partial(_parse_xml, _OBJECT)
    return partial(_parse_xml, _OPEN_DOCUMENT if name == "document-content" else _STYLES)


class ArchiveDocument:
    """E-book or OpenDocument file. Its HTML or XML files are translated, and all other files are copied."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content.

        Raises: DocumentError if the content is not a zip archive, no file in the archive has text, or a limit is
        exceeded.
        """
        self._package = package = Package(name, content, options)
        self.segments: list[Segment] = SegmentList(name, options)
        self._languages = options.source_language, options.target_language
        self._documents: dict[str, tuple[int, TextDocument]] = {}
        for member in package.members:
            parse = _parser(member, package.roots.get(member, ""), package, with_languages(options))
            if parse is not None:
                self._add(member, package.read(member), parse, options)
        self.decisions: dict[str, Any] = {}
        self.has_text = any(document.has_text for _, document in self._documents.values())
        if not self._documents:
            raise package.error("the archive contains no file with text, or the file is encrypted")

    def _add(self, member: str, content: bytes, parse: Parse, options: DocumentOptions) -> None:
        text, encoding = decode_text(member, content, declared_encoding(content))
        segments = SegmentList(member, options)
        document = TextDocument(segments, encoding, "xmlcharrefreplace")
        markup = parse(text, SegmentList(member, options))
        document.embed(markup)
        document.frame, document.has_text = [member, *markup.tags], markup.has_text
        self._documents[member] = (len(self.segments), document)
        self.segments.extend(document.segments)

    def structure(self) -> list[Hashable]:
        """Return the names of the files in the archive, and the structure of those with text."""
        parts = (part for _, document in self._documents.values() for part in document.structure())
        return [*self._package.members, *parts]

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a file in the archive is damaged.
        """
        assert len(translations) == len(self.segments)
        pairs = zip(self.segments, translations, strict=True)
        changed = any(segment.text != new.text for segment, new in pairs)

        def render_member(member: str) -> bytes | None:
            if member in self._documents:
                begin, document = self._documents[member]
                rendered = document.render(translations[begin : begin + len(document.segments)])
            elif self._package.roots.get(member, "").endswith("}document-meta"):
                rendered = self._package.read(member)
            else:
                return None
            return with_language(rendered, *self._languages) if changed else rendered

        return self._package.rewrite(render_member)
