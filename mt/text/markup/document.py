"""A marked-up text taken apart into segments, and put together again from their translations.

What is not translated comes back byte for byte: markup, comments, scripts, styles, code, declarations, and the white
space between blocks. A segment whose translation is its own text does, too. Within one that was translated, tags stand
where `placement` puts them, white space is what the translation has, and of characters only `&` and `<` are escaped,
and those that the source had escaped.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mt.text.markup.elements import BLOCKS, Dialect, Elements
from mt.text.markup.marks import Segment, Translated
from mt.text.markup.placement import arrange
from mt.text.markup.slots import Item, ItemKind, around, build, trim, writes_nothing
from mt.text.markup.tokens import Kind, Token, decode, html_tokens, references, xml_tokens

TRANSLATABLE_ATTRIBUTES = frozenset({"alt", "aria-label", "placeholder", "title"})
_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_TEXTLESS = frozenset(
    {
        *("iframe", "math", "noembed", "noframes", "plaintext", "pre", "script", "style", "svg", "template"),
        *("textarea", "xmp"),
    }
)
_HTML_SPACE = " \t\n\f\r"
_SENTENCE_END = re.compile(r"""[.!?…:;。！？]["'”’»)\]]*\s*$""")
_NOTE = re.compile(r"\s*[\[(]?(?:\d{1,3}|[*†‡§]{1,3})[\])]?\s*")
_NOTE_TOKENS = 8  # more than a note, within links, has
_LONG_WORD = re.compile(r"""[^\W\d_]{3}[.,;:!?"'”’»)\]]*$""")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class MarkupOptions:
    """DeepL's: names of elements not to translate, not to end a text at, and to end one at; and whether the structure
    of XML is to be found out. Names of HTML are in lower case."""

    ignore_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    outline_detection: bool = True


def parse_html(text: str, options: MarkupOptions | None = None) -> "Markup":
    """The segments of HTML, a document or a part of one. What is malformed keeps its tags in their order."""
    options = options or MarkupOptions()
    dialect = Dialect(
        xml=False,
        splitting=(BLOCKS | options.splitting_tags) - options.non_splitting_tags,
        textless=_TEXTLESS,
        kept=_CODE | options.ignore_tags,
        attributes=TRANSLATABLE_ATTRIBUTES,
    )
    return Markup(list(html_tokens(text)), dialect)


def parse_xml(text: str, options: MarkupOptions | None = None) -> "Markup":
    """The segments of XML, well-formed or not: an element ends a text unless text stands beside it."""
    options = options or MarkupOptions()
    dialect = Dialect(
        xml=True,
        splitting=options.splitting_tags,
        non_splitting=options.non_splitting_tags,
        outline=options.outline_detection,
        kept=options.ignore_tags,
    )
    return parse_dialect(text, dialect)


def parse_dialect(text: str, dialect: Dialect) -> "Markup":
    """The segments of markup that is neither plain HTML nor plain XML, such as XLIFF's."""
    return Markup(list(xml_tokens(text) if dialect.xml else html_tokens(text)), dialect)


@dataclass(frozen=True, slots=True)
class _Value:
    """A translatable attribute: its segment, and its value as it was written, quotes included."""

    number: int
    source: str


Part = str | _Value


@dataclass(frozen=True, slots=True)
class _Slot:
    """A translatable text: its segment, all of its source, and that of its marks."""

    number: int
    source: tuple[Part, ...]
    openings: tuple[tuple[Part, ...], ...]
    closings: tuple[Part | None, ...]
    forms: dict[str, str]


class Markup:
    """A marked-up text. `segments` are to be translated, in this order."""

    def __init__(self, tokens: Sequence[Token], dialect: Dialect) -> None:
        self.segments: list[Segment] = []
        self._dialect = dialect
        self._parts: list[Part | _Slot] = []
        _Reader(tokens, dialect, self.segments, self._parts).read()

    def render(self, translations: Sequence[Translated]) -> str:
        """The text with a translation for each segment."""
        assert len(translations) == len(self.segments)
        return "".join(
            self._slot(part, translations) if isinstance(part, _Slot) else self._part(part, translations)
            for part in self._parts
        )

    def _part(self, part: Part, translations: Sequence[Translated]) -> str:
        if isinstance(part, str):
            return part
        text = translations[part.number].text
        if text == self.segments[part.number].text:
            return part.source
        quote = part.source[:1] if part.source[:1] in ('"', "'") else '"'
        forms = {quote: "&quot;" if quote == '"' else "&#39;"}
        return quote + escape(text, forms, self._dialect.xml) + quote

    def _slot(self, slot: _Slot, translations: Sequence[Translated]) -> str:
        segment, translated = self.segments[slot.number], translations[slot.number]
        write = partial(self._part, translations=translations)
        if translated.text == segment.text:
            return "".join(map(write, slot.source))
        found: list[str] = []
        for piece in arrange(segment, translated):
            if piece.opens >= 0:
                found += map(write, slot.openings[piece.opens])
            elif piece.closes >= 0:
                found.append(write(slot.closings[piece.closes] or ""))
            else:
                found.append(escape(piece.text, slot.forms, self._dialect.xml))
        return "".join(found)


def escape(text: str, forms: dict[str, str], xml: bool) -> str:
    """Text as markup: `&`, `<`, and what has a form of its own. XML loses the characters that it cannot hold."""
    table = str.maketrans({"&": "&amp;", "<": "&lt;", **forms})
    if not xml:
        return text.translate(table)
    return _NOT_XML.sub("", text).translate(table).replace("]]>", "]]&gt;")


class _Reader:
    """One walk through the tokens, that fills segments and parts."""

    def __init__(
        self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment], parts: list[Part | _Slot]
    ) -> None:
        self.tokens, self.dialect, self.segments, self.parts = tokens, dialect, segments, parts
        self.elements = Elements(tokens, dialect)
        self.items: list[Item[Part]] = []
        self.states: list[tuple[int, bool]] = []  # (token at which it ends, whether to translate)

    def read(self) -> None:
        number = 0
        while number < len(self.tokens):
            while self.states and number >= self.states[-1][0]:
                self._flush()
                self.states.pop()
            number = self._token(number)
        self._flush()

    @property
    def _on(self) -> bool:
        return self.states[-1][1] if self.states else True

    def _token(self, number: int) -> int:
        """Takes in a token, or a whole element; returns the number of the next."""
        token, elements = self.tokens[number], self.elements
        starts = token.kind in (Kind.START, Kind.EMPTY)
        if starts and self._on and elements.untranslatable(number):
            if self._whole(number):
                return elements.end[number]
            self._flush()
            self.states.append((elements.end[number], False))
        elif starts and not self._on and elements.asks_for_translation(number):
            self.states.append((elements.end[number], True))
        if not self._on:
            self.parts.append(token.source)
        elif token.kind is Kind.TEXT:
            self._text(token.source)
        elif elements.block[number]:
            self._flush()
            self.parts += self._tag(number)
        elif self._is_note(number):
            self._whole(number)
            return elements.end[number]
        else:
            self._inline(number)
        return number + 1

    def _whole(self, number: int) -> bool:
        """An element that is no text, or stays as it is, within a text; False if it is no part of a text."""
        elements, token = self.elements, self.tokens[number]
        end = elements.end[number]
        if elements.holds_block(number):
            return False
        inside = self.tokens[number:end]
        text = ""
        if token.name not in self.dialect.textless and not self._is_note(number):
            text = decode("".join(each.source for each in inside if each.kind is Kind.TEXT), self.dialect.xml)
            text = " ".join(text.split()) if self.dialect.collapse else text
        source = "".join(each.source for each in inside)
        self.items.append(Item(ItemKind.KEPT if text.strip() else ItemKind.EMPTY, (source,), text))
        return True

    def _is_note(self, number: int) -> bool:
        """Whether an element is the sign of a footnote, and not a power or part of a formula."""
        token = self.tokens[number]
        if token.name != "sup" or token.kind is not Kind.START or self.dialect.xml or not self.items:
            return False
        inside = self.tokens[number : min(self.elements.end[number], number + _NOTE_TOKENS)]
        text = "".join(each.source for each in inside if each.kind is Kind.TEXT)
        before = next((item.text for item in reversed(self.items) if item.kind is not ItemKind.CLOSE), "")
        return bool(_NOTE.fullmatch(text) and _LONG_WORD.search(before))

    def _text(self, source: str) -> None:
        """White space at the ends becomes items of its own, and so do entities that nobody knows."""
        before, body, after = around(source, _HTML_SPACE)
        self._append_text(before)
        if self.dialect.xml:
            run = ""
            for piece, meaning in references(body, xml=True):
                if meaning is None:
                    self._append_text(run)
                    self.items.append(Item(ItemKind.KEPT, (piece,), piece))
                run = "" if meaning is None else run + piece
            self._append_text(run)
        else:
            self._append_text(body)
        self._append_text(after)

    def _append_text(self, source: str) -> None:
        if source:
            self.items.append(Item(ItemKind.TEXT, (source,), source))

    def _inline(self, number: int) -> None:
        token, partner = self.tokens[number], self.elements.partner[number]
        parts = self._tag(number)
        if token.kind is Kind.START and partner >= 0:
            self.items.append(Item(ItemKind.OPEN, parts, key=number))
        elif token.kind is Kind.END:
            self.items.append(Item(ItemKind.CLOSE, parts, key=partner))
        elif token.name == "br" and not self.dialect.xml:
            before = next((item for item in reversed(self.items) if item.text.strip() or item.breaks), None)
            if before is None or before.breaks or _SENTENCE_END.search(before.text[-20:]):
                self._flush()
                self.parts += parts
            else:
                self.items.append(Item(ItemKind.EMPTY, parts, breaks=True))
        else:
            lost = token.kind is Kind.START and self.elements.end[number] != number + 1
            self.items.append(Item(ItemKind.OPEN if lost else ItemKind.EMPTY, parts, key=-1))

    def _tag(self, number: int) -> tuple[Part, ...]:
        """The source of a tag, its translatable attributes as segments."""
        token = self.tokens[number]
        parts: list[Part] = []
        place = 0
        for attribute in token.attributes:
            wanted = attribute.name in self.dialect.attributes and any(map(str.isalpha, attribute.value))
            if wanted and token.kind is Kind.START:
                parts.append(token.source[place : attribute.begin])
                parts.append(_Value(len(self.segments), token.source[attribute.begin : attribute.end]))
                self.segments.append(Segment(attribute.value))
                place = attribute.end
        return (*parts, token.source[place:])

    def _flush(self) -> None:
        """Ends a text: a slot of what lies between its first word and its last, and the rest as it is."""
        items, self.items = self.items, []
        begin, end = trim(items)
        middle = items[begin:end]
        for item in items[:begin]:
            self.parts += item.parts
        if writes_nothing(middle, self._decode):
            for item in middle:
                self.parts += item.parts
        else:
            built = build(middle, self._decode, self.dialect.collapse)
            source = tuple(part for item in middle for part in item.parts)
            self.parts.append(_Slot(len(self.segments), source, built.openings, built.closings, built.forms))
            self.segments.append(built.segment)
        for item in items[end:]:
            self.parts += item.parts

    @property
    def _decode(self) -> Callable[[str], Iterator[tuple[str, str | None]]]:
        return partial(references, xml=self.dialect.xml)
