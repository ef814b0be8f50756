"""Zip archives of HTML and XML files: e-books (.epub) and OpenDocument files (.odt, .ods, .odp).

A member is a file in an archive.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import PurePath

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import DocumentOptions, SegmentList, TextDocument
from mt.text.documents.markup import declared_encoding
from mt.text.encoding import decode_text
from mt.text.markup import Markup, MarkupOptions, Segment, TranslatedSegment, parse_html
from mt.text.markup.elements import Dialect
from mt.text.markup.parsing import parse_dialect

Parse = Callable[[str, list[Segment]], Markup]

MAX_MEMBERS = 20_000  # maximum number of files in an archive
_MAX_TAGS = 4_000_000  # maximum number of tags in the XML of an archive; an element takes about 200 bytes of memory
DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""Exceptions that zipfile raises for damaged, encrypted and unsupported archives."""

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
_OPEN_DOCUMENT = Dialect(
    xml=True,
    splitting=frozenset({"text:p", "text:h", "text:tab"}),
    textless=frozenset(_HIDDEN.split()),
    kept=frozenset(_FIELDS.split()),
    notes=frozenset({"text:note"}),
    breaks=frozenset({"text:s", "text:line-break"}),
    spaces=frozenset({"text:s"}),
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


def _parse_html(options: MarkupOptions, text: str, segments: list[Segment]) -> Markup:
    return parse_html(text, options, segments)


def _parse_xml(dialect: Dialect, text: str, segments: list[Segment]) -> Markup:
    return parse_dialect(text, dialect, segments)


def _members(suffix: str, options: DocumentOptions) -> Sequence[tuple[re.Pattern[str], Parse]]:
    """Return pairs (pattern, parser) for the file format `suffix`.

    The parser reads the members whose names match the pattern. Members that match no pattern have no text.
    """
    if suffix == ".epub":
        return (
            (re.compile(r".*\.x?html?", re.IGNORECASE), partial(_parse_html, options.markup)),
            (re.compile(r".*\.ncx", re.IGNORECASE), partial(_parse_xml, _TABLE_OF_CONTENTS)),
        )
    # Objects have folders with files of the same names.
    return (
        (re.compile(r"content\.xml"), partial(_parse_xml, _OPEN_DOCUMENT)),
        (re.compile(r"styles\.xml"), partial(_parse_xml, _STYLES)),
        (re.compile(r"Object [^/]*/(content|styles)\.xml"), partial(_parse_xml, _OBJECT)),
    )


class ArchiveDocument:
    """E-book or OpenDocument file. Its HTML or XML files are translated, and all other files are copied."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content.

        Raises: DocumentError if the content is not a zip archive, no file in the archive has text, or a limit is
        exceeded.
        """
        suffix = PurePath(name).suffix.lower()
        check_archive(name, suffix, content, options)
        self.segments: list[Segment] = SegmentList(name, options)
        self._name, self._content = name, content
        self._documents: dict[str, tuple[int, TextDocument]] = {}
        patterns = _members(suffix, options)
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                for member in archive.namelist():
                    parse = next((parse for pattern, parse in patterns if pattern.fullmatch(member)), None)
                    if parse is not None and member not in self._documents:
                        self._add(member, archive.read(member), parse, options)
        except DAMAGES as error:
            raise DocumentError(f"{name} is not a {suffix} file: {error}") from error
        if not self._documents:
            raise DocumentError(f"{name} is not a {suffix} file: the archive contains no file with text")

    def _add(self, member: str, content: bytes, parse: Parse, options: DocumentOptions) -> None:
        text, encoding = decode_text(member, content, declared_encoding(content))
        segments = SegmentList(member, options)
        document = TextDocument(segments, encoding, "xmlcharrefreplace")
        document.embed(parse(text, segments.empty_copy()))
        self._documents[member] = (len(self.segments), document)
        self.segments.extend(document.segments)

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a file in the archive is damaged.
        """
        assert len(translations) == len(self.segments)

        def render_member(member: str) -> bytes | None:
            if member not in self._documents:
                return None
            begin, document = self._documents[member]
            return document.render(translations[begin : begin + len(document.segments)])

        return rewrite_archive(self._name, self._content, render_member)


def rewrite_archive(name: str, content: bytes, render_member: Callable[[str], bytes | None]) -> bytes:
    """Return a copy of the archive `content` in which some members are replaced.

    `render_member` receives the name of a member, and returns its new content, or None to copy the member. The order
    and the compression of the members are preserved, because in some formats the first member, `mimetype`, must not be
    compressed. `name` is the name of the archive in error messages.

    Raises: DocumentError if a member cannot be read.
    """
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as written:
        for info in archive.infolist():
            try:
                member = archive.read(info)
            except DAMAGES as error:
                raise DocumentError(f"{name}: {info.filename} cannot be read: {error}") from error
            rendered = render_member(info.filename)
            written.writestr(info, member if rendered is None else rendered)
    return out.getvalue()


def check_archive(name: str, suffix: str, content: bytes, options: DocumentOptions) -> None:
    """Check the number of files, the unpacked size and the number of XML tags of a zip archive.

    The archive is not unpacked to memory. The unpacked size is the sum of the sizes that the archive declares; zipfile
    never unpacks more than the declared size of a file. `name` and `suffix` are used in error messages.

    Raises: DocumentError if the content is not a zip archive, two files have the same name, or a limit is exceeded.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            sizes = [info.file_size for info in archive.infolist()]
            names = {*archive.namelist()}
    except DAMAGES as error:
        raise DocumentError(f"{name} is not a {suffix} file: {error}") from error
    if len(names) < len(sizes):
        raise DocumentError(f"{name} is not a {suffix} file: two files in the archive have the same name")
    if len(sizes) > MAX_MEMBERS:
        raise DocumentLimitExceeded(f"{name} has {len(sizes)} files; accepted: at most {MAX_MEMBERS}")
    if sum(sizes) > options.max_unpacked_bytes:
        raise DocumentLimitExceeded(
            f"{name} would unpack to {sum(sizes)} bytes; accepted: at most {options.max_unpacked_bytes}"
        )
    if _count_tags(content) > _MAX_TAGS:
        raise DocumentLimitExceeded(f"{name} has too many XML tags; accepted: at most {_MAX_TAGS:,}")


def _count_tags(content: bytes) -> int:
    """Return the number of tags in the XML files of an archive. The files are read in blocks to save memory.

    If the archive is damaged, return the number of tags before the damage.
    """
    count = 0
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for info in archive.infolist():
                if info.filename.endswith((".xml", ".rels")):
                    with archive.open(info) as member:
                        while block := member.read(1 << 20):
                            count += block.count(b"<")
    except Exception:  # a damaged archive: the reader of the format raises an error later
        return count
    return count
