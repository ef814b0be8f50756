"""Reading of the tokens of HTML and XML: which of them are texts to translate, and which parts surround them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

from mt.text.clauses import LIST_SIGN, divides_lines
from mt.text.markup.attributes import MarkupLanguages, language_attributes, text_attributes
from mt.text.markup.elements import HTML, VISIBLE, Dialect, ElementIndex, is_marked_as_kept
from mt.text.markup.inline import (
    Decode,
    InlineItem,
    InlineKind,
    StandsForWord,
    decode_nothing,
    read_inline,
    split_whitespace,
    symbol_before,
)
from mt.text.markup.marks import Part, Render, Segment, render_parts, text_of
from mt.text.markup.messages import split_items
from mt.text.markup.notes import MAX_TOKENS, NOTE_NAMES, is_note_element, is_remark
from mt.text.markup.rendering import Renderer
from mt.text.markup.sections import is_html, read_section, with_inline_sections
from mt.text.markup.tokens import Token, TokenKind, decode, decode_pieces, html_tokens, references
from mt.text.templates import find_templates

_HTML_SPACE = " \t\n\f\r"
_LINE_OF_LIST = re.compile(rf"(?<![ \t\f\r])[ \t\f\r]*\n(?=\s{{0,40}}{LIST_SIGN})")
_SEPARATOR = re.compile(  # of the items of a menu
    r"(?:[»›→>|·•/]|&(?:bull|gt|middot|raquo|rarr|rsaquo|#183|#187|#8250);)(?:(?:\s|&nbsp;)+|\Z)(?=[^\W\d_a-zß-ÿ]|\Z)"
)
_BACKSLASH = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_SYNTAX = re.compile(r"""(?<!\\)(\\[nt]|\\u00(?:20|[Aa]0)|")""")  # breaks, spaces and, in Android, quotes around spaces
_SVG_BLOCKS = frozenset({"defs", "desc", "g", "svg", "symbol", "text", "title"})
_NEAR = 12  # items before a line break that are examined
_ESCAPES = {"n": "\n", "t": "\t"}


class TokenReader:
    """Reader that goes through the tokens once, and appends texts to `segments`."""

    def __init__(self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment]) -> None:
        self.dialect, self.segments, self.renderer = dialect, segments, Renderer(dialect, segments)
        self.parts: list[Part] = []
        self.elements = ElementIndex(tokens, dialect)
        self.tokens = with_inline_sections(self.elements) if dialect.xml else tokens
        if self.tokens is not tokens:
            self.elements = ElementIndex(self.tokens, dialect)
        self.items: list[InlineItem[Part]] = []
        self.depth = 0  # number of open tags in `items`
        self.languages = MarkupLanguages(self.elements)
        if dialect.languages:
            self.dialect = replace(dialect, languages=(self.languages.source, self.languages.target), fragment=True)
        self.states: list[tuple[int, bool]] = []  # (start tag of an element, whether to translate)

    def read(self) -> list[Part]:
        """Return the parts of the text."""
        number = 0
        while number < len(self.tokens):
            while self.states and number >= self.elements.end[self.states[-1][0]]:
                self._flush()
                self.states.pop()
            number = self._token(number)
        self._flush()
        return self.parts

    @property
    def _translating(self) -> bool:
        return self.states[-1][1] if self.states else True

    def has_text(self) -> bool:
        """Return whether the tokens contain text with letters that a reader sees, translated or not."""
        hidden = self.dialect.textless - VISIBLE
        end = 0  # of the last hidden element
        for number, token in enumerate(self.tokens):
            if number >= end and token.kind is TokenKind.START and token.name in hidden:
                end = self.elements.end[number]
            elif number >= end and token.kind is TokenKind.TEXT and any(map(str.isalpha, token.source)):
                return True
        return False

    def _token(self, number: int) -> int:
        """Read token `number`, or the whole element that begins there. Return the number of the next token to read."""
        token, elements = self.tokens[number], self.elements
        starts = token.kind in (TokenKind.START, TokenKind.EMPTY)
        if starts and self._translating and elements.partner[number] >= 0 and self._has_own_text(number):
            inside = self.tokens[number : elements.end[number]]
            inner = replace(self.dialect, notes=frozenset())
            if token.name == "svg":
                textless = (self.dialect.textless - {"svg"}) | {"metadata"}
                inner = replace(self.dialect, splitting=self.dialect.splitting | _SVG_BLOCKS, textless=textless)
            stands = self.dialect.stands_for_word("sup" if token.name in self.dialect.notes else token.name)
            self.items.append(InlineItem(InlineKind.EMPTY, (self._nested(inside, inner),), stands=stands))
            return elements.end[number]
        if starts and self._translating and (elements.untranslatable(number) or self.languages.is_foreign(token)):
            if self._keep_element(number):
                return elements.end[number]
            self._flush()
            self.states.append((number, False))
            self.parts += self._opening(number)
            return number + 1
        elif starts and not self._translating and self._requests_translation(token):
            self.states.append((number, True))
        if not self._translating:
            self.parts.append(token.source)
        elif token.kind is TokenKind.TEXT:
            self._lines(token.source)
        elif elements.block[number]:
            self._flush()
            self.parts += self._tag(number)
        elif self._keep_symbol(number) or (self._is_note(number) and self._keep_element(number)):
            return elements.end[number]
        elif (section := read_section(number, elements)) is not None:
            self._embed(*section)
        else:
            self._inline(number)
        return number + 1

    def _requests_translation(self, token: Token) -> bool:
        """Return whether an element within one that is not translated is translated."""
        around = self.tokens[self.states[-1][0]]
        language = self.languages.is_foreign(around) and not is_marked_as_kept(around)
        codes = (token.attribute(name) for name in ("lang", "xml:lang")) if language else ()
        return token.attribute("translate") == "yes" or any(
            code and self.languages.names_source(code) for code in codes
        )

    def _keep_element(self, number: int) -> bool:
        """Append the element that begins at `number` to the items, as one item that is not translated. Return True.

        Return False, without appending an item, if the element has no end tag or contains a block. Without an end tag,
        the element would include all text after it. A textless element of XML may contain blocks.
        """
        elements = self.elements
        end = elements.end[number]
        textless = elements.is_textless(number)
        opaque = self.dialect.xml and textless
        if (elements.holds_block(number) and not opaque) or (end > number + 1 and elements.partner[number] < 0):
            return False
        inside = self.tokens[number:end]
        text = ""
        is_note = self._is_note(number)
        if not textless and not is_note:
            text = decode("".join(part.source for part in inside if part.kind is TokenKind.TEXT), self.dialect.xml)
            text = " ".join(text.split()) if self.dialect.collapse else text
        tags = (*self._opening(number), "".join(part.source for part in inside[1:]))
        if inside[0].attribute("ctype") == "lb":  # of XLIFF
            self._break(tags, end)
            return True
        kind = InlineKind.KEPT if text.strip() else InlineKind.EMPTY
        stands = self.dialect.stands_for_word("sup" if is_note else inside[0].name)
        glued = is_note and end < len(self.tokens) and self.tokens[end].source[:1].isalnum()
        self.items.append(InlineItem(kind, tags, text, breaks=glued, stands=stands))
        return True

    def _keep_symbol(self, number: int) -> bool:
        """Append an index of letters and the symbol before it, as in `<i>T</i><sub>max</sub>`, as one KEPT item."""
        inside = [token.source for token in self.tokens[number : min(self.elements.end[number], number + 4)]]
        before = self.items[-3:] if self.items and self.items[-1].kind is InlineKind.CLOSE else self.items[-1:]
        is_index = self.tokens[number].name == "sub" and len(inside) == 3
        symbol = symbol_before(before[len(before) // 2], inside[1]) if before and is_index else None
        if symbol is None or (len(before) > 1 and (symbol.start() or before[0].key != before[-1].key)):
            return False
        del self.items[-len(before) :]
        self._append_text(symbol.string[: symbol.start()])
        around = [*before[0].parts, symbol[0], *before[-1].parts] if len(before) > 1 else [symbol[0]]
        self.items.append(InlineItem(InlineKind.KEPT, (*around, *inside), symbol[0] + inside[1]))
        return True

    def _is_note(self, number: int) -> bool:
        """Return whether the element that begins at `number` is a footnote mark.

        Exponents and parts of formulas are not footnote marks.
        """
        token = self.tokens[number]
        if token.kind is not TokenKind.START or token.name not in NOTE_NAMES or not self.items:
            return False
        before = (item.text for item in islice(reversed(self.items), 2 * MAX_TOKENS) if item.text or item.breaks)
        return is_note_element(self._beginning(number), before, self.dialect.raised)

    def _has_own_text(self, number: int) -> bool:
        """Return whether the element that begins at `number` has text that is not part of the text around it."""
        name = self.tokens[number].name
        if self.languages.is_foreign(self.tokens[number]):
            return False
        if name in self.dialect.notes:
            return True
        if name == "svg" and name in self.dialect.textless and not is_marked_as_kept(self.tokens[number]):
            inside = self.tokens[number : self.elements.end[number]]
            return any(token.kind is TokenKind.TEXT and any(map(str.isalpha, token.source)) for token in inside)
        if name != "sup" or not self.items or self.elements.holds_block(number):
            return False
        return is_remark(self._beginning(number))

    def _beginning(self, number: int) -> Sequence[Token]:
        """Return the tokens of an element, or one more than a footnote mark can have."""
        return self.tokens[number : min(self.elements.end[number], number + MAX_TOKENS + 1)]

    def _embed(self, opening: str, content: str, closing: str) -> None:
        """Add a CDATA section as HTML, if it contains a tag or a reference, or else as text."""
        self._flush()
        backslashes = self.dialect.backslashes
        if is_html(content):
            inner = replace(HTML, backslashes=backslashes, messages=self.dialect.messages)
            tokens = list(html_tokens(content))
        else:
            inner = replace(self.dialect, splitting=frozenset(), collapse=False, literal=True)
            tokens = [Token(TokenKind.TEXT, content)]
        self.parts += [opening, self._nested(tokens, inner), closing]

    def _nested(self, tokens: Sequence[Token], dialect: Dialect) -> Render:
        """Read tokens within these tokens by another dialect, and return the part that renders them."""
        return partial(render_parts, TokenReader(tokens, dialect, self.segments).read())

    def _lines(self, source: str) -> None:
        """Append a text to the items. A line that begins with a bullet is a text of its own, unless a tag is open."""
        place = 0
        for line in _LINE_OF_LIST.finditer(source):
            self._text(source[place : line.start()])
            place = line.start()
            if self.depth == 0:
                self._flush()
                self.parts.append(line[0])
                place = line.end()
        self._text(source[place:])

    def _text(self, source: str) -> None:
        """Append a text to the items. Leading and trailing white space and unknown entities become separate items."""
        before, body, after = split_whitespace(source, _HTML_SPACE)
        self._append_text(before)
        if self.dialect.backslashes:
            for piece, following in pairwise([*_SYNTAX.split(body), ""]):
                if piece == "\\n":
                    self._divide((piece,), following)
                elif _SYNTAX.fullmatch(piece):
                    self.items.append(InlineItem(InlineKind.EMPTY, (piece,), breaks=piece != '"'))
                else:
                    for part in split_whitespace(piece, _HTML_SPACE):
                        self._append_text(part)
        elif self.dialect.xml:
            run = ""
            for (piece, meaning), (following, _) in pairwise([*references(body, xml=True), ("", "")]):
                is_break = meaning == "\n" != piece and self.dialect.collapse  # as &#10; in a wrapped text
                if meaning is not None and not is_break:
                    run += piece
                    continue
                self._append_text(run)
                run = ""
                if is_break:
                    self._divide((piece,), following)
                else:
                    self.items.append(InlineItem(InlineKind.KEPT, (piece,), piece))
            self._append_text(run)
        else:
            self._append_text(body)
        self._append_text(after)

    def _append_text(self, source: str) -> None:
        if source:
            self.items.append(InlineItem(InlineKind.TEXT, (source,), source))

    def _inline(self, number: int) -> None:
        token, partner = self.tokens[number], self.elements.partner[number]
        parts = self._tag(number)
        divides = "" if token.name in ("sub", "sup") else token.name
        if token.kind is TokenKind.START and partner >= 0:
            self.depth += 1
            stands = self.dialect.stands_for_word(token.name)
            self.items.append(InlineItem(InlineKind.OPEN, parts, key=number, stands=stands, divides=divides))
        elif token.kind is TokenKind.END:
            self.depth -= 1
            self.items.append(InlineItem(InlineKind.CLOSE, parts, key=partner, divides=divides))
        elif token.kind is TokenKind.EXPRESSION:
            self.items.append(InlineItem(InlineKind.KEPT, parts, " ".join(token.source.split())))
        elif token.name in self.dialect.breaks if self.dialect.xml else token.name == "br":
            self._break(parts, number + 1)
        else:
            lost = token.kind is TokenKind.START and self.elements.end[number] != number + 1
            stands = StandsForWord.NEVER if lost else self.dialect.stands_for_word(token.name)
            self.items.append(InlineItem(InlineKind.OPEN if lost else InlineKind.EMPTY, parts, stands=stands))

    def _break(self, parts: tuple[Part, ...], after: int) -> None:
        """Append a line break before token `after`, or end the text there."""
        following = next((token.source for token in self.tokens[after : after + 3] if token.source[0] != "<"), "")
        self._divide(parts, following)

    def _divide(self, parts: tuple[Part, ...], following: str) -> None:
        """Append a line break, or end the text there if the line before it ends one or `following` begins one."""
        before = next((item for item in reversed(self.items) if item.text.strip() or item.breaks), None)
        line = "" if before is None or before.breaks else "".join(item.text or " " for item in self.items[-_NEAR:])
        if divides_lines(line, following, self.languages.source):
            self._flush()
            self.parts += parts
        else:
            self.items.append(InlineItem(InlineKind.EMPTY, parts, breaks=True))

    def _opening(self, number: int) -> tuple[Part, ...]:
        """Return the parts of the first tag of an element that is not translated.

        Its attributes are translated if the element is not translated because of its name only, such as a <textarea>.
        """
        token = self.tokens[number]
        if not self.dialect.attributes or not self.elements.is_textless(number) or is_marked_as_kept(token):
            return (token.source,)
        return self._tag(number)

    def _tag(self, number: int) -> tuple[Part, ...]:
        """Return the parts of a tag: its source, with a part for each attribute value that is text or a language.

        Append the segments of these values to `segments`.
        """
        token = self.tokens[number]
        parts: list[Part] = []
        place = 0
        if not token.attributes:
            return (token.source,)
        texts = text_attributes(token) if self.dialect.attributes and token.kind is not TokenKind.END else frozenset()
        codes = language_attributes(token) if self.dialect.languages else frozenset()
        codes |= {"dir"} if codes and self.elements.block[number] else set()
        for attribute in token.attributes:
            source = token.source[attribute.begin : attribute.end]
            part: Part | None = None
            if attribute.name in texts and any(map(str.isalpha, attribute.value)) and not _holds_code(source):
                part = partial(self.renderer.value, source, attribute.value, partial(text_of, len(self.segments)))
                self.segments.append(Segment(attribute.value))
            elif attribute.name == "srcdoc" and self.dialect.srcdoc and token.name == "iframe":
                inner = self._nested(list(html_tokens(attribute.value)), replace(self.dialect, srcdoc=False))
                part = partial(self.renderer.value, source, attribute.value, inner)
            elif attribute.name in codes and (written := self.languages.translated(token, attribute)) != source:
                part = partial(self.renderer.language, source, written)
            if part is not None:
                parts += (token.source[place : attribute.begin], part)
                place = attribute.end
        return (*parts, token.source[place:])

    def _flush(self) -> None:
        items, self.items, self.depth = self.items, [], 0
        if not self.dialect.messages:
            for group in _menu_items(items):
                self._add(group, self._decode)
            return
        for part, translated, decode_part in split_items(items, self._decode):
            if translated:
                self._add(part, decode_part)
            else:
                self.parts += [source for item in part for source in item.parts]

    def _add(self, items: Sequence[InlineItem[Part]], decode_items: Decode) -> None:
        inline = read_inline(items, decode_items, self.dialect.collapse)
        before, source, after = inline.sources()
        self.parts += before
        if inline.built is None:
            self.parts += source
        else:
            self.parts.append(partial(self.renderer.text, len(self.segments), source, inline.built))
            self.segments.append(inline.built.segment)
        self.parts += after

    @property
    def _decode(self) -> Decode:
        if self.dialect.literal and not self.dialect.backslashes:
            return decode_nothing
        return _decode_backslashes if self.dialect.backslashes else partial(references, xml=self.dialect.xml)


def _menu_items(items: Sequence[InlineItem[Part]]) -> list[list[InlineItem[Part]]]:
    """Divide a menu such as `<a>Home</a> » <a>Cars</a><a>Help</a>` at separators and links. Other items are one group.

    Between its elements, a menu has only separators, and after the last one a text. Links in lower case are a menu only
    if the first one is in lower case or a number. Labels of a form divide as links do.
    """
    groups: list[list[InlineItem[Part]]] = [[]]
    depth, begun = 0, False
    first = next((item.text for item in items if item.has_words), "")
    for number, item in enumerate(items):
        depth += (item.kind is InlineKind.OPEN) - (item.kind is InlineKind.CLOSE)
        if item.kind is not InlineKind.TEXT or depth or item.text.isspace():
            begins = begun and depth == 1 and item.kind is InlineKind.OPEN and item.divides in ("a", "label")
            may_go_on = item.divides == "a" and first[:1].isupper()
            if begins and not (may_go_on and any(one.text[:1].islower() for one in items[number + 1 : number + 3])):
                groups.append([])
            groups[-1].append(item)
            begun = begun or item.has_words
            continue
        separator = _SEPARATOR.match(item.text)
        if separator is None or not begun:
            return [list(items)]
        pieces = separator[0], item.text[separator.end() :]
        groups += [[InlineItem(InlineKind.TEXT, (piece,), piece)] if piece else [] for piece in pieces]
        begun = bool(pieces[1])
    return groups


def _holds_code(value: str) -> bool:
    """Return whether the value of an attribute, in its quotes, has an expression that would be escaped in a text."""
    escaped = {"&", "<", value[:1]}
    return any(not escaped.isdisjoint(value[code.begin : code.end]) for code in find_templates(value))


def _decode_backslashes(text: str) -> Iterator[tuple[str, str | None]]:
    """Split a text at XML references and at escapes such as `\\n`. Yield (source, decoded text) of each piece."""

    def meaning(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])

    return decode_pieces(references(text, xml=True), _BACKSLASH, meaning)
