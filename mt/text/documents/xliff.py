"""XLIFF 1.2 and 2: the target of each unit written beside its source."""

import re

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, TextDocument, decode_text
from mt.text.documents.markup import declared_encoding
from mt.text.markup.document import parse_dialect
from mt.text.markup.elements import Dialect, Elements
from mt.text.markup.tokens import Kind, Token, xml_tokens

_UNITS = frozenset({"trans-unit", "segment"})  # of version 1.2, and of 2
_CODES = frozenset({"bpt", "bx", "cp", "ec", "ept", "ex", "it", "ph", "sc", "x"})
_NEW_STATE = re.compile(r"""(\sstate=["'])(?:new|initial|needs-translation|needs-l10n)(?=["'])""")


def open_xliff(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Units that are to be translated and have no target yet; with `retranslate`, all.

    Only targets are written, and their state; all else is as it was. Where a unit has been cut into `mrk`s, each is a
    segment. Inline codes are placed as tags are. Raises DocumentError if there is no unit.
    """
    text, encoding = decode_text(name, content, declared_encoding(content))
    tokens = list(xml_tokens(text))
    elements = Elements(tokens, Dialect(xml=True, splitting=frozenset()))
    document = TextDocument(encoding, "xmlcharrefreplace")
    names = {token.name for token in tokens if token.kind is Kind.START}
    if "xliff" not in names or not names & _UNITS:
        raise DocumentError(f"{name} is not XLIFF 1.2 or 2: it has no <xliff> with a <trans-unit> or <segment>")
    off_until = done = 0
    for number, token in enumerate(tokens):
        if token.kind is not Kind.START or number < max(off_until, done):
            continue
        if token.attribute("translate") == "no" and token.name in ("file", "group", "unit", "trans-unit"):
            off_until = elements.end[number]
        elif token.name in _UNITS:
            _keep(document, tokens[done:number])
            done = elements.end[number]
            _add_unit(document, tokens, elements, number, options.retranslate)
    _keep(document, tokens[done:])
    return document


def _add_unit(document: TextDocument, tokens: list[Token], elements: Elements, unit: int, again: bool) -> None:
    """The tokens of a unit, with its target."""
    end = elements.end[unit]
    children = _children(tokens, elements, unit)
    source = children.get("seg-source", children.get("source"))
    if source is None or tokens[source].kind is not Kind.START:
        _keep(document, tokens[unit:end])
        return
    target = children.get("target")
    filled = target is not None and _inner(tokens, elements, target).strip()
    if filled and not again:
        _keep(document, tokens[unit:end])
        return
    splitting = frozenset({"mrk"} if tokens[source].name == "seg-source" else ())
    dialect = Dialect(xml=True, splitting=splitting, textless=_CODES, collapse=False)
    markup = parse_dialect(_inner(tokens, elements, source), dialect)
    after = elements.end[source if target is None else target]
    document.keep(_NEW_STATE.sub(r"\1translated", tokens[unit].source))
    if target is None:
        _keep(document, tokens[unit + 1 : after])
        document.keep(_indent(tokens, source) + "<target>")
    else:
        _keep(document, tokens[unit + 1 : target])
        opening = _NEW_STATE.sub(r"\1translated", tokens[target].source)
        document.keep(re.sub(r"\s*/>$", ">", opening) if tokens[target].kind is Kind.EMPTY else opening)
    document.embed(markup)
    prefix = tokens[source].name.removesuffix("seg-source").removesuffix("source")
    document.keep(f"</{prefix}target>")
    _keep(document, tokens[after:end])


def _children(tokens: list[Token], elements: Elements, unit: int) -> dict[str, int]:
    """The first source, seg-source and target right within a unit, not those of its alternatives."""
    found: dict[str, int] = {}
    number = unit + 1
    while number < elements.end[unit] - 1:
        token = tokens[number]
        if token.kind in (Kind.START, Kind.EMPTY):
            found.setdefault(token.name, number)
            number = elements.end[number]
        else:
            number += 1
    return found


def _inner(tokens: list[Token], elements: Elements, number: int) -> str:
    if tokens[number].kind is Kind.EMPTY:
        return ""
    return "".join(token.source for token in tokens[number + 1 : elements.end[number] - 1])


def _indent(tokens: list[Token], number: int) -> str:
    """The white space before an element."""
    before = tokens[number - 1].source
    return before if tokens[number - 1].kind is Kind.TEXT and before.isspace() else ""


def _keep(document: TextDocument, tokens: list[Token]) -> None:
    document.keep("".join(token.source for token in tokens))
