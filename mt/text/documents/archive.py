"""Zip archives of HTML and XML files: e-books (.epub) and OpenDocument files (.odt, .ods, .odp)."""

import re
from dataclasses import replace

from mt.languages import regional_tag
from mt.text.documents.base import DocumentOptions, SegmentList
from mt.text.documents.markup import declared_encoding, markup_document, with_languages
from mt.text.documents.packages import Package, PackageDocument, script_kind, with_language
from mt.text.encoding import decode_text
from mt.text.markup import MarkupOptions, parse_html
from mt.text.markup.attributes import same_language
from mt.text.markup.elements import Dialect
from mt.text.markup.parsing import parse_dialect
from mt.text.word_tables import read_words

_RAISED_STYLE = re.compile(
    r'<style:style\b[^<>]{0,300}?\sstyle:name="([^"<>]{1,100})"[^<>]{0,300}>\s{0,100}'
    r'<style:text-properties\b[^<>]{0,1000}?\sstyle:text-position="(?:super|[1-9])'
)
_STYLE_LANGUAGE = re.compile(rb'fo:language="([\w-]+)" fo:country="[\w-]+"')
_HTML_NAME = re.compile(r".*\.x?html?", re.IGNORECASE)

_NAMES = read_words("documents/names.toml")
_OPEN_DOCUMENT = Dialect(
    xml=True,
    splitting=frozenset({"svg:desc", "svg:title", "text:p", "text:h", "text:tab"}),
    textless=_NAMES["hidden"],
    kept=_NAMES["fields"],
    notes=_NAMES["apart"],
    breaks=frozenset({"text:s", "text:line-break"}),
    attributes=True,
    textless_attributes=_NAMES["values"],
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
_PACKAGE = Dialect(xml=True, splitting=frozenset({"dc:description", "dc:title"}), textless=_NAMES["book_values"])
"""Rules for the description of an e-book: its titles and descriptions are translated."""


def _rules(member: str, root: str, package: Package, options: MarkupOptions) -> MarkupOptions | Dialect | None:
    """Return the rules for a member with the root element `root`: options if it is HTML, or None if it has no text."""
    name = root.rpartition("}")[2].lower()
    if package.suffix == ".epub":
        if name in ("ncx", "package"):
            return replace(_TABLE_OF_CONTENTS if name == "ncx" else _PACKAGE, languages=options.languages)
        return options if name in ("html", "svg") or _HTML_NAME.fullmatch(member) else None
    if name not in ("document-content", "document-styles"):
        return None
    dialect = _OPEN_DOCUMENT if name == "document-content" else _STYLES
    if "/" in member:  # an embedded object has a folder with files of the same names
        dialect = _OBJECT
    return replace(dialect, languages=options.languages, fragment=True)


class ArchiveDocument(PackageDocument):
    """E-book or OpenDocument file. Its HTML or XML files are translated, and all other files are copied."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content.

        Raises: DocumentError if the content is not a zip archive, no file in the archive has text, or a limit is
        exceeded.
        """
        package = Package(name, content, options)
        super().__init__(package, options)
        for member in package.members:
            rules = _rules(member, package.roots.get(member, ""), package, with_languages(options))
            if rules is not None:
                source = package.read(member)
                text, encoding = decode_text(member, source, declared_encoding(source))
                segments = SegmentList(member, options)
                if isinstance(rules, Dialect):
                    raised = frozenset(_RAISED_STYLE.findall(text))
                    markup = parse_dialect(text, replace(rules, raised=raised), segments)
                else:
                    markup = parse_html(text, rules, segments)
                self._add(member, markup_document(markup, member, encoding, options))
        if not self._documents:
            raise package.error("the archive contains no file with text, or the file is encrypted")

    def _with_languages(self, member: str, content: bytes) -> bytes:
        root = self._package.roots.get(member, "").rpartition("}")[2]
        if root in ("document-content", "document-styles"):
            return _with_style_languages(content, *self._languages)
        named = member in self._documents or root == "document-meta"
        return with_language(content, *self._languages) if named else content


def _with_style_languages(content: bytes, source: str, target: str) -> bytes:
    """Return an OpenDocument file whose formats name the target language where they name the source language.

    Only the attributes of western scripts are changed.
    """
    kinds = {script_kind(source), script_kind(target)}
    if not source or not target or kinds != {"val"}:
        return content
    language, _, region = regional_tag(target).partition("-")
    written = f'fo:language="{language}" fo:country="{region or "none"}"'.encode()
    return _STYLE_LANGUAGE.sub(lambda style: written if same_language(style[1].decode(), source) else style[0], content)
