"""Parsing of HTML and XML into segments, and rendering of their translations.

Everything that is not translated is preserved byte for byte: markup, comments, scripts, styles, code, declarations,
white space between blocks, and segments whose translation equals their text. In a translated segment, the module
`placement` places the tags, the white space is that of the translation, and `&`, `<` and all characters that the source
escapes are escaped.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from mt.text.markup.elements import BLOCKS, CODE, HTML, Dialect
from mt.text.markup.marks import Segment, TranslatedSegment
from mt.text.markup.reading import AttributeDocument, Changing, Embedded, Part, Slot, TokenReader
from mt.text.markup.tokens import Token, html_tokens, xml_tokens
from mt.text.messages import safe_apostrophes

_BACKSLASH_FORMS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_NOTES = frozenset({"del", "endnote", "fn", "footnote", "indexterm", "note"})
"""Names of elements in XML for publishing (DocBook, DITA, JATS, TEI) that are apart from the text around them."""

_LITERAL_FORMS = {"&": "&", "<": "<"}
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class MarkupOptions:
    """Options for markup, as in DeepL's API. Names of HTML elements are in lower case.

    Elements in `ignore_tags` are not translated. The tags of elements in `splitting_tags` end a text, those of elements
    in `non_splitting_tags` do not. For all other elements of XML, `outline_detection` decides: if it is true, their
    tags end a text unless they are surrounded by text; if it is false, they do not.

    `languages` is the source language, or "" for that of the element around all text, and the target language. If they
    are given, attributes that name the source language name the target language in a translation, and elements in
    another language are not translated (mt.text.markup.attributes). In a `fragment` of a larger text, the element
    around all text says nothing about the source language.
    """

    ignore_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    outline_detection: bool = True
    languages: tuple[str, str] | None = None
    fragment: bool = False


def parse_html(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse an HTML document or fragment.

    If a start or end tag is missing in a text, all tags of the text keep their order. The segments are appended to the
    list `segments`. Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    options = options or MarkupOptions()
    dialect = replace(
        HTML,
        splitting=(BLOCKS | options.splitting_tags) - options.non_splitting_tags,
        kept=HTML.kept | options.ignore_tags,
        languages=options.languages,
        fragment=options.fragment,
    )
    return parse_dialect(text, dialect, segments)


def parse_xml(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse XML, whether it is well-formed or not.

    By default, a tag ends a text unless the parent of its element also contains text directly. A CDATA section is read
    as HTML if it contains a tag or a reference of HTML, and belongs to the text beside it unless it contains a block.
    The segments are appended to the list `segments`.

    Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    options = options or MarkupOptions()
    dialect = Dialect(
        xml=True,
        splitting=options.splitting_tags,
        non_splitting=options.non_splitting_tags,
        outline=options.outline_detection,
        kept=options.ignore_tags,
        code=CODE,
        notes=_NOTES - options.ignore_tags,
        breaks=frozenset({"br"}),
        words=True,
        languages=options.languages,
        fragment=options.fragment,
    )
    return parse_dialect(text, dialect, segments)


def parse_dialect(text: str, dialect: Dialect, segments: list[Segment] | None = None) -> "Markup":
    """Parse markup by the rules of `dialect`. The segments are appended to the list `segments`."""
    tokens = list(xml_tokens(text) if dialect.xml else html_tokens(text))
    return Markup(tokens, dialect, [] if segments is None else segments)


class Markup:
    """A parsed HTML or XML text. `segments` are the texts to translate, in order.

    `tags` contains (kind and name, number) of its tags that a translation keeps. `has_text` is whether it has text,
    translated or not.
    """

    def __init__(self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment]) -> None:
        self.segments = segments
        self._dialect = dialect
        self._compared: tuple[Sequence[TranslatedSegment], bool] | None = None  # of the last call of `_is_changed`
        lost = dialect.spaces | {""}
        tags = Counter((token.kind.value, token.name) for token in tokens if token.name not in lost)
        self.tags = sorted(tags.items())
        reader = TokenReader(tokens, dialect, segments, lambda inside, inner: Markup(inside, inner, segments))
        reader.read()
        self._parts = reader.parts
        self.has_text = bool(self.segments) or reader.has_text()

    def render(self, translations: Sequence[TranslatedSegment]) -> str:
        assert len(translations) == len(self.segments)
        return "".join(
            self._slot(part, translations) if isinstance(part, Slot) else self._part(part, translations)
            for part in self._parts
        )

    def _part(self, part: Part, translations: Sequence[TranslatedSegment]) -> str:
        if isinstance(part, Embedded):
            return part.markup.render(translations)
        if isinstance(part, str):
            return part
        if isinstance(part, Changing):
            return part.translated if self._is_changed(translations) else part.source
        if isinstance(part, AttributeDocument):
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

    def _slot(self, slot: Slot, translations: Sequence[TranslatedSegment]) -> str:
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
