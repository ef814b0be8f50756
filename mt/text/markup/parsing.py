"""Parsing of HTML and XML into segments, and rendering of their translations.

Everything that is not translated is preserved byte for byte: markup, comments, scripts, styles, code, declarations,
white space between blocks, and segments whose translation equals their text. In a translated segment, the module
`placement` places the tags, the white space is that of the translation, and `&`, `<` and all characters that the source
escapes are escaped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mt.text.markup.attributes import direction, language_attributes, same_language, text_attributes
from mt.text.markup.elements import BLOCKS, Dialect, ElementIndex, is_marked_as_kept
from mt.text.markup.inline import (
    BuiltSegment,
    Decode,
    InlineItem,
    InlineKind,
    StandsForWord,
    decode_nothing,
    read_inline,
    split_whitespace,
)
from mt.text.markup.marks import Segment, TranslatedSegment
from mt.text.markup.messages import split_items
from mt.text.markup.notes import is_note_mark
from mt.text.markup.tokens import Attribute, Token, TokenKind, decode, html_tokens, references, xml_tokens
from mt.text.messages import safe_apostrophes

_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_TEXTLESS = frozenset(
    {
        *("iframe", "math", "noembed", "noframes", "plaintext", "pre", "script", "style", "svg", "template"),
        *("rp", "rt", "rtc", "textarea", "xmp"),  # rt: the reading of a word
    }
)
_VISIBLE = frozenset({"math", "plaintext", "pre", "rt", "rtc", "svg", "textarea", "xmp"})  # of _TEXTLESS
_HTML_SPACE = " \t\n\f\r"
SENTENCE_END = re.compile(r"""[.!?…:;。！？]["'”’»)\]]*\s*$""")
_NOTE_TOKENS = 8  # maximum number of tokens in a footnote mark
BULLET = re.compile(r"\s*(?:[-–—*•·‣▪◦●■□✓✔➢+]|\d{1,3}[.)]|[A-Za-z]\))[ \t]")
_LINE_OF_LIST = re.compile(rf"[ \t\f\r]*\n(?={BULLET.pattern})")
_BACKSLASH = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_SYNTAX = re.compile(r"""(?<!\\)(\\n|")""")  # line breaks and, in the resources of Android, quotes around spaces
_ESCAPES = {"n": "\n", "t": "\t"}
_BACKSLASH_FORMS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_LITERAL_FORMS = {"&": "&", "<": "<"}
_CDATA = re.compile(r"(<!\[CDATA\[)(.*)(\]\]>)", re.DOTALL)
_HTML_WITHIN = re.compile(r"</?[A-Za-z]|&(?:[A-Za-z]+|#\d+|#[xX][0-9A-Fa-f]+);")
_VERBATIM = frozenset({"code", "codeblock", "listing", "pre", "programlisting", "screen", "script", "source", "style"})
"""Local names of XML elements whose CDATA sections are code."""

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class MarkupOptions:
    """Options for markup, as in DeepL's API. Names of HTML elements are in lower case.

    Elements in `ignore_tags` are not translated. The tags of elements in `splitting_tags` end a text, those of elements
    in `non_splitting_tags` do not. For all other elements of XML, `outline_detection` decides: if it is true, their
    tags end a text unless they are surrounded by text; if it is false, they do not.

    `languages` is the source language, or "" if it is the first that the markup names, and the target language. If they
    are given, attributes that name the source language name the target language in a translation.
    """

    ignore_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    outline_detection: bool = True
    languages: tuple[str, str] | None = None


def parse_html(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse an HTML document or fragment.

    If a start or end tag is missing in a text, all tags of the text keep their order. The segments are appended to the
    list `segments`. Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    return parse_dialect(text, _html_dialect(options or MarkupOptions()), segments)


def _html_dialect(options: MarkupOptions) -> Dialect:
    return Dialect(
        xml=False,
        splitting=(BLOCKS | options.splitting_tags) - options.non_splitting_tags,
        textless=_TEXTLESS,
        kept=_CODE | options.ignore_tags,
        attributes=True,
        srcdoc=True,
        languages=options.languages,
        words=True,
    )


def parse_xml(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse XML, whether it is well-formed or not.

    By default, a tag ends a text unless the parent of its element also contains text directly. A CDATA section without
    text beside it is translated, as HTML if it contains a tag or a reference of HTML. The segments are appended to the
    list `segments`. Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    options = options or MarkupOptions()
    dialect = Dialect(
        xml=True,
        splitting=options.splitting_tags,
        non_splitting=options.non_splitting_tags,
        outline=options.outline_detection,
        kept=options.ignore_tags,
        breaks=frozenset({"br"}),
        words=True,
        languages=options.languages,
    )
    return parse_dialect(text, dialect, segments)


def parse_dialect(text: str, dialect: Dialect, segments: list[Segment] | None = None) -> "Markup":
    """Parse markup by the rules of `dialect`. The segments are appended to the list `segments`."""
    tokens = list(xml_tokens(text) if dialect.xml else html_tokens(text))
    return Markup(tokens, dialect, [] if segments is None else segments)


@dataclass(frozen=True, slots=True)
class _Value:
    """Value of a translatable attribute. `segment_index` is that of its segment, and `source` includes the quotes."""

    segment_index: int
    source: str


@dataclass(frozen=True, slots=True)
class _Embedded:
    """Markup within a text, with segments of its own: a note, or a CDATA section."""

    markup: "Markup"


@dataclass(frozen=True, slots=True)
class _Changing:
    """Part of a tag that is rendered as `translated` if any translation differs from its segment."""

    source: str
    translated: str


@dataclass(frozen=True, slots=True)
class _Document:
    """Value of an attribute that is an HTML document. `value` is its text, and `source` includes the quotes."""

    markup: "Markup"
    value: str
    source: str


Part = str | _Value | _Embedded | _Changing | _Document


@dataclass(frozen=True, slots=True)
class _Slot:
    """A translatable text. `segment_index` is the index of its segment.

    `source` is rendered if the translation equals the segment. `built` is the segment with the sources of its marks.
    """

    segment_index: int
    source: Sequence[Part]
    built: BuiltSegment[Part]


class Markup:
    """A parsed HTML or XML text. `segments` are the texts to translate, in order.

    `tags` contains (kind and name, number) of its tags that a translation keeps. `has_text` is whether it has text,
    translated or not.
    """

    def __init__(self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment]) -> None:
        self.segments = segments
        self._dialect = dialect
        self._parts: list[Part | _Slot] = []
        self._compared: tuple[Sequence[TranslatedSegment], bool] | None = None  # of the last call of `_is_changed`
        lost = dialect.spaces | {""}
        tags = Counter((token.kind.value, token.name) for token in tokens if token.name not in lost)
        self.tags = sorted(tags.items())
        reader = _Reader(tokens, dialect, self.segments, self._parts)
        reader.read()
        self.has_text = bool(self.segments) or reader.has_text()

    def render(self, translations: Sequence[TranslatedSegment]) -> str:
        assert len(translations) == len(self.segments)
        return "".join(
            self._slot(part, translations) if isinstance(part, _Slot) else self._part(part, translations)
            for part in self._parts
        )

    def _part(self, part: Part, translations: Sequence[TranslatedSegment]) -> str:
        if isinstance(part, _Embedded):
            return part.markup.render(translations)
        if isinstance(part, str):
            return part
        if isinstance(part, _Changing):
            return part.translated if self._is_changed(translations) else part.source
        if isinstance(part, _Document):
            text, before = part.markup.render(translations), part.value
        else:
            text, before = translations[part.segment_index].text, self.segments[part.segment_index].text
        if text == before:
            return part.source
        quote = part.source[:1] if part.source[:1] in ('"', "'") else '"'
        forms = {quote: "&quot;" if quote == '"' else "&#39;"}
        return quote + escape(text, forms, self._dialect.xml) + quote

    def _is_changed(self, translations: Sequence[TranslatedSegment]) -> bool:
        if self._compared is None or self._compared[0] is not translations:
            pairs = zip(self.segments, translations, strict=True)
            self._compared = translations, any(segment.text != new.text for segment, new in pairs)
        return self._compared[1]

    def _slot(self, slot: _Slot, translations: Sequence[TranslatedSegment]) -> str:
        translated = translations[slot.segment_index]
        parts = slot.source
        if translated.text != slot.built.segment.text:
            if self._dialect.messages and slot.built.forms.get("'") != "''":
                translated = replace(translated, text=safe_apostrophes(translated.text, slot.built.segment.text))
            forms = {
                **(_BACKSLASH_FORMS if self._dialect.backslashes else {}),
                **(_LITERAL_FORMS if self._dialect.literal else {}),
                **slot.built.forms,
            }
            parts = slot.built.render(translated, partial(escape, forms=forms, xml=self._dialect.xml))
        return "".join(self._part(part, translations) for part in parts)


def escape(text: str, forms: dict[str, str], xml: bool) -> str:
    """Escape `&`, `<` and the characters in `forms`, which maps characters to their escaped forms.

    If `xml` is true, also escape `]]>`, and remove characters that XML does not allow.
    """
    table = str.maketrans({"&": "&amp;", "<": "&lt;", **forms})
    if not xml:
        return text.translate(table)
    return NOT_XML.sub("", text).translate(table).replace("]]>", "]]&gt;")


class _Reader:
    """Reader that goes through the tokens once and fills the lists `segments` and `parts`."""

    def __init__(
        self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment], parts: list[Part | _Slot]
    ) -> None:
        self.tokens, self.dialect, self.segments, self.parts = tokens, dialect, segments, parts
        self.elements = ElementIndex(tokens, dialect)
        self.items: list[InlineItem[Part]] = []
        self.depth = 0  # number of open tags in `items`
        self.language = ""  # the source language that the languages of elements are compared with
        self.states: list[tuple[int, bool]] = []  # (token after the element, whether to translate)

    def read(self) -> None:
        number = 0
        while number < len(self.tokens):
            while self.states and number >= self.states[-1][0]:
                self._flush()
                self.states.pop()
            number = self._token(number)
        self._flush()

    @property
    def _translating(self) -> bool:
        return self.states[-1][1] if self.states else True

    def has_text(self) -> bool:
        """Return whether the tokens contain text with letters that a reader sees, translated or not."""
        hidden = self.dialect.textless - _VISIBLE
        number = 0
        while number < len(self.tokens):
            token = self.tokens[number]
            if token.kind is TokenKind.START and token.name in hidden:
                number = self.elements.end[number]
                continue
            if token.kind is TokenKind.TEXT and any(map(str.isalpha, token.source)):
                return True
            number += 1
        return False

    def _token(self, number: int) -> int:
        """Read token `number`, or the whole element that begins there. Return the number of the next token to read."""
        token, elements = self.tokens[number], self.elements
        starts = token.kind in (TokenKind.START, TokenKind.EMPTY)
        if starts and self._translating and token.name in self.dialect.notes and elements.partner[number] >= 0:
            inside = self.tokens[number : elements.end[number]]
            note = Markup(inside, replace(self.dialect, notes=frozenset()), self.segments)
            self.items.append(InlineItem(InlineKind.EMPTY, (_Embedded(note),)))
            return elements.end[number]
        if starts and self._translating and elements.untranslatable(number):
            if self._keep_element(number):
                return elements.end[number]
            self._flush()
            self.states.append((elements.end[number], False))
            self.parts += self._opening(number)
            return number + 1
        elif starts and not self._translating and elements.requests_translation(number):
            self.states.append((elements.end[number], True))
        if not self._translating:
            self.parts.append(token.source)
        elif token.kind is TokenKind.TEXT:
            self._lines(token.source)
        elif elements.block[number]:
            self._flush()
            self.parts += self._tag(number)
        elif self._is_note(number) and self._keep_element(number):
            return elements.end[number]
        elif (section := self._cdata(number)) is not None:
            self._embed(section)
        else:
            self._inline(number)
        return number + 1

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
        if not textless and not self._is_note(number):
            text = decode("".join(part.source for part in inside if part.kind is TokenKind.TEXT), self.dialect.xml)
            text = " ".join(text.split()) if self.dialect.collapse else text
        rest = "".join(part.source for part in inside[1:])
        kind = InlineKind.KEPT if text.strip() else InlineKind.EMPTY
        stands = self.dialect.stands_for_word("sup" if self._is_note(number) else inside[0].name)
        self.items.append(InlineItem(kind, (*self._opening(number), rest), text, stands=stands))
        return True

    def _is_note(self, number: int) -> bool:
        """Return whether the element that begins at `number` is a footnote mark.

        Exponents and parts of formulas are not footnote marks.
        """
        if self.tokens[number].kind is not TokenKind.START or not self.items:
            return False
        inside = self.tokens[number : min(self.elements.end[number], number + _NOTE_TOKENS)]
        before = (item.text for item in reversed(self.items) if item.kind is not InlineKind.CLOSE)
        return is_note_mark(inside, before)

    def _cdata(self, number: int) -> re.Match[str] | None:
        """Return the match of a CDATA section that is translated, or None."""
        token = self.tokens[number]
        if not self.dialect.xml or token.kind is not TokenKind.OTHER or self.elements.within_text(number):
            return None
        parent = self.elements.parent[number]
        if parent >= 0 and self.tokens[parent].name.rpartition(":")[2] in _VERBATIM:
            return None
        return _CDATA.fullmatch(token.source)

    def _embed(self, section: re.Match[str]) -> None:
        """Add a CDATA section as HTML, if it contains a tag or a reference, or else as text."""
        self._flush()
        opening, inside, closing = section.groups()
        backslashes = self.dialect.backslashes
        if _HTML_WITHIN.search(inside):
            inner = replace(_html_dialect(MarkupOptions()), backslashes=backslashes, messages=self.dialect.messages)
            tokens = list(html_tokens(inside))
        else:
            inner = replace(self.dialect, splitting=frozenset(), collapse=False, literal=True)
            tokens = [Token(TokenKind.TEXT, inside)]
        self.parts += [opening, _Embedded(Markup(tokens, inner, self.segments)), closing]

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
            for piece in _SYNTAX.split(body):
                if piece in ("\\n", '"'):
                    self.items.append(InlineItem(InlineKind.EMPTY, (piece,), breaks=piece != '"'))
                else:
                    for part in split_whitespace(piece, _HTML_SPACE):
                        self._append_text(part)
        elif self.dialect.xml:
            run = ""
            for piece, meaning in references(body, xml=True):
                if meaning is None:
                    self._append_text(run)
                    self.items.append(InlineItem(InlineKind.KEPT, (piece,), piece))
                run = "" if meaning is None else run + piece
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
        divides = self.dialect.words and token.name not in ("sub", "sup")
        if token.kind is TokenKind.START and partner >= 0:
            self.depth += 1
            stands = self.dialect.stands_for_word(token.name)
            self.items.append(InlineItem(InlineKind.OPEN, parts, key=number, stands=stands, divides=divides))
        elif token.kind is TokenKind.END:
            self.depth -= 1
            self.items.append(InlineItem(InlineKind.CLOSE, parts, key=partner, divides=divides))
        elif token.name == "br" and not self.dialect.xml:
            before = next((item for item in reversed(self.items) if item.text.strip() or item.breaks), None)
            following = self.tokens[number + 1].source if number + 1 < len(self.tokens) else ""
            ends = before is None or before.breaks or SENTENCE_END.search(before.text[-20:])
            if ends or BULLET.match(following):
                self._flush()
                self.parts += parts
            else:
                self.items.append(InlineItem(InlineKind.EMPTY, parts, breaks=True))
        elif token.kind is TokenKind.EMPTY and token.name in self.dialect.spaces and not token.attributes:
            self.items.append(InlineItem(InlineKind.TEXT, parts, " "))
        elif token.kind is TokenKind.EMPTY and token.name in self.dialect.breaks:
            self.items.append(InlineItem(InlineKind.EMPTY, parts, breaks=True))
        else:
            lost = token.kind is TokenKind.START and self.elements.end[number] != number + 1
            stands = StandsForWord.NEVER if lost else self.dialect.stands_for_word(token.name)
            self.items.append(InlineItem(InlineKind.OPEN if lost else InlineKind.EMPTY, parts, stands=stands))

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
        texts = text_attributes(token) if self.dialect.attributes and token.kind is TokenKind.START else frozenset()
        codes = language_attributes(token) if self.dialect.languages else frozenset()
        for attribute in token.attributes:
            source = token.source[attribute.begin : attribute.end]
            part: Part | None = None
            if attribute.name in texts and any(map(str.isalpha, attribute.value)):
                part = _Value(len(self.segments), source)
                self.segments.append(Segment(attribute.value))
            elif attribute.name == "srcdoc" and self.dialect.srcdoc and token.name == "iframe":
                inner = Markup(list(html_tokens(attribute.value)), replace(self.dialect, srcdoc=False), self.segments)
                part = _Document(inner, attribute.value, source)
            elif attribute.name in codes:
                part = self._language(token, attribute, source)
            elif attribute.name == "dir" and self.dialect.languages and self.elements.block[number]:
                part = self._direction(attribute, source)
            if part is not None:
                parts += (token.source[place : attribute.begin], part)
                place = attribute.end
        return (*parts, token.source[place:])

    def _language(self, token: Token, attribute: Attribute, source: str) -> Part | None:
        """Return the part of a language code, if it names the source language."""
        assert self.dialect.languages is not None
        self.language = self.language or self.dialect.languages[0] or attribute.value
        target = self.dialect.languages[1]
        if not target or not same_language(attribute.value, self.language):
            return None
        translated = source.replace(attribute.value, target) if attribute.value in source else f'"{target}"'
        turns = direction(target) != direction(self.language)
        if token.name == "html" and not self.dialect.xml and turns and token.attribute("dir") is None:
            translated += f' dir="{direction(target)}"'
        return _Changing(source, translated)

    def _direction(self, attribute: Attribute, source: str) -> Part | None:
        """Return the part of a direction, if it is that of the source language and not that of the target language."""
        assert self.dialect.languages is not None
        before, after = direction(self.language or self.dialect.languages[0]), direction(self.dialect.languages[1])
        same = before == after or attribute.value.lower() != before
        return None if same else _Changing(source, source.replace(attribute.value, after))

    def _flush(self) -> None:
        items, self.items, self.depth = self.items, [], 0
        if not self.dialect.messages:
            self._add(items, self._decode)
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
            self.parts.append(_Slot(len(self.segments), source, inline.built))
            self.segments.append(inline.built.segment)
        self.parts += after

    @property
    def _decode(self) -> Decode:
        if self.dialect.literal and not self.dialect.backslashes:
            return decode_nothing
        return _decode_backslashes if self.dialect.backslashes else partial(references, xml=self.dialect.xml)


def _decode_backslashes(text: str) -> Iterator[tuple[str, str | None]]:
    """Split a text at XML references and at escapes such as `\\n`. Yield (source, decoded text) of each piece."""
    for source, meaning in references(text, xml=True):
        if meaning != source:
            yield source, meaning
            continue
        place = 0
        for match in _BACKSLASH.finditer(source):
            if match.start() > place:
                yield source[place : match.start()], source[place : match.start()]
            yield match[0], chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])
            place = match.end()
        if place < len(source):
            yield source[place:], source[place:]
