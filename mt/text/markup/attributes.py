"""Attributes of HTML and XML: which values are text, and which name the language or the direction of the text."""

import re
from functools import cached_property

from mt.languages import language_and_script, regional_tag
from mt.text.markup.elements import ElementIndex
from mt.text.markup.tokens import Attribute, Token, TokenKind
from mt.text.word_tables import read_tables

_TABLES = read_tables("markup/attributes.toml")
_TEXTS, _META, _META_LANGUAGES = (frozenset(_TABLES[key].split()) for key in ("texts", "meta", "meta_languages"))
_ADDED = {name: _TEXTS | set(words.split()) for name, words in _TABLES["added"].items()}
_WITHOUT_TEXT = frozenset({"script", "style", "template"})
_BUTTONS = frozenset({"button", "reset", "submit"})
_LANGUAGES = frozenset({"lang", "xml:lang"})
_WORD_PROCESSOR = re.compile(r"(?:^|\s)Mso|Microsoft Word|LibreOffice|OpenOffice")
_RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"})


def text_attributes(token: Token) -> frozenset[str]:
    """Return the names of the attributes of a tag of HTML or OpenDocument whose values are text to translate."""
    if token.name == "input":
        kind = (token.attribute("type") or "").lower()
        return frozenset() if kind == "hidden" else _TEXTS | ({"value"} if kind in _BUTTONS else set())
    if token.name == "meta":
        return frozenset({"content"}) if _META & _meta_names(token) else frozenset()
    computed = token.attribute("table:formula") is not None
    return frozenset() if computed or token.name in _WITHOUT_TEXT else _ADDED.get(token.name, _TEXTS)


def language_attributes(token: Token) -> frozenset[str]:
    """Return the names of the attributes of a tag whose values are language codes."""
    is_meta = token.name == "meta" and not _META_LANGUAGES.isdisjoint(_meta_names(token))
    return _LANGUAGES | {"content"} if is_meta else _LANGUAGES


def _meta_names(token: Token) -> set[str]:
    names = (token.attribute(name) for name in ("name", "property", "itemprop", "http-equiv"))
    return {name.lower() for name in names if name}


def same_language(code: str, other: str) -> bool:
    """Return whether two codes name the same language in the same script. Regions are ignored."""
    return bool(code) and language_and_script(code.strip()) == language_and_script(other)


def direction(language: str) -> str:
    """Return the direction of the script of a language: `rtl` or `ltr`."""
    return "rtl" if language_and_script(language)[1] in _RIGHT_TO_LEFT else "ltr"


class MarkupLanguages:
    """The languages of markup and of its translation.

    `target` is the target language, or "" if no languages were given. The source language is the given one and that of
    the element around all text: many pages name a wrong language there. An element that names another language is
    foreign: its text is not translated. In the markup of word processors, no element is foreign, because they name
    the languages of their spelling checkers.
    """

    def __init__(self, elements: ElementIndex) -> None:
        self._elements = elements
        source, self.target = elements.dialect.languages or ("", "")
        around = "" if source and elements.dialect.fragment else self._of_all_text()
        self._sources = [code for code in (source, around) if code] if self.target else []
        self.source = self._sources[0] if self._sources else ""

    def _of_all_text(self) -> str:
        """Return the language that the outermost element around all text names, or "" if it names none."""
        tokens, ends = self._elements.tokens, self._elements.end
        texts = [n for n, token in enumerate(tokens) if token.kind is TokenKind.TEXT and not token.source.isspace()]
        first, last = (texts[0], texts[-1]) if texts else (len(tokens), 0)
        around = (n for n, token in enumerate(tokens[:first]) if token.attributes and ends[n] > last)
        pages = (n for n, token in enumerate(tokens) if token.attributes and token.name in ("html", "body"))
        return next(filter(None, (_named_language(tokens[n]) for n in (*around, *pages))), "")

    def names_source(self, code: str) -> bool:
        """Return whether a code names the source language. Regions, and scripts but that of the target, are ignored."""
        language = language_and_script(code.strip())[0]
        return any(same_language(code, source) for source in self._sources) or (
            not same_language(code, self.target) and language in (language_and_script(one)[0] for one in self._sources)
        )

    def is_foreign(self, token: Token) -> bool:
        """Return whether a tag names a language that is not the source language."""
        code = _named_language(token) if self._sources and token.attributes else ""
        known = language_and_script(code.strip())[1] != ""
        return known and not self.names_source(code) and not self._is_of_word_processor

    def translated(self, token: Token, attribute: Attribute) -> str:
        """Return the value, as in the source, of an attribute that names a language or direction for a translation.

        A code of the source language becomes one of the target language, and so does the direction of the text.
        """
        source = token.source[attribute.begin : attribute.end]
        before, after = direction(self.source), direction(self.target)
        if attribute.name == "dir":
            same = before == after or attribute.value.lower() != before or not self.source
            return source if same else source.replace(attribute.value, after)
        if not self.names_source(attribute.value):
            return source
        code = regional_tag(self.target).replace("-", "_") if "_" in attribute.value else self.target
        written = source.replace(attribute.value, code) if attribute.value in source else f'"{code}"'
        adds = token.name == "html" and before != after and token.attribute("dir") is None
        return f'{written} dir="{after}"' if adds and not self._elements.dialect.xml else written

    @cached_property
    def _is_of_word_processor(self) -> bool:
        return any(
            _WORD_PROCESSOR.search(attribute.value)
            for token in self._elements.tokens
            for attribute in token.attributes
            if attribute.name == "class" or (attribute.name == "content" and token.name == "meta")
        )


def _named_language(token: Token) -> str:
    return token.attribute("lang") or token.attribute("xml:lang") or ""
