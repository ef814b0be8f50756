"""Zip archives of XML files, such as .docx, .odt and .epub. A member is a file in an archive.

Which members have text follows from their root elements. The specifications name other ways: content types,
relationships, manifests. Files of many programs contradict them, or refer to members that do not exist.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from io import BytesIO
from lzma import LZMAError
from pathlib import PurePath
from typing import IO
from xml.parsers import expat

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.languages import full_tag, language_and_script
from mt.text.documents.base import Document, DocumentOptions, SegmentList
from mt.text.markup import TranslatedSegment
from mt.text.markup.attributes import direction, same_language
from mt.text.markup.marks import is_changed

MAX_MEMBERS = 20_000  # maximum number of files in an archive
_MAX_TAGS = 4_000_000  # maximum number of tags in the XML of an archive; an element takes about 200 bytes of memory
_BLOCK, _MAX_PROLOG = 4096, 1_000_000  # bytes that are read at a time, and at most, to find a root element
_EAST_ASIAN = frozenset({"Bopo", "Hang", "Hans", "Hant", "Jpan", "Kore"})
_LANGUAGE = re.compile(rb"(<dc:language\b[^<>]*>\s*)([\w-]+)(?=\s*</dc:language>)")
_HTML = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_BEFORE_ROOT = re.compile(rb"\s+|<\?[^>]*>|<!--(?:[^-]|-(?!->))*-->")  # repeated by `_is_html` in linear time
DAMAGES = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)
"""Exceptions that zipfile raises for damaged, encrypted and unsupported archives."""


class Package:
    """A zip archive. `members` are the names of its files.

    `roots` maps each member that is XML or HTML to the name of its root element, as `root_name` returns it. `name` is
    the name of the file in error messages, and `suffix` the suffix of this name.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Check the number of files, the unpacked size and the number of XML tags of the archive.

        The archive is not unpacked to memory. The unpacked size is the sum of the sizes that the archive declares;
        zipfile never unpacks more than the declared size of a file.

        Raises: DocumentError if the content is not a zip archive, two files have the same name, or a limit is exceeded.
        """
        self.name, self.suffix = name, PurePath(name).suffix.lower()
        try:
            self._archive = zipfile.ZipFile(BytesIO(content))
            self.members = self._archive.namelist()
            self._check(options)
            self.roots = self._find_roots()
        except DAMAGES as error:
            raise self.error(f"open it in its program and save it again ({error})") from error

    def error(self, problem: str) -> DocumentError:
        """Return the error that the file does not have the format of its suffix."""
        return DocumentError(f"{self.name} is not a {self.suffix} file: {problem}")

    def read(self, member: str) -> bytes:
        """Return the content of a member. Raises: DocumentError if it cannot be read."""
        try:
            return self._archive.read(member)
        except DAMAGES as error:
            raise DocumentError(f"{self.name}: {member} cannot be read: {error}") from error

    def rewrite(self, render_member: Callable[[str, bytes], bytes]) -> bytes:
        """Return a copy of the archive. `render_member` receives name and content of a member, and returns the new one.

        The order and the compression of the members are preserved, because in some formats the first member,
        `mimetype`, must not be compressed.

        Raises: DocumentError if a member cannot be read.
        """
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as written:
            for info in self._archive.infolist():
                content = render_member(info.filename, self.read(info.filename))
                written.writestr(copy(info), content)  # zipfile changes its argument
        return out.getvalue()

    def _check(self, options: DocumentOptions) -> None:
        sizes = [info.file_size for info in self._archive.infolist()]
        if len({*self.members}) < len(sizes):
            raise self.error("two files in the archive have the same name")
        if len(sizes) > MAX_MEMBERS:
            raise DocumentLimitExceeded(f"{self.name} has {len(sizes)} files; accepted: at most {MAX_MEMBERS}")
        if sum(sizes) > options.max_unpacked_bytes:
            raise DocumentLimitExceeded(
                f"{self.name} would unpack to {sum(sizes)} bytes; accepted: at most {options.max_unpacked_bytes}"
            )

    def _find_roots(self) -> dict[str, str]:
        """Return the value of `roots`. Count the tags of XML in blocks, to save memory."""
        roots: dict[str, str] = {}
        tags = 0
        for member in self.members:
            with self._archive.open(member) as file:
                if name := root_name(file):
                    roots[member] = name
                    file.seek(0)
                    while tags <= _MAX_TAGS and (block := file.read(1 << 20)):
                        tags += block.count(b"<")
        if tags > _MAX_TAGS:
            raise DocumentLimitExceeded(f"{self.name} has too many XML tags; accepted: at most {_MAX_TAGS:,}")
        return roots


class PackageDocument(Document):
    """Document that is an archive. Some of its members are documents, whose segments are those of the archive."""

    def __init__(self, package: Package, options: DocumentOptions) -> None:
        self._package = package
        self.segments = SegmentList(package.name, options)
        self._languages = options.source_language, options.target_language
        self._documents: dict[str, tuple[int, Document]] = {}  # by member, with the number of segments before it

    def _add(self, member: str, document: Document) -> None:
        self._documents[member] = len(self.segments), document
        self.segments.extend(document.segments)
        self.has_text = self.has_text or bool(document.segments) or document.has_text

    def structure(self) -> list[Hashable]:
        """Return the names of the files in the archive, and the structure of those with text."""
        parts = ((name, part) for name, (_, document) in self._documents.items() for part in document.structure())
        return [*self._package.members, *parts]

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation.

        Raises: DocumentError if a file in the archive is damaged.
        """
        changed = is_changed(self.segments, translations)

        def render_member(member: str, content: bytes) -> bytes:
            if member in self._documents:
                begin, document = self._documents[member]
                new = translations[begin : begin + len(document.segments)]
                content = document.render(new) if is_changed(document.segments, new) else content
            return self._with_languages(member, content) if changed else content

        return self._package.rewrite(render_member)

    def _with_languages(self, member: str, content: bytes) -> bytes:
        """Return the content of a member with the target language in place of the source language, if it names it."""
        raise NotImplementedError


def with_language(content: bytes, source: str, target: str) -> bytes:
    """Return the description of a document with the target language in place of the source language, if it names it.

    `source` may be empty: then any language is the source language.
    """

    def written(match: re.Match[bytes]) -> bytes:
        code = match[2].decode()
        return match[1] + full_tag(target).encode() if target and same_language(code, source or code) else match[0]

    return _LANGUAGE.sub(written, content)


def script_kind(language: str) -> str:
    """Return the attribute in which Word names a language: `val` for a western script, `eastAsia` or `bidi`."""
    if direction(language) == "rtl":
        return "bidi"
    return "eastAsia" if language_and_script(language)[1] in _EAST_ASIAN else "val"


def root_name(file: IO[bytes]) -> str:
    """Return the name of the root element of a file in XML: `{namespace}name`, or `name` without a namespace.

    Return "html" for HTML, and "" for another file. Only the beginning of the file is read.
    """
    names: list[str] = []
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = lambda name, _: names.append(name)
    block, size = file.read(_BLOCK), 0
    if _is_html(block):
        return "html"
    try:
        while block and not names and size < _MAX_PROLOG:
            parser.Parse(block)
            size += len(block)
            block = file.read(_BLOCK)
    except (expat.ExpatError, LookupError, ValueError):  # the errors of unknown encodings are of other types
        pass
    name = names[0] if names else ""
    return "{" + name if "}" in name else name


def _is_html(beginning: bytes) -> bool:
    """Return whether a file with this beginning is HTML."""
    place = 0
    while skipped := _BEFORE_ROOT.match(beginning, place):
        place = skipped.end()
    return _HTML.match(beginning, place) is not None
