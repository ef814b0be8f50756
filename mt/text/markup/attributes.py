"""Attributes of HTML and XML: which values are text, and which name the language or the direction of the text."""

from mt.languages import language_and_script
from mt.text.markup.tokens import Token

_TEXTS = frozenset(
    {
        *("alt", "aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext"),
        *("placeholder", "title"),
        *("form:label", "form:title", "office:title"),  # of OpenDocument
    }
)
_BY_ELEMENT = {
    **dict.fromkeys(("optgroup", "option", "track"), _TEXTS | {"label"}),
    **dict.fromkeys(("script", "style", "template"), frozenset[str]()),
    **dict.fromkeys(("td", "th"), _TEXTS | {"abbr"}),
    "text:label": frozenset({"text:value"}),
}
_BUTTONS = frozenset({"button", "reset", "submit"})
_META = frozenset(
    {
        *("abstract", "dc.description", "dc.title", "dcterms.description", "dcterms.title", "description", "headline"),
        *("og:description", "og:image:alt", "og:title", "title", "twitter:data1", "twitter:data2"),
        *("twitter:description", "twitter:image:alt", "twitter:label1", "twitter:label2", "twitter:title"),
    }
)
"""Names of <meta> elements with text."""

_META_LANGUAGES = frozenset({"content-language", "dc.language", "dcterms.language", "language"})
_LANGUAGES = frozenset({"lang", "xml:lang"})
_RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"})


def text_attributes(token: Token) -> frozenset[str]:
    """Return the names of the attributes of a tag of HTML or OpenDocument whose values are text to translate."""
    if token.name == "input":
        kind = (token.attribute("type") or "").lower()
        return frozenset() if kind == "hidden" else _TEXTS | ({"value"} if kind in _BUTTONS else set())
    if token.name == "meta":
        return frozenset({"content"}) if _META & _meta_names(token) else frozenset()
    return _BY_ELEMENT.get(token.name, _TEXTS)


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
