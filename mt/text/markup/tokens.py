"""HTML and XML cut into tokens that join to the source exactly.

Tree builders (selectolax, lxml, html5lib) normalise: they close tags, re-quote attributes, decode entities and drop
what they cannot place. `html.parser` reports places but resolves references and cuts at malformed declarations. A
translator must give back every byte that it did not translate, so these are the tokenisation states of the HTML
standard (section 13.2.5), and of XML 1.0, as far as they say where a token ends; the tree is left to `elements`.
Every pattern is linear: a token that is never closed reaches to the end of the text.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

RAW_TEXT = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"})
"""HTML elements in which no tag is seen but their own end (the standard's RAWTEXT, RCDATA and script data)."""

_TAG_NAME = re.compile(r"[^\t\n\f\r />]*")
_ATTRIBUTE = re.compile(
    r"""(?P<name>=?[^\t\n\f\r />=]+|=)(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?P<value>"[^"]*"|'[^']*'|(?!["'])[^\t\n\f\r >]*))?"""
)
_BETWEEN_ATTRIBUTES = re.compile(r"[\t\n\f\r /]*")
_EQUALS = re.compile(r"[\t\n\f\r ]*=")
_COMMENT_END = re.compile(r"--!?>")
_MARKUP = re.compile(r"<(?=[A-Za-z_:!?/\u0080-\U0010ffff])")
_DOCTYPE_PART = re.compile(r"""<!--(?:.*?-->|.*)|"[^"]*"|'[^']*'|\[|\]|>""", re.DOTALL)
_SCRIPT_MARK = re.compile(r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)
_HTML_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]{0,31};?)")
_XML_REFERENCE = re.compile(r"&(?:#[0-9]+|#x[0-9a-fA-F]+|[A-Za-z_:][\w:.-]*);")
_XML_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_MAX_DIGITS = 8  # of a numeric reference; more than any character needs


class Kind(Enum):
    TEXT = "text"
    START = "start"
    END = "end"
    EMPTY = "empty"  # XML's <name/>
    OTHER = "other"  # comments, declarations, instructions, CDATA, and what is malformed


@dataclass(frozen=True, slots=True)
class Attribute:
    """`begin` and `end` are of the value with its quotes, in the source of the tag; equal where there is none."""

    name: str
    value: str  # decoded
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Token:
    """`name` of a tag, lower case in HTML."""

    kind: Kind
    source: str
    name: str = ""
    attributes: tuple[Attribute, ...] = ()

    def attribute(self, name: str) -> str | None:
        return next((each.value for each in self.attributes if each.name == name), None)


def html_tokens(text: str) -> Iterator[Token]:
    """The tokens of HTML. The contents of a raw text element are one TEXT token."""
    place = 0
    while place < len(text):
        token = _next(text, place, xml=False)
        yield token
        place += len(token.source)
        if token.kind is Kind.START and token.name in RAW_TEXT:
            end = _raw_end(text, place, token.name)
            if end > place:
                yield Token(Kind.TEXT, text[place:end])
            place = end


def xml_tokens(text: str) -> Iterator[Token]:
    """The tokens of XML, well-formed or not."""
    place = 0
    while place < len(text):
        token = _next(text, place, xml=True)
        yield token
        place += len(token.source)


def references(text: str, xml: bool) -> Iterator[tuple[str, str | None]]:
    """Text in pieces: (source, what it stands for), or None for an entity that only a DTD could explain."""
    place = 0
    for match in (_XML_REFERENCE if xml else _HTML_REFERENCE).finditer(text):
        source = match[0]
        meaning = _xml_meaning(source) if xml else _html_meaning(source)
        if meaning == source:
            continue
        if match.start() > place:
            yield text[place : match.start()], text[place : match.start()]
        yield source, meaning
        place = match.end()
    if place < len(text):
        yield text[place:], text[place:]


def decode(text: str, xml: bool) -> str:
    """Text without references, but for those that nobody knows."""
    return "".join(source if meaning is None else meaning for source, meaning in references(text, xml))


def _html_meaning(source: str) -> str:
    if source[1] != "#":
        return html.unescape(source)
    base = "x" if source[2] in "xX" else ""
    digits = source[2:].strip("xX;").lstrip("0") or "0"
    return "\ufffd" if len(digits) > _MAX_DIGITS else html.unescape(f"&#{base}{digits};")


def _xml_meaning(source: str) -> str | None:
    if source[1] != "#":
        return _XML_NAMED.get(source)
    digits = source[2:-1].lstrip("x0")
    code = int(digits or "0", 16 if source[2] == "x" else 10) if len(digits) <= _MAX_DIGITS else 0
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _next(text: str, place: int, xml: bool) -> Token:
    """The token at a place."""
    found = _MARKUP.search(text, place)
    if found is None or found.start() > place:
        return Token(Kind.TEXT, text[place : found.start() if found else len(text)])
    first = text[place + 1 : place + 2]
    if first == "!":
        return Token(Kind.OTHER, text[place : _declaration_end(text, place, xml)])
    if first == "?":
        return Token(Kind.OTHER, text[place : _after(text, "?>" if xml else ">", place + 2)])
    closing = first == "/"
    begin = place + 1 + closing
    initial = text[begin : begin + 1]
    if not (initial.isalpha() if not xml else initial.isalpha() or initial in "_:") or not (xml or initial.isascii()):
        if closing:
            return Token(Kind.OTHER, text[place : _after(text, ">", begin)])
        return Token(Kind.TEXT, text[place : _text_end(text, place + 1)])
    return _tag(text, place, begin, xml)


def _text_end(text: str, place: int) -> int:
    found = _MARKUP.search(text, place)
    return found.start() if found else len(text)


def _after(text: str, mark: str, place: int) -> int:
    """Where a mark has ended, or the end of the text."""
    found = text.find(mark, place)
    return len(text) if found < 0 else found + len(mark)


def _declaration_end(text: str, place: int, xml: bool) -> int:
    """Of a comment, CDATA, a doctype with its internal subset, or a bogus comment: `place` is at its `<!`."""
    if text.startswith("<!--", place):
        for abrupt in () if xml else ("<!-->", "<!--->"):
            if text.startswith(abrupt, place):
                return place + len(abrupt)
        if xml:
            return _after(text, "-->", place + 4)
        found = _COMMENT_END.search(text, place + 4)
        return found.end() if found else len(text)
    if text.startswith("<![CDATA[", place):
        found_end = text.find("]]>", place)
        return found_end + 3 if found_end >= 0 else _after(text, ">", place)
    depth = 0
    if xml and text.startswith("<!DOCTYPE", place):
        for part in _DOCTYPE_PART.finditer(text, place):
            depth += {"[": 1, "]": -1}.get(part[0], 0)
            if part[0] == ">" and depth <= 0:
                return part.end()
        return len(text)
    return _after(text, ">", place)


def _tag(text: str, place: int, begin: int, xml: bool) -> Token:
    """A start or end tag whose name stands at `begin`."""
    found = _TAG_NAME.match(text, begin)
    assert found is not None
    name = found[0]
    attributes: list[Attribute] = []
    at = found.end()
    while True:
        gap = _BETWEEN_ATTRIBUTES.match(text, at)
        assert gap is not None
        at = gap.end()
        if at == len(text):
            return Token(Kind.OTHER, text[place:])
        if text[at] == ">":
            break
        attribute = _ATTRIBUTE.match(text, at)
        if attribute is None:  # a quote that is never closed
            return Token(Kind.OTHER, text[place:])
        if attribute["value"] is None and _EQUALS.match(text, attribute.end()):  # likewise
            return Token(Kind.OTHER, text[place:])
        attributes.append(_attribute(attribute, place, xml))
        at = attribute.end()
    source = text[place : at + 1]
    opening = Kind.EMPTY if xml and source.endswith("/>") else Kind.START
    return Token(Kind.END if begin == place + 2 else opening, source, name if xml else name.lower(), tuple(attributes))


def _attribute(found: re.Match[str], place: int, xml: bool) -> Attribute:
    begin, end = found.span("value") if found["value"] is not None else (found.end(), found.end())
    value = found["value"] or ""
    if value[:1] in ('"', "'"):
        value = value[1:-1]
    name = found["name"] if xml else found["name"].lower()
    return Attribute(name, decode(value, xml), begin - place, end - place)


def _raw_end(text: str, place: int, name: str) -> int:
    """Where the end tag of a raw text element stands; in a script, not within `<!-- <script> ... -->`."""
    if name != "script":
        found = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, place)
        return found.start() if found else len(text)
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
