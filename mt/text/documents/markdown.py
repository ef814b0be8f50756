"""Markdown: CommonMark with tables and strikethrough, as parsed by markdown-it.

Code, URLs, link references and formulas are kept, and so is the front matter, except its titles and descriptions. A
block whose tokens do not match the source is left untranslated.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, TextDocument, read_text
from mt.text.documents.markdown_inline import Apart, InlineReader, add_title
from mt.text.documents.markdown_syntax import hide_syntax
from mt.text.documents.markup import with_languages
from mt.text.documents.yaml import add_values
from mt.text.markup import Segment, parse_html
from mt.text.markup.inline import InlineItem
from mt.text.markup.marks import Part, render_parts
from mt.text.markup.tokens import decode_pieces, references
from mt.text.word_tables import read_tables, read_words

_LINE = re.compile(r"\r\n|\r|\n")
_FRONT_MATTER, _ESCAPE, _BLOCK_START = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["markdown"].values()
)
_SPECIAL = "\\`*_[]<~"


def open_markdown(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse Markdown. Each heading, paragraph, list item and table cell is a segment.

    A line that begins with `: ` is a segment, too: in some dialects, it defines a term. So are the titles of links, the
    alternative texts of pictures, and attributes of HTML. A translation is written in one line.
    """
    text, document = read_text(name, content, options)
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    hidden = re.sub(r"[^\r\n]", " ", text[:begin]) + hide_syntax(text[begin:])
    lines = _Lines(hidden)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    if front and front[1] == "---":
        with suppress(DocumentError):
            add_values(document, name, *front.span(2), read_words("documents/names.toml")["front_texts"])
    document.has_text = any(map(str.isalpha, hidden))
    html_options = replace(with_languages(options), fragment=True)
    definitions: dict[str, Any] = {}
    tokens = parser.parse(hidden, definitions)
    document.frame += ((token.type, token.tag) for token in tokens)
    for token, first, last in _in_order(tokens, definitions):
        begin, end = (lines.starts[min(number, len(lines.starts) - 1)] for number in (first, last))
        if token.type == "inline":
            places = lines.find(token.content, first, document.done)
            reader = InlineReader(parser, token, text, places, options.source_language, html_options)
            items = reader.items() if places else None
            if items is None:
                continue
            document.keep_until(places[0])
            for begin, end in pairwise([0, *reader.splits, len(items)]):
                _add(document, items[begin:end], reader, begin)
            document.done = places[-1]
        elif begin >= document.done and token.type == "html_block":
            document.keep_until(begin)
            document.embed(parse_html(text[begin:end], html_options))
            document.done = end
        elif begin >= document.done and token.type == "definition":
            source = text[begin:end].rstrip()
            place = begin + len(source) - len(token.content) - 1
            if text.startswith(token.content, place):
                document.keep_until(place)
                document.done = begin + len(source) - 1
                add_title(token.content, text[place - 1] + source[-1], document, token.content)
    document.keep_until(len(text))
    return document


def _in_order(tokens: Sequence[Token], definitions: Mapping[str, Any]) -> list[tuple[Token, int, int]]:
    """Return (token, first line, line after it) of each block with text, and of the title of each definition of a link.

    `definitions` is what markdown-it notes about the definitions. Their tokens are of the type `definition`.
    """
    titles = [
        Token("definition", "", 0, map=link["map"], content=link["title"])
        for link in definitions.get("references", {}).values()
        if link["title"]
    ]
    blocks = [token for token in tokens if token.type in ("inline", "html_block")]
    placed = ((token, token.map[0], token.map[1]) for token in (*blocks, *titles) if token.map)
    return sorted(placed, key=lambda block: block[1])


class _Lines:
    """Lines of a Markdown text. `starts` contains the offset of each line, and the length of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]

    def find(self, content: str, line: int, search_begin: int) -> list[int]:
        """Return the offset in the Markdown text of each character of a block, and of the end of the block.

        `content` is the text of the block as markdown-it reports it, and `line` is the number of its first line. The
        text before offset `search_begin` is not searched. Return an empty list if `content` is not found.
        """
        places: list[int] = []
        for number, part in enumerate(content.split("\n"), start=line):
            if number + 1 >= len(self.starts):
                return []
            whole = self.text[self.starts[number] : self.starts[number + 1]]
            raw = part.replace("|", "\\|") if part not in whole else part
            stripped = whole.rstrip()
            at = self.text.find(raw, max(search_begin, self.starts[number]), self.starts[number + 1])
            if number > line or (stripped.endswith(raw) and self.starts[number] >= search_begin):
                offset = stripped.rfind(raw.rstrip()) if raw else 0  # a line may end with the spaces of a hard break
                at = self.starts[number] + offset if offset >= 0 else -1
            if at < 0 or (number > line and raw != part):
                return []
            if places:
                places.append(places[-1] + 1)  # the line break extends to the content of the next line
            for character in part:
                places.append(at)
                at += 2 if character == "|" and raw != part else 1
        if not places:
            return []
        escaped = content.endswith("|") and self.text[places[-1]] == "\\"
        return [*places, places[-1] + (2 if escaped else 1)]


def _add(document: TextDocument, items: Sequence[InlineItem[Any]], reader: InlineReader, first: int) -> None:
    """Append a text of a block to a document: items of `reader`, of which the first has the index `first`.

    If the translation would begin with the sign of a list, heading or quote, this sign is escaped. After translation,
    `[a dog]` becomes `[ein Hund][a dog]`, because the text of such a link names its reference.
    """
    begin = len(document.parts)
    sources = [reader.labels.get(first + number, item.parts[0]) for number, item in enumerate(items)]
    parts = [_divided(document, source, reader.apart.get(first + number, ())) for number, source in enumerate(sources)]
    document.add_items(
        [replace(item, parts=(part,)) for item, part in zip(items, parts, strict=True)],
        _decode,
        _escape,
        lambda new, old: new if _BLOCK_START.match(old) else _BLOCK_START.sub(r"\1\\\2", new),
    )
    if not reader.labels.keys().isdisjoint(range(first, first + len(items))):
        document.join(begin, "".join(sources), "".join(item.parts[0] for item in items))


def _divided(document: TextDocument, source: str, apart: Sequence[Apart]) -> Part:
    """Return the source of an item as a part of the document, to which its texts of their own are added."""
    if not apart:
        return source
    first, place = len(document.parts), 0
    for begin, end, add in apart:
        document.keep(source[place:begin])
        add(document, source[begin:end])
        place = end
    parts = [*document.parts[first:], source[place:]]
    del document.parts[first:]
    return partial(render_parts, parts)


def _decode(source: str) -> Iterator[tuple[str, str | None]]:
    for piece, meaning in decode_pieces([(source, source)], _ESCAPE, lambda match: match[1]):
        yield from references(piece, xml=False) if piece == meaning else ((piece, meaning),)


def _escape(text: str, segment: Segment, forms: dict[str, str]) -> str:
    """Return `text` with the special characters of Markdown escaped.

    A character is not escaped if the segment contains it and no escaped form of it is in `forms`.
    """
    unescaped = _characters(segment.text) - set(forms)
    escaped: dict[str, str | int | None] = {
        character: f"\\{character}" for character in _SPECIAL if character not in unescaped
    }
    return text.translate(str.maketrans({**escaped, **forms}))


@lru_cache(2)  # called for each piece of text between the marks of a segment
def _characters(text: str) -> frozenset[str]:
    return frozenset(text)
