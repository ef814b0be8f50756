"""Translation memories (.tmx). The translation of a unit is added to the unit as a variant in the target language."""

from html import escape

from mt.errors import DocumentError
from mt.languages import full_tag, language_and_script
from mt.text.documents.base import DocumentOptions, TextDocument
from mt.text.documents.markup import XmlReader
from mt.text.markup.elements import Dialect
from mt.text.markup.parsing import parse_dialect
from mt.text.markup.tokens import Token, TokenKind

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
_SEGMENT = Dialect(xml=True, textless=_CODES, collapse=False, words=True)
_ANY_SOURCE = "*all*"  # srclang of a file without a source language: any variant may be the source


def open_tmx(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse TMX. A translation unit is a segment if it has no text in `options.target_language`.

    The text of a unit is its variant in the source language; units without such a variant are kept. The source language
    is `options.source_language`, or else the source language of the header, or else the language of the first variant.
    Rendering changes nothing else. Inline codes are placed by alignment, like tags.

    Raises: DocumentError if there is no unit, or no target language.
    """
    if not options.target_language:
        raise DocumentError(f"{name} is a translation memory (TMX): the target language must be given")
    reader = _UnitReader(name, content, options)
    tokens = reader.tokens
    units = [number for number, token in enumerate(tokens) if token.kind is TokenKind.START and token.name == "tu"]
    if not units or not any(token.name == "tmx" for token in tokens):
        raise DocumentError(f"{name} is not TMX: it contains no <tmx> element with a <tu>")
    header = next((token for token in tokens if token.name == "header"), None)
    source = options.source_language or (header and header.attribute("srclang")) or ""
    if source in ("", _ANY_SOURCE):
        variant = next((token for token in tokens[units[0] :] if token.name == "tuv"), tokens[units[0]])
        source = _code(variant)
    for unit in units:
        reader.add(unit, source)
    reader.keep_until(len(tokens))
    return reader.document


def _code(variant: Token) -> str:
    """Return the language code of a variant: its attribute `xml:lang`, or `lang` in TMX before version 1.4, or ""."""
    return variant.attribute("xml:lang") or variant.attribute("lang") or ""


class _UnitReader(XmlReader):
    """Reader that adds the translation units of a TMX file to a document, in order."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        super().__init__(name, content, options)
        self._target = full_tag(options.target_language)
        self._read = 0  # number of tokens up to the end of the last unit; units within units are not read

    def add(self, unit: int, source: str) -> None:
        """Add a unit to the document if it has to be translated. Otherwise, do nothing.

        `unit` is the index of the start tag of the unit, and `source` is the source language.
        """
        if unit < self._read:
            return
        self._read = self.elements.end[unit]
        variants = [(n, segment) for n in self._children(unit, "tuv") for segment in self._children(n, "seg")[:1]]
        chosen = next((pair for pair in variants if self._is_in(pair[0], source)), None)
        if chosen is None or self._is_in(chosen[0], self._target):
            return
        existing = next((segment for number, segment in variants if self._is_in(number, self._target)), None)
        inner = self.elements.inner(chosen[1])
        self.document.frame.append(inner)
        markup = parse_dialect(inner, _SEGMENT)
        if existing is not None:
            if markup.segments and not self.elements.inner(existing).strip():
                self.keep_until(existing)
                self.keep_start(self.tokens[existing])
                self.document.embed(markup)
                self.document.keep("</seg>")
                self.done = self.elements.end[existing]
        elif markup.segments:
            self.keep_until(self.elements.end[variants[-1][0]])
            name = "lang" if self.tokens[chosen[0]].attribute("xml:lang") is None else "xml:lang"
            self.document.keep(f'{self.space_before(chosen[0])}<tuv {name}="{escape(self._target)}">')
            self.document.keep(f"{self.space_before(chosen[1])}<seg>")
            self.document.embed(markup)
            self.document.keep(f"</seg>{self.space_before(self.elements.end[chosen[0]] - 1)}</tuv>")

    def _children(self, parent: int, name: str) -> list[int]:
        return [number for number in self.elements.children(parent) if self.tokens[number].name == name]

    def _is_in(self, variant: int, language: str) -> bool:
        """Return whether a variant is in `language`. Regions are ignored."""
        return language_and_script(_code(self.tokens[variant])) == language_and_script(language)
