"""Recognition of the marks that refer to footnotes, in markup and in the runs of Word documents."""

import re
from collections.abc import Iterable, Sequence

from mt.text.markup.tokens import Token, TokenKind, decode

NOTE_NAMES = frozenset({"a", "noteref", "ref", "span", "sup", "text:span", "xref"})
_SIGN = r"(?:\d{1,3}\)?|[*†‡§¶#‖]{1,3}|[¹²³⁰⁴-⁹]{1,3})"
_LETTER = r"(?:(?:[^\W\d_]|[ivx]{1,5}|[IVX]{1,5}|TM|SM)\)?|[®©™℠])"
_SIGNS = re.compile(rf"\s*{_SIGN}(?:\s?[,;–-]\s?{_SIGN}){{0,7}}\s*")
_LETTERS = re.compile(rf"\s*(?:{_SIGN}|{_LETTER})(?:\s?[,;–-]\s?(?:{_SIGN}|{_LETTER})){{0,7}}\s*|\s*[,;]\s*")
_BRACKETS = re.compile(rf"\s*[\[(](?:{_SIGN}|{_LETTER})[\])]\s*")
_REMARK = re.compile(r"\s*\[[^\[\]]{2,60}\]\s*")
_TYPE = re.compile(r"(?:^|[\s:-])(?:noteref|fn|footnote|endnote)(?:$|[\s_-])")
_TYPE_ATTRIBUTES = ("epub:type", "role", "class", "ref-type")
_RAISED = re.compile(r"(?:^|\s)sup(?:er(?:script)?)?(?:$|\s)|vertical-align:\s*super")
MAX_TOKENS = 16  # maximum number of tokens in a mark
_MAX_WORD = 50  # number of characters before a mark that are examined
_LONG_WORD = re.compile(r"""(?:[^\W\d_]{3}|\w{2}[.,;:!?])[.,;:!?"'”’»)\]]*$""")
_NUMERAL = re.compile(r"(?<!\w)[IVXLCDM]+$")  # before the ending of an ordinal number, as in XVI<sup>e</sup>


def is_note_mark(text: str, before: Iterable[str], raised: bool, typed: bool = False) -> bool:
    """Return whether `text` is a footnote mark. `before` yields the texts of its paragraph before it, backwards.

    A mark is attached to a word, as in `dog<sup>1</sup>`, unless it has brackets or is `typed`, which means that an
    attribute says what it is. Only a `raised` mark, which is written above the line, is a letter. Exponents and parts
    of formulas, which follow short words, are not footnote marks.
    """
    bracketed = _BRACKETS.fullmatch(text) is not None
    letters = (raised or typed) and _LETTERS.fullmatch(text)
    if not (bracketed or letters or _SIGNS.fullmatch(text)):
        return False
    if bracketed or typed:
        before = (part.rstrip() for part in before if part.strip())
    word = next(iter(before), "")[-_MAX_WORD:]
    return _LONG_WORD.search(word) is not None and not (any(map(str.isalpha, text)) and _NUMERAL.search(word))


def is_note_element(element: Sequence[Token], before: Iterable[str], styles: frozenset[str]) -> bool:
    """Return whether an element of markup is a footnote mark. `styles` are the names of styles of raised text."""
    if element[0].name not in NOTE_NAMES or len(element) > MAX_TOKENS:
        return False
    raised = any(_is_raised(token, styles) for token in element)
    types = (token.attribute(name) or "" for token in element for name in _TYPE_ATTRIBUTES)
    typed = any(map(_TYPE.search, types))
    plain = element[0].name in ("span", "text:span")
    return (raised or typed or not plain) and is_note_mark(_text(element), before, raised, typed)


def is_remark(element: Sequence[Token]) -> bool:
    """Return whether an element is a raised remark in brackets, such as `[citation needed]`."""
    return element[0].name == "sup" and len(element) <= MAX_TOKENS and _REMARK.fullmatch(_text(element)) is not None


def _text(element: Sequence[Token]) -> str:
    return decode("".join(token.source for token in element if token.kind is TokenKind.TEXT), xml=False)


def _is_raised(token: Token, styles: frozenset[str]) -> bool:
    if token.name == "sup":
        return True
    values = (attribute.value for attribute in token.attributes if attribute.name in ("class", "style"))
    return any(map(_RAISED.search, values)) or (token.attribute("text:style-name") or "") in styles
