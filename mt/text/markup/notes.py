"""Recognition of the marks that refer to footnotes."""

import re
from collections.abc import Iterable, Sequence

from mt.text.markup.tokens import Token, TokenKind

_NAMES = frozenset({"a", "noteref", "ref", "sup", "xref"})
_MARK = re.compile(
    r"\s*(?:\d{1,3}(?:\s?[,–-]\s?\d{1,3}){0,3}|[*†‡§¶]{1,3}|[¹²³⁰⁴-⁹]{1,3}"
    r"|(?P<brackets>[\[(](?:\d{1,3}|[a-z]|[ivx]{1,4}|[*†‡§¶]{1,3})[\])]))\s*"
)
_TYPE = re.compile(r"(?:^|[\s:-])(?:noteref|fn|footnote|endnote)(?:$|[\s_-])")
_TYPE_ATTRIBUTES = ("epub:type", "role", "class", "ref-type")
_LONG_WORD = re.compile(r"""[^\W\d_]{3}[.,;:!?"'”’»)\]]*$""")


def is_note_mark(element: Sequence[Token], before: Iterable[str]) -> bool:
    """Return whether an element is a footnote mark. `before` yields the texts of its paragraph before it, backwards.

    A mark is attached to a word, as in `dog<sup>1</sup>`, unless it has brackets or an attribute that says what it is.
    Exponents and parts of formulas, which follow short words, are not footnote marks.
    """
    if element[0].name not in _NAMES:
        return False
    mark = _MARK.fullmatch("".join(token.source for token in element if token.kind is TokenKind.TEXT))
    if mark is None:
        return False
    types = (token.attribute(name) or "" for token in element for name in _TYPE_ATTRIBUTES)
    if mark["brackets"] or any(map(_TYPE.search, types)):
        before = (text.rstrip() for text in before if text.strip())
    return _LONG_WORD.search(next(iter(before), "")) is not None
