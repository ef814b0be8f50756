"""XLIFF 1.2 and 2. The translation of a unit is written into its <target>."""

import re

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, SegmentList, TextDocument, decode_text
from mt.text.documents.markup import declared_encoding
from mt.text.markup.elements import Dialect, ElementIndex
from mt.text.markup.parsing import parse_dialect
from mt.text.markup.tokens import Token, TokenKind, xml_tokens

_UNITS = frozenset({"trans-unit", "segment"})  # of version 1.2 and of version 2
_CODES = frozenset({"bpt", "bx", "cp", "ec", "ept", "ex", "it", "ph", "sc", "x"})
_NEW_STATE = re.compile(r"""(\sstate=["'])(?:new|initial|needs-translation|needs-l10n)(?=["'])""")


def open_xliff(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse XLIFF. Segments are the translatable units without a target; with `retranslate`, all translatable units.

    If a unit has a <seg-source>, each <mrk> element in it is a segment. Inline codes are placed by alignment, like
    tags. Rendering changes only targets and their states.

    Raises: DocumentError if there is no unit.
    """
    text, encoding = decode_text(name, content, declared_encoding(content))
    tokens = list(xml_tokens(text))
    elements = ElementIndex(tokens, Dialect(xml=True, splitting=frozenset()))
    document = TextDocument(SegmentList(name, options), encoding, "xmlcharrefreplace")
    names = {token.name for token in tokens if token.kind is TokenKind.START}
    if "xliff" not in names or not names & _UNITS:
        raise DocumentError(
            f"{name} is not XLIFF 1.2 or 2: it contains no <xliff> element with a <trans-unit> or <segment>"
        )
    off_until = done = 0
    for number, token in enumerate(tokens):
        if token.kind is not TokenKind.START or number < max(off_until, done):
            continue
        if token.attribute("translate") == "no" and token.name in ("file", "group", "unit", "trans-unit"):
            off_until = elements.end[number]
        elif token.name in _UNITS:
            _keep(document, tokens[done:number])
            done = elements.end[number]
            _add_unit(document, tokens, elements, number, options.retranslate)
    _keep(document, tokens[done:])
    return document


def _add_unit(
    document: TextDocument, tokens: list[Token], elements: ElementIndex, unit: int, retranslate: bool
) -> None:
    end = elements.end[unit]
    children = _children(tokens, elements, unit)
    source = children.get("seg-source", children.get("source"))
    if source is None or tokens[source].kind is not TokenKind.START:
        _keep(document, tokens[unit:end])
        return
    target = children.get("target")
    filled = target is not None and elements.inner(target).strip()
    if filled and not retranslate:
        _keep(document, tokens[unit:end])
        return
    splitting = frozenset({"mrk"} if tokens[source].name == "seg-source" else ())
    dialect = Dialect(xml=True, splitting=splitting, textless=_CODES, collapse=False)
    markup = parse_dialect(elements.inner(source), dialect)
    after = elements.end[source if target is None else target]
    document.keep(_NEW_STATE.sub(r"\1translated", tokens[unit].source))
    if target is None:
        _keep(document, tokens[unit + 1 : after])
        document.keep(_indent(tokens, source) + "<target>")
    else:
        _keep(document, tokens[unit + 1 : target])
        opening = _NEW_STATE.sub(r"\1translated", tokens[target].source)
        empty = tokens[target].kind is TokenKind.EMPTY
        document.keep(f"{opening.removesuffix('/>').rstrip()}>" if empty else opening)
    document.embed(markup)
    prefix = tokens[source].name.removesuffix("seg-source").removesuffix("source")
    document.keep(f"</{prefix}target>")
    _keep(document, tokens[after:end])


def _children(tokens: list[Token], elements: ElementIndex, unit: int) -> dict[str, int]:
    """Return the index of the first child of a unit for each element name.

    Deeper elements are ignored, for example alternative targets.
    """
    children: dict[str, int] = {}
    for number in elements.children(unit):
        children.setdefault(tokens[number].name, number)
    return children


def _indent(tokens: list[Token], number: int) -> str:
    before = tokens[number - 1].source
    return before if tokens[number - 1].kind is TokenKind.TEXT and before.isspace() else ""


def _keep(document: TextDocument, tokens: list[Token]) -> None:
    document.keep("".join(token.source for token in tokens))
