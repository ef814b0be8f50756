"""Files within a Word document that Word inserts when it opens the document (`w:altChunk`): HTML, MHTML and text.

Programs that make Word documents from HTML, such as html-docx-js, write a document of one chunk. See ISO/IEC 29500-1,
17.17.2.
"""

import posixpath
import quopri
from base64 import encodebytes
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes
from email.message import Message
from pathlib import PurePath

from mt.errors import DocumentError
from mt.text.documents.base import Document, DocumentOptions
from mt.text.documents.markup import open_markup
from mt.text.documents.packages import Package
from mt.text.documents.plain import open_text
from mt.text.documents.runs import parse_part
from mt.text.encoding import accepted_encoding
from mt.text.markup import TranslatedSegment


def chunk_members(package: Package) -> Iterator[str]:
    """Yield the names of the chunks that the parts of a Word document refer to."""
    for member in package.members:
        folder, name = posixpath.split(member)
        if not name.endswith(".rels") or member not in package.roots:
            continue
        for relationship in parse_part(package.name, member, package.read(member)).iter("{*}Relationship"):
            if relationship.get("Type", "").endswith("/aFChunk"):
                path = posixpath.join("/", posixpath.dirname(folder), relationship.get("Target", ""))
                if (target := posixpath.normpath(path).lstrip("/")) in package.members:
                    yield target


def open_chunk(package: Package, member: str, options: DocumentOptions) -> Document:
    """Parse a chunk. Raises: DocumentError if it is neither HTML, MHTML nor text."""
    content, suffix = package.read(member), PurePath(member).suffix.lower()
    if suffix == ".txt":
        return open_text(member, content, options)
    if suffix in (".htm", ".html", ".xhtml") or package.roots.get(member) == "html":
        return open_markup(member + ".html", content, options)
    if suffix in (".mht", ".mhtml"):
        return _MhtmlDocument(member, content, options)
    raise DocumentError(
        f"{package.name} contains {member}, which Word inserts when it opens the document; accepted: such files in "
        "HTML, MHTML or plain text, or the document after Word has saved it"
    )


class _MhtmlDocument(Document):
    """A web archive: a message of MIME with a part that is HTML. Everything else is kept."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content. Raises: DocumentError if it has no HTML."""
        self._content = content
        part = next(
            (part for part in message_from_bytes(content).walk() if part.get_content_type() == "text/html"), None
        )
        if part is None:
            raise DocumentError(f"{name} is not MHTML: it has no part of the type text/html")
        self._part: Message = part
        charset = accepted_encoding(part.get_content_charset() or "") or ""
        html = part.get_payload(decode=True)
        assert isinstance(html, bytes)  # of a part that is no multipart
        self._document = open_markup(name + ".html", html, replace(options, encoding=charset))
        self.segments = self._document.segments
        self.has_text = self._document.has_text

    def structure(self) -> list[Hashable]:
        return self._document.structure()

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        encoding = str(self._part.get("Content-Transfer-Encoding", "")).strip().lower()
        encode = {"quoted-printable": quopri.encodestring, "base64": encodebytes}.get(encoding, bytes)
        before = str(self._part.get_payload()).encode("ascii", "surrogateescape")
        return self._content.replace(before, encode(self._document.render(translations)), 1)
