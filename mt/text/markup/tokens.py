"""Tokenisation of HTML and XML. The concatenation of all tokens is exactly the source.

A translator must preserve every byte that it does not translate. Tree builders (selectolax, lxml, html5lib) close tags,
re-quote attributes, decode entities and drop misplaced content; `html.parser` resolves references and splits malformed
declarations. Therefore this module finds the ends of tokens itself, by the tokenisation states of the HTML standard
(section 13.2.5) and by XML 1.0. All patterns match in linear time. A token that is never closed extends to the end of
the text.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice

from mt.errors import DocumentLimitExceeded
from mt.text.templates import TemplateCode, find_templates
from mt.text.word_tables import read_tables

MAX_TOKENS = 1_000_000  # maximum number of tokens of a text; a token takes about 300 bytes of memory
RAW_TEXT = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"})
"""Names of the HTML elements whose content has no tags (RAWTEXT, RCDATA and script data in the standard)."""

_HIDDEN = "\ufdd0"  # stands for a character of the code of a template
_TAG_NAME = re.compile(rf"[^\t\n\f\r />{_HIDDEN}]*")
_ATTRIBUTE, _BETWEEN_ATTRIBUTES, _EQUALS, _COMMENT_END, _MARKUP, _DOCTYPE_PART, _SCRIPT_MARK, _NOT_TEXT = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["tokens"].values()
)
_HTML_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]{0,31};?)")
_XML_REFERENCE = re.compile(r"&(?:#[0-9]+|#x[0-9a-fA-F]+|[A-Za-z_:][\w:.-]*);")
_XML_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_MAX_DIGITS = 8  # maximum number of digits of a numeric reference; no character needs more


class TokenKind(Enum):
    """Kind of a token."""

    TEXT = "text"
    START = "start"
    END = "end"
    EMPTY = "empty"  # XML's <name/>
    OTHER = "other"  # comments, declarations, instructions, CDATA, malformed tags
    STATEMENT = "statement"  # of a template in HTML
    EXPRESSION = "expression"  # of a template in HTML, with characters that are no text of HTML


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a tag. `source[begin:end]` of the tag is the value with quotes, or "" if there is no value."""

    name: str
    value: str  # decoded
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token of HTML or XML. For a tag, `name` is its name, in lower case in HTML. For other tokens, it is empty."""

    kind: TokenKind
    source: str
    name: str = ""
    attributes: tuple[Attribute, ...] = ()

    def attribute(self, name: str) -> str | None:
        return next((attribute.value for attribute in self.attributes if attribute.name == name), None)


def html_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of HTML. The content of an element in RAW_TEXT has no tags.

    The code of templates in a tag is part of the tag. Expressions in a text are part of the text unless they contain
    characters with a meaning in HTML.

    Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    templates = list(find_templates(text))
    return _counted(_template_tokens(text, templates) if templates else _tokens(text, xml=False))


def xml_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of XML, whether it is well-formed or not.

    Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    return _counted(_tokens(text, xml=True))


def _counted(tokens: Iterator[Token]) -> Iterator[Token]:
    yield from islice(tokens, MAX_TOKENS)
    if next(tokens, None) is not None:
        raise DocumentLimitExceeded(f"the markup has too many tags and texts; accepted: at most {MAX_TOKENS:,}")


def _template_tokens(text: str, templates: Sequence[TemplateCode]) -> Iterator[Token]:
    """Yield the tokens of HTML with templates. The code is hidden when the ends of tags and texts are searched."""
    ends = [0, *(code.end for code in templates)]
    hidden = [
        text[end : code.begin] + _HIDDEN * (code.end - code.begin) for end, code in zip(ends, templates, strict=False)
    ]
    place = number = 0
    for token in _tokens("".join(hidden) + text[ends[-1] :], xml=False):
        begin, place = place, place + len(token.source)
        if token.kind is not TokenKind.TEXT:
            yield _restored(token, text[begin:place])
            continue
        while number < len(templates) and templates[number].begin < place:
            code, number = templates[number], number + 1
            source = text[code.begin : code.end]
            if code.begin >= begin and (code.statement or _NOT_TEXT.search(source)):
                if begin < code.begin:
                    yield Token(TokenKind.TEXT, text[begin : code.begin])
                yield Token(TokenKind.STATEMENT if code.statement else TokenKind.EXPRESSION, source)
                begin = code.end
        if begin < place:
            yield Token(TokenKind.TEXT, text[begin:place])


def _restored(token: Token, source: str) -> Token:
    """Return a token with its source in place of one in which code is hidden."""
    attributes = tuple(
        replace(a, name=a.name.strip(_HIDDEN), value=decode(_unquoted(source[a.begin : a.end]), xml=False))
        for a in token.attributes
    )
    return replace(token, source=source, attributes=attributes)


def _tokens(text: str, xml: bool) -> Iterator[Token]:
    place, last_cdata = 0, text.rfind("]]>")
    while place < len(text):
        token = _next(text, place, last_cdata, xml)
        yield token
        place += len(token.source)
        if not xml and token.kind is TokenKind.START and token.name in RAW_TEXT:
            end = _raw_end(text, place, token.name)
            if end > place:
                yield Token(TokenKind.TEXT, text[place:end])
            place = end


def references(text: str, xml: bool) -> Iterator[tuple[str, str | None]]:
    """Split a text at its references, such as `&amp;`. Yield (source, decoded text) of each piece.

    The decoded text of an unknown entity is None in XML. In HTML, an unknown entity is plain text.
    """
    return decode_pieces([(text, text)], *((_XML_REFERENCE, _xml_meaning) if xml else (_HTML_REFERENCE, _html_meaning)))


def decode_pieces(
    pieces: Iterable[tuple[str, str | None]], escape: re.Pattern[str], meaning: Callable[[re.Match[str]], str | None]
) -> Iterator[tuple[str, str | None]]:
    """Split the pieces (source, decoded text) that have no escape yet at their escapes, and yield all pieces."""
    for source, decoded in pieces:
        if decoded != source:
            yield source, decoded
            continue
        place = 0
        for match in escape.finditer(source):
            if (written := meaning(match)) != match[0]:
                if match.start() > place:
                    yield source[place : match.start()], source[place : match.start()]
                yield match[0], written
                place = match.end()
        if place < len(source):
            yield source[place:], source[place:]


def decode(text: str, xml: bool) -> str:
    """Return `text` with its character and entity references decoded. Unknown entities are unchanged."""
    return "".join(source if meaning is None else meaning for source, meaning in references(text, xml))


def _html_meaning(reference: re.Match[str]) -> str:
    source = reference[0]
    if source[1] != "#":
        return html.unescape(source)
    base = "x" if source[2] in "xX" else ""
    digits = source[2:].strip("xX;").lstrip("0") or "0"
    return "\ufffd" if len(digits) > _MAX_DIGITS else html.unescape(f"&#{base}{digits};")


def _xml_meaning(reference: re.Match[str]) -> str | None:
    source = reference[0]
    if source[1] != "#":
        return _XML_NAMED.get(source)
    digits = source[2:-1].lstrip("x0")
    code = int(digits or "0", 16 if source[2] == "x" else 10) if len(digits) <= _MAX_DIGITS else 0
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _next(text: str, place: int, last_cdata: int, xml: bool) -> Token:
    if (begin := _markup(text, place)) > place:
        return Token(TokenKind.TEXT, text[place:begin])
    first = text[place + 1 : place + 2]
    if first == "!":
        return Token(TokenKind.OTHER, text[place : _declaration_end(text, place, last_cdata, xml)])
    if first == "?":
        return Token(TokenKind.OTHER, text[place : _after(text, "?>" if xml else ">", place + 2)])
    closing = first == "/"
    begin = place + 1 + closing
    initial = text[begin : begin + 1]
    if not (initial.isalpha() or initial in "_:" if xml else initial.isalpha() and initial.isascii()):
        if closing:
            return Token(TokenKind.OTHER, text[place : _after(text, ">", begin)])
        return Token(TokenKind.TEXT, text[place : _markup(text, place + 1)])
    return _tag(text, place, begin, xml)


def _markup(text: str, place: int) -> int:
    """Return the offset of the next tag or declaration from `place` on, or the length of the text."""
    match = _MARKUP.search(text, place)
    return match.start() if match else len(text)


def _after(text: str, mark: str, place: int) -> int:
    match = text.find(mark, place)
    return len(text) if match < 0 else match + len(mark)


def _declaration_end(text: str, place: int, last_cdata: int, xml: bool) -> int:
    """Return the offset after the comment, CDATA section, doctype or malformed declaration that begins at `place`.

    `last_cdata` is the offset of the last `]]>` in the text, or -1. A CDATA section that begins after this offset is
    not closed, and ends at the next `>`, like a malformed declaration.
    """
    if text.startswith("<!--", place):
        for abrupt in () if xml else ("<!-->", "<!--->"):
            if text.startswith(abrupt, place):
                return place + len(abrupt)
        if xml:
            return _after(text, "-->", place + 4)
        match = _COMMENT_END.search(text, place + 4)
        return match.end() if match else len(text)
    if text.startswith("<![CDATA[", place):
        return _after(text, "]]>" if place <= last_cdata else ">", place)
    depth = 0
    if xml and text.startswith("<!DOCTYPE", place):
        for part in _DOCTYPE_PART.finditer(text, place):
            depth += {"[": 1, "]": -1}.get(part[0], 0)
            if part[0] == ">" and depth <= 0:
                return part.end()
        return len(text)
    return _after(text, ">", place)


def _tag(text: str, place: int, begin: int, xml: bool) -> Token:
    match = _TAG_NAME.match(text, begin)
    assert match is not None
    name = match[0]
    attributes: list[Attribute] = []
    at = match.end()
    while True:
        gap = _BETWEEN_ATTRIBUTES.match(text, at)
        assert gap is not None
        at = gap.end()
        if at == len(text):
            return Token(TokenKind.OTHER, text[place:])
        if text[at] == ">":
            break
        attribute = _ATTRIBUTE.match(text, at)
        if attribute is None or (attribute["value"] is None and _EQUALS.match(text, attribute.end())):
            return Token(TokenKind.OTHER, text[place:])  # an unterminated quote
        attributes.append(_attribute(attribute, place, xml))
        at = attribute.end()
    source = text[place : at + 1]
    opening = TokenKind.EMPTY if xml and source.endswith("/>") else TokenKind.START
    return Token(
        TokenKind.END if begin == place + 2 else opening, source, name if xml else name.lower(), tuple(attributes)
    )


def _attribute(match: re.Match[str], place: int, xml: bool) -> Attribute:
    begin, end = match.span("value") if match["value"] is not None else (match.end(), match.end())
    name = match["name"] if xml else match["name"].lower()
    return Attribute(name, decode(_unquoted(match["value"] or ""), xml), begin - place, end - place)


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'") else value


def _raw_end(text: str, place: int, name: str) -> int:
    """Return the offset of the end tag of a raw text element, or the length of the text if there is no end tag.

    `place` is the offset of the content of the element. In a script, the `</script>` of `<!-- <script> </script> -->`
    is not the end tag.
    """
    if name != "script":
        match = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, place)
        return match.start() if match else len(text)
    commented = nested = False
    for mark in _SCRIPT_MARK.finditer(text, place):
        if mark[0] == "<!--":
            commented = True
        elif mark[0] == "-->":
            commented = nested = False
        elif not mark[1]:
            nested = commented
        elif nested:
            nested = False
        else:
            return mark.start()
    return len(text)
