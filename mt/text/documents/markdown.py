"""Markdown: CommonMark with tables and strikethrough, as parsed by markdown-it.

markdown-it reports the lines and the inline tokens of each block, but not where an inline token is in the source.
`_InlineReader` finds the places by comparing the tokens with the source. A block whose tokens do not match the source
is left untranslated. Code, URLs, link references and formulas are kept, and the front matter except its titles and
descriptions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mt.errors import DocumentError
from mt.text.clauses import divides_lines
from mt.text.documents.base import DocumentOptions, TextDocument, read_text, tag_key
from mt.text.documents.markdown_syntax import SYNTAX, VALUE, hide_syntax
from mt.text.documents.markup import with_languages
from mt.text.documents.yaml import add_values
from mt.text.markup import Segment, parse_html
from mt.text.markup.elements import HTML
from mt.text.markup.inline import InlineItem, InlineKind
from mt.text.markup.tokens import TokenKind, decode_pieces, html_tokens, references
from mt.text.word_tables import read_tables, read_words

_LINE = re.compile(r"\r\n|\r|\n")
_FRONT_MATTER, _ESCAPE, _BREAK, _HARD_BREAK, _HIGHLIGHT, _BLOCK_START = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["markdown"].values()
)
_FIXED = re.compile(rf"(\[\^[^\[\]\s]+\]|{SYNTAX}+|{VALUE}+)")  # footnote marks and hidden syntax
_END_TAG = re.compile(r"</([A-Za-z][\w-]*)")
_TASK = re.compile(r"\[[ xX]\](?=[ \t])")  # at the beginning of the items of a task list
_ATTRIBUTES = re.compile(r"\{[^{}\n]*\}")  # of a picture or link before them, in many dialects
_WORD = re.compile(r"\S")
_BESIDE = 80  # characters beside a line break that decide whether it ends a text
_SPECIAL = "\\`*_[]<~"


def open_markdown(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse Markdown. Each heading, paragraph, list item and table cell is a segment.

    A line that begins with `: ` is a segment, too: in some dialects, it defines a term. A translation is written in one
    line.
    """
    text, document = read_text(name, content, options)
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    hidden = re.sub(r"[^\r\n]", " ", text[:begin]) + hide_syntax(text[begin:])
    lines = _Lines(hidden)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    read_until = _add_front_matter(document, name, front) if front else 0
    document.has_text = any(map(str.isalpha, hidden))
    for token in parser.parse(hidden):
        document.frame.append((token.type, token.tag))
        if token.map is None or token.type not in ("inline", "html_block"):
            continue
        if token.type == "html_block":
            begin, end = lines.starts[token.map[0]], lines.starts[min(token.map[1], len(lines.starts) - 1)]
            if begin >= read_until:
                document.keep(text[read_until:begin])
                document.embed(parse_html(text[begin:end], replace(with_languages(options), fragment=True)))
                read_until = end
            continue
        places = lines.find(token.content, token.map[0], read_until)
        reader = _InlineReader(parser, token, text, places, options.source_language)
        items = reader.items() if places else None
        if places and items is not None:
            document.keep(text[read_until : places[0]])
            for begin, end in pairwise([0, *reader.splits, len(items)]):
                _add(document, items[begin:end], {n - begin: end for n, end in reader.labels.items() if n >= begin})
            read_until = places[-1]
    document.keep(text[read_until:])
    return document


def _add_front_matter(document: TextDocument, name: str, front: re.Match[str]) -> int:
    """Add the texts of front matter in YAML to a document. Return the offset up to which the file was added."""
    if front[1] != "---":
        return 0
    document.keep(front.string[: front.start(2)])
    try:
        add_values(document, name, front[2], read_words("documents/names.toml")["front_texts"])
    except DocumentError:
        document.keep(front[2])
    return front.end(2)


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


class _InlineReader:
    """Reader of the inline items of a block. `places[i]` is the offset in `text` of character i of the block."""

    def __init__(self, parser: MarkdownIt, token: Token, text: str, places: Sequence[int], language: str) -> None:
        self.parser, self.token, self.text, self.places, self.language = parser, token, text, places, language
        self.at = 0
        self.collected: list[InlineItem[str]] = []
        self.open: list[tuple[int, str]] = []
        self.labels: dict[int, str] = {}  # by index of the item: the end of a link that names its reference
        self.splits: list[int] = []  # indices of items that begin a line or the definition of a term
        self.begin = len(match[0]) if (match := _TASK.match(self.token.content)) else 0
        self.closed = {name.lower() for name in _END_TAG.findall(self.token.content)}

    def items(self) -> list[InlineItem[str]] | None:
        """Return the inline items of the block, or None if the tokens of the block do not match its source.

        The sources of all items, concatenated, are the source of the block.
        """
        children = [child for child in self.token.children or () if child.type != "text" or child.content]
        texts = (_ATTRIBUTES.sub("", child.content) for child in children if child.type != "image")
        self.alone = not any(text.strip() for text in texts)
        number = 0
        while number < len(children):
            child = children[number]
            if child.type == "link_open" and child.markup == "autolink":
                while children[number].type != "link_close":
                    number += 1
                end = self.token.content.find(">", self.at) + 1
                fits = self._whole(InlineKind.KEPT, end, self.token.content[self.at + 1 : end - 1])
            else:
                fits = self._child(child)
            if not fits:
                return None
            number += 1
        return self.collected if self.at == len(self.token.content) else None

    def _child(self, child: Token) -> bool:
        content, at = self.token.content, self.at
        if child.type in ("text", "text_special"):
            return self._text(child.markup if child.type == "text_special" else child.content)
        if child.type in ("softbreak", "hardbreak"):
            match = (_BREAK if child.type == "softbreak" else _HARD_BREAK).match(content, at)
            if match is None:
                return False
            if child.type == "softbreak" and content.startswith(": ", match.end()) and not self.open:
                self.splits.append(len(self.collected))
                self.begin = match.end() + 2
                return self._whole(InlineKind.EMPTY, match.end())
            if child.type == "softbreak":
                return self._whole(InlineKind.TEXT, match.end(), "\n")
            return self._break(match.end())
        if child.type == "code_inline":
            close = re.compile(rf"(?<!`){child.markup}(?!`)").search(content, at + len(child.markup))
            return close is not None and self._whole(InlineKind.KEPT, close.end(), child.content)
        if child.type == "html_inline":
            return self._html(child.content)
        if child.type == "image":
            end = self._label_end(at + 1)
            if self.alone and end > 0 and content[at + 2 : end] == child.content:
                self._tag(InlineKind.OPEN, "![", "image")
                self._whole(InlineKind.TEXT, end, child.content)
                return self._close_label(child.content, "image")
            return content.startswith("![", at) and end > 0 and self._element("img", self._target_end(end))
        if child.type == "link_open":
            return self._tag(InlineKind.OPEN, "[", "link")
        if child.type == "link_close":
            label = content[self.open[-1][0] + 1 : at].replace("\n", " ") if self.open else ""
            return content.startswith("]", at) and self._close_label(label, "link")
        if child.nesting:
            return self._tag(InlineKind.OPEN if child.nesting > 0 else InlineKind.CLOSE, child.markup, child.markup)
        return False

    def _source(self, end: int) -> str:
        return self.text[self.places[self.at] : self.places[end]]

    def _whole(self, kind: InlineKind, end: int, text: str = "", breaks: bool = False) -> bool:
        if end <= self.at:
            return False
        source = self._source(end)
        if kind is InlineKind.TEXT and "\\|" in source:  # in a cell, where the parser has removed the backslash
            text = text.replace("|", "\\|")
        self.collected.append(InlineItem(kind, (source,), text, breaks=breaks))
        self.at = end
        return True

    def _break(self, end: int) -> bool:
        """Append a line break, or end the text there, as in HTML."""
        content = self.token.content
        before = content[max(0, self.at - _BESIDE) : self.at].rstrip("*_ ")
        if not self.open and divides_lines(before, content[end : end + _BESIDE].lstrip("*_ \n"), self.language):
            self.splits.append(len(self.collected))
        return self._whole(InlineKind.EMPTY, end, breaks=True)

    def _element(self, name: str, end: int) -> bool:
        """Append an element of HTML without text, or a picture."""
        if name == "br":
            return self._break(end)
        self._whole(InlineKind.EMPTY, end)
        self.collected[-1] = replace(self.collected[-1], stands=HTML.stands_for_word(name))
        return True

    def _text(self, source: str) -> bool:
        at = self.at
        if not self.token.content.startswith(source, at):
            return False
        if at < self.begin:
            self._whole(InlineKind.EMPTY, self.at + min(len(source), self.begin - self.at))
            source = source[self.at - at :]
        attributes = _ATTRIBUTES.match(source)
        if attributes and self.collected and self.collected[-1].kind in (InlineKind.CLOSE, InlineKind.EMPTY):
            self._whole(InlineKind.EMPTY, self.at + attributes.end())
            source = source[attributes.end() :]
        for number, part in enumerate(_FIXED.split(source)):
            end = self.at + len(part)
            if part.startswith(VALUE):
                self._whole(InlineKind.KEPT, end, self._source(end))
            elif number % 2:
                self._whole(InlineKind.EMPTY, end)
            else:
                self._highlights(part)
        return True

    def _highlights(self, text: str) -> None:
        """Append a text, in which the signs around a highlighted or inserted part are tags."""
        for number, part in enumerate(_HIGHLIGHT.split(text)):
            if number % 4 in (1, 3):
                self._tag(InlineKind.OPEN if number % 4 == 1 else InlineKind.CLOSE, part, "highlight")
            elif part:
                self._whole(InlineKind.TEXT, self.at + len(part), part)

    def _tag(self, kind: InlineKind, source: str, name: str) -> bool:
        if not source or not self.token.content.startswith(source, self.at):
            return False
        key, end = tag_key(self.open, kind, name, self.at), self.at + len(source)
        self.collected.append(InlineItem(kind, (self._source(end),), key=key))
        self.at = end
        return True

    def _html(self, source: str) -> bool:
        tokens = list(html_tokens(source))
        if len(tokens) == 1 and tokens[0].kind is TokenKind.END:
            return self._tag(InlineKind.CLOSE, source, "<" + tokens[0].name)
        paired = tokens[0].name in self.closed if tokens[0].kind is TokenKind.START else False
        if len(tokens) == 1 and paired:
            return self._tag(InlineKind.OPEN, source, "<" + tokens[0].name)
        return self.token.content.startswith(source, self.at) and self._element(tokens[0].name, self.at + len(source))

    def _close_label(self, label: str, name: str) -> bool:
        """Append the end of a link or image with the text `label`, which may be the name of a reference."""
        target = self.token.content[self.at : self._target_end(self.at)]
        if label and target in ("]", "][]"):
            self.labels[len(self.collected)] = f"][{label}]"
        return self._tag(InlineKind.CLOSE, target, name)

    def _label_end(self, begin: int) -> int:
        depth = 0
        place = begin
        content = self.token.content
        while place < len(content):
            if content[place] == "\\":
                place += 1
            depth += {"[": 1, "]": -1}.get(content[place : place + 1], 0)
            if depth == 0:
                return place
            place += 1
        return -1

    def _target_end(self, close: int) -> int:
        """Return the offset after the target of a link: `(url "title")` or `[label]`.

        `close` is the offset of the `]` that ends the text of the link. If no target follows, return `close` + 1.
        """
        content, place = self.token.content, close + 1
        if content.startswith("(", place):
            end = self._address_end(place + 1)
            if end > 0:
                return end
        if content.startswith("[", place):
            label = content.find("]", place)
            reference = content[place + 1 : label]
            if label > 0 and "[" not in reference:
                return label + 1
        return place

    def _address_end(self, place: int) -> int:
        content, helpers = self.token.content, self.parser.helpers
        begin = _after_space(content, place)
        address = helpers.parseLinkDestination(content, begin, len(content))
        place = address.pos if address.ok else begin
        end = _after_space(content, place)
        if end > place:
            title = helpers.parseLinkTitle(content, end, len(content))
            end = _after_space(content, title.pos) if title.ok else end
        return end + 1 if content.startswith(")", end) else -1


def _after_space(text: str, place: int) -> int:
    word = _WORD.search(text, place)
    return word.start() if word else len(text)


def _add(document: TextDocument, items: Sequence[InlineItem[str]], labels: Mapping[int, str]) -> None:
    """Append the text of a block to a document.

    If the translation would begin with the sign of a list, heading or quote, this sign is escaped. `labels` contains
    the ends of links after translation, by index of the item: `[a dog]` becomes `[ein Hund][a dog]`, because the text
    of such a link names its reference.
    """
    begin = len(document.parts)
    written = [replace(item, parts=(labels.get(number, item.parts[0]),)) for number, item in enumerate(items)]
    document.add_items(
        written, _decode, _escape, lambda new, old: new if _BLOCK_START.match(old) else _BLOCK_START.sub(r"\1\\\2", new)
    )
    if labels:
        text, source = ("".join(item.parts[0] for item in side) for side in (written, items))
        document.join(begin, text, source)


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
