"""Inline items of a block of Markdown.

markdown-it reports the lines and the inline tokens of each block, but not where an inline token is in the source.
`InlineReader` finds the places by comparing the tokens with the source.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from mt.text.clauses import divides_lines
from mt.text.documents.base import TextDocument, tag_key
from mt.text.documents.markdown_syntax import SYNTAX, VALUE
from mt.text.markup import MarkupOptions, parse_html
from mt.text.markup.elements import HTML
from mt.text.markup.inline import InlineItem, InlineKind
from mt.text.markup.tokens import TokenKind, html_tokens
from mt.text.word_tables import read_tables

_BREAK, _HARD_BREAK, _HIGHLIGHT = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["markdown_inline"].values()
)
_FIXED = re.compile(rf"(\[\^[^\[\]\s]+\]|{SYNTAX}+|{VALUE}+)")  # footnote marks and hidden syntax
_END_TAG = re.compile(r"</([A-Za-z][\w-]*)")
_TASK = re.compile(r"\[[ xX]\](?=[ \t])")  # at the beginning of the items of a task list
_ATTRIBUTES = re.compile(r"\{[^{}\n]*\}")  # of a picture or link before them, in many dialects
_WORD = re.compile(r"\S")
_NEAR, _BESIDE = 20, 80  # items before a line break, and characters behind it, that decide whether it ends a text
_SPECIAL_IN_ALT = re.compile(r"[\\`*\[\]<|]|(?<!\w)_|_(?!\w)")

Apart = tuple[int, int, Callable[[TextDocument, str], None]]
"""A range of the source of an inline item, and a function that adds it to a document, as texts of its own."""


class InlineReader:
    """Reader of the inline items of a block. `places[i]` is the offset in `text` of character i of the block."""

    def __init__(
        self,
        parser: MarkdownIt,
        token: Token,
        text: str,
        places: Sequence[int],
        language: str,
        html_options: MarkupOptions,
    ) -> None:
        self.parser, self.token, self.text, self.places, self.language = parser, token, text, places, language
        self.html_options = html_options
        self.at = 0
        self.collected: list[InlineItem[Any]] = []
        self.open: list[tuple[int, str]] = []
        self.labels: dict[int, str] = {}  # by index of the item: the end of a link that names its reference
        self.apart: dict[int, list[Apart]] = {}  # by index of the item: its texts of their own
        self.splits: list[int] = []  # indices of items that begin a line or the definition of a term
        self.begin = len(match[0]) if (match := _TASK.match(self.token.content)) else 0
        self.closed = {name.lower() for name in _END_TAG.findall(self.token.content)}

    def items(self) -> list[InlineItem[Any]] | None:
        """Return the inline items of the block, or None if the tokens of the block do not match its source.

        The sources of all items, concatenated, are the source of the block.
        """
        children = [child for child in self.token.children or () if child.type != "text" or child.content]
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
            return content.startswith("![", at) and self._picture(child, self._label_end(at + 1))
        if child.type == "link_open":
            return self._tag(InlineKind.OPEN, "[", "link")
        if child.type == "link_close":
            label = content[self.open[-1][0] + 1 : at].replace("\n", " ") if self.open else ""
            return content.startswith("]", at) and self._close_label(label)
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
        near = self.collected[max(0, len(self.collected) - _NEAR, *self.splits[-1:]) :]
        before = "".join(item.text or " " for item in near).strip()
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
        if tokens[0].attributes:
            self.apart[len(self.collected)] = [(0, len(source), partial(_add_html, self.html_options))]
        if len(tokens) == 1 and paired:
            return self._tag(InlineKind.OPEN, source, "<" + tokens[0].name)
        return self.token.content.startswith(source, self.at) and self._element(tokens[0].name, self.at + len(source))

    def _close_label(self, label: str) -> bool:
        """Append the end of a link with the text `label`, which may be the name of a reference."""
        end, titles = self._target(self.at)
        target = self.token.content[self.at : end]
        if label and target in ("]", "][]"):
            self.labels[len(self.collected)] = f"][{label}]"
        self.apart[len(self.collected)] = titles
        return self._tag(InlineKind.CLOSE, target, "link")

    def _picture(self, picture: Token, close: int) -> bool:
        """Append a picture, whose alternative text ends at the bracket `close`."""
        if close < 0:
            return False
        end, titles = self._target(close)
        label = self.token.content[self.at + 2 : close]
        names_reference = self.token.content[close:end] in ("]", "][]")
        text = RendererHTML().renderInlineAsText(picture.children, self.parser.options, {})
        begin, after = self._range(self.at + 2, end - 1 if names_reference else close)
        write = partial(_written_alt, label=f"][{label}" if names_reference else "")
        alt = (begin, after, partial(_add_text, text, write))
        self.apart[len(self.collected)] = [alt, *titles]
        return self._element("img", end)

    def _range(self, begin: int, end: int) -> tuple[int, int]:
        """Return a range of the block as one of the source of the item that begins at `at`."""
        first = self.places[self.at]
        return self.places[begin] - first, self.places[end] - first

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

    def _target(self, close: int) -> tuple[int, list[Apart]]:
        """Return the offset after the target of a link, `(url "title")` or `[label]`, and its title if it has one.

        `close` is the offset of the `]` that ends the text of the link. If no target follows, return `close` + 1.
        """
        content, place = self.token.content, close + 1
        if content.startswith("(", place):
            end, titles = self._address(place + 1)
            if end > 0:
                return end, titles
        if content.startswith("[", place):
            label = content.find("]", place)
            reference = content[place + 1 : label]
            if label > 0 and "[" not in reference:
                return label + 1, []
        return place, []

    def _address(self, place: int) -> tuple[int, list[Apart]]:
        content, helpers = self.token.content, self.parser.helpers
        begin = _after_space(content, place)
        address = helpers.parseLinkDestination(content, begin, len(content))
        place = address.pos if address.ok else begin
        end = _after_space(content, place)
        titles: list[Apart] = []
        if end > place:
            title = helpers.parseLinkTitle(content, end, len(content))
            if title.ok:
                signs = content[end] + content[title.pos - 1]
                titles = [(*self._range(end + 1, title.pos - 1), partial(add_title, title.str, signs))]
                end = _after_space(content, title.pos)
        return (end + 1, titles) if content.startswith(")", end) else (-1, [])


def _after_space(text: str, place: int) -> int:
    word = _WORD.search(text, place)
    return word.start() if word else len(text)


def _add_text(text: str, write: Callable[[str], str], document: TextDocument, source: str) -> None:
    if SYNTAX in text or VALUE in text:
        document.keep(source)
    else:
        document.add_stripped(" ".join(text.splitlines()), source, write)


def add_title(text: str, signs: str, document: TextDocument, source: str) -> None:
    """Add the title of a link, which is between the first and the second of two signs."""
    _add_text(text, lambda new: re.sub(rf"[\\|{re.escape(signs)}]", r"\\\g<0>", new), document, source)


def _written_alt(text: str, label: str) -> str:
    return _SPECIAL_IN_ALT.sub(r"\\\g<0>", text) + label


def _add_html(options: MarkupOptions, document: TextDocument, source: str) -> None:
    document.embed(parse_html(source, options))
