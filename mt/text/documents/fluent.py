"""Fluent files (.ftl), parsed by fluent.syntax. The texts are replaced in the source, so that the layout is kept."""

import re
from collections.abc import Iterator
from functools import partial

from fluent.syntax import FluentParser, ast

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import DocumentOptions, TextDocument, check_count, read_text
from mt.text.markup import Segment
from mt.text.markup.inline import InlineItem, InlineKind, decode_nothing

_BREAK = re.compile(r"[ \t]*(\r?\n[ \t]*)+")
_ENTRIES = (ast.Message, ast.Term)
_NOT_FIRST = frozenset("[*.")  # characters that have a meaning at the beginning of a line
_MAX_INDENT = 100  # characters that are searched for the beginning of a line


def open_fluent(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse Fluent. The values and attributes of messages, and the values of terms, are segments.

    In a select expression, each variant is a segment, and the rest is kept. Other placeables, such as `{ $name }`, are
    kept within their segment. Blank lines separate segments; other line breaks of a translated text become spaces.
    Attributes of terms, which no user sees, attributes for keys, such as `.accesskey`, and lines that are not Fluent
    are kept.

    Raises: DocumentError if the content is not empty, and no line of it is Fluent.
    """
    text, document = read_text(name, content, options)
    check_count(name, sum(map(text.count, "\n{")), "lines and braces")
    try:
        entries = FluentParser().parse(text).body
        document.frame += [entry.id.name if isinstance(entry, _ENTRIES) else type(entry).__name__ for entry in entries]
        writer = _PatternReader(document)
        for pattern in _patterns(entries):
            writer.add(pattern)
        writer.keep_until(len(text))
    except RecursionError as error:
        raise DocumentLimitExceeded(f"{name} is nested too deeply; accepted: fewer nested placeables") from error
    if text.strip() and all(isinstance(entry, ast.Junk) for entry in entries):
        raise DocumentError(f"{name} is not Fluent: it contains no message; accepted: lines such as hello = Hello")
    return document


def _patterns(entries: list[ast.EntryType]) -> Iterator[ast.Pattern]:
    """Yield the patterns to translate, in order: the values of messages and terms, and the attributes of messages.

    A pattern is a node of the syntax tree that contains a text.
    """
    for entry in entries:
        if isinstance(entry, _ENTRIES) and entry.value is not None:
            yield entry.value
        if isinstance(entry, ast.Message):
            yield from (attribute.value for attribute in entry.attributes if not attribute.id.name.endswith("key"))


class _PatternReader:
    """Reader that adds the patterns of a Fluent file to a document, and keeps the source between them."""

    def __init__(self, document: TextDocument) -> None:
        self._text, self._document = document.source, document
        self._items: list[InlineItem[str]] = []  # of the segment that is being read
        self._begin = 0  # offset of this segment, which extends to what is done of the document

    def keep_until(self, place: int) -> None:
        """Add the current segment to the document, and keep the source after it, up to offset `place`."""
        self._flush()
        self._document.keep_until(place)
        self._begin = place

    def add(self, pattern: ast.Pattern) -> None:
        for element in pattern.elements:
            assert element.span is not None
            begin, end = element.span.start, element.span.end
            if not self._items:
                self.keep_until(begin)
            if isinstance(element, ast.TextElement):
                self._add_text(begin, end)
            elif isinstance(element.expression, ast.SelectExpression):
                self.keep_until(begin)
                for variant in element.expression.variants:
                    self.add(variant.value)
                self.keep_until(end)
            elif isinstance(element.expression, ast.StringLiteral) and not any(map(str.isalnum, self._text[begin:end])):
                self._append(InlineKind.EMPTY, begin, end)
            else:
                self._append(InlineKind.KEPT, begin, end)
        self._flush()

    def _add_text(self, begin: int, end: int) -> None:
        for match in _BREAK.finditer(self._text, begin, end):
            self._append(InlineKind.TEXT, begin, match.start())
            begin = match.end()
            if match[0].count("\n") > 1:
                self.keep_until(begin)
            else:
                self._append(InlineKind.TEXT, match.start(), begin)
        self._append(InlineKind.TEXT, begin, end)

    def _append(self, kind: InlineKind, begin: int, end: int) -> None:
        """Append the source from offset `begin` to offset `end` to the current segment, as an item of the given kind.

        The white space between the previous item and `begin` is appended first, as a TEXT item.
        """
        before = self._text[self._document.done : begin]
        for item_kind, source in ((InlineKind.TEXT, before), (kind, self._text[begin:end])):
            if source:
                self._items.append(InlineItem(item_kind, (source,), "" if item_kind is InlineKind.EMPTY else source))
        self._document.done = max(self._document.done, end)

    def _flush(self) -> None:
        """Add the current segment to the document, and begin a new one."""
        self._document.add_items(self._items, decode_nothing, _escape, partial(self._escape_first, self._begin))
        self._items = []
        self._begin = self._document.done

    def _escape_first(self, place: int, text: str, source: str) -> str:
        """Escape the first character of a translation that begins a line. `source` begins at `place` or after it."""
        begin = self._text.index(source, place)
        begins_line = not self._text[max(0, begin - _MAX_INDENT) : begin].rpartition("\n")[2].strip()
        return f'{{ "{text[0]}" }}{text[1:]}' if begins_line and text[:1] in _NOT_FIRST else text


def _escape(text: str, segment: Segment, forms: dict[str, str]) -> str:
    return re.sub("[{}]", lambda brace: f'{{ "{brace[0]}" }}', text)
