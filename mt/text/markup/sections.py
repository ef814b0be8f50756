"""CDATA sections of XML: which of them are texts, and which of those are parts of the text around them."""

import re
from collections.abc import Iterator, Sequence

from mt.text.markup.elements import BLOCKS, CODE, VOID, ElementIndex
from mt.text.markup.tokens import Token, TokenKind, html_tokens

_SECTION = re.compile(r"(<!\[CDATA\[)(.*)(\]\]>)", re.DOTALL)
_HTML_WITHIN = re.compile(r"</?[A-Za-z]|&(?:[A-Za-z]+|#\d+|#[xX][0-9A-Fa-f]+);")
_VERBATIM = CODE | {"listing", "script", "source", "style"}  # XML elements whose CDATA sections are code


def read_section(number: int, elements: ElementIndex) -> tuple[str, str, str] | None:
    """Return the beginning, the content and the end of token `number`, or None if it is not a section with text."""
    token, parent = elements.tokens[number], elements.parent[number]
    if token.kind is not TokenKind.OTHER or not elements.dialect.xml:
        return None
    if parent >= 0 and elements.tokens[parent].name.rpartition(":")[2] in _VERBATIM:
        return None
    match = _SECTION.fullmatch(token.source)
    return (match[1], match[2], match[3]) if match else None


def is_html(content: str) -> bool:
    """Return whether the content of a section contains a tag or a reference of HTML."""
    return _HTML_WITHIN.search(content) is not None


def with_inline_sections(elements: ElementIndex) -> Sequence[Token]:
    """Return the tokens with those of the HTML in sections that have text beside them.

    The beginning and the end of such a section become a pair of tags, and a section of tags without text becomes its
    tag: `a <![CDATA[<b>]]>red<![CDATA[</b>]]> house` is one text.
    """
    numbers = [n for n, token in enumerate(elements.tokens) if token.source.startswith("<![CDATA[")]
    inline = {n: tokens for n in numbers if elements.within_text(n) and (tokens := list(_inline_tokens(n, elements)))}
    if not inline:
        return elements.tokens
    return [part for n, token in enumerate(elements.tokens) for part in inline.get(n, (token,))]


def _inline_tokens(number: int, elements: ElementIndex) -> Iterator[Token]:
    """Yield the tokens that replace a section. Yield nothing if it cannot be a part of the text around it."""
    section = read_section(number, elements)
    if section is None:
        return
    begin, content, end = section
    if "<" in content and not is_html(content):  # code, in which no character is escaped
        yield Token(TokenKind.EXPRESSION, elements.tokens[number].source)
        return
    tokens = list(html_tokens(content)) if is_html(content) else [Token(TokenKind.TEXT, content)]
    has_words = any(token.kind is TokenKind.TEXT and any(map(str.isalnum, token.source)) for token in tokens)
    is_tag = len(tokens) == 1 and bool(tokens[0].name)
    blocks = any(token.name in BLOCKS for token in tokens)
    if blocks or not (is_tag or has_words) or (tokens == [Token(TokenKind.TEXT, content)] and "&" in content):
        return
    if is_tag:
        yield _tag(tokens[0], begin + content + end)
        return
    yield Token(TokenKind.START, begin, begin)
    for token in tokens:
        yield _tag(token, token.source)
    yield Token(TokenKind.END, end, begin)


def _tag(token: Token, source: str) -> Token:
    """Return a token of HTML with another source, as a token of XML."""
    empty = token.kind is TokenKind.START and (token.name in VOID or token.source.endswith("/>"))
    return Token(TokenKind.EMPTY if empty else token.kind, source, token.name)
