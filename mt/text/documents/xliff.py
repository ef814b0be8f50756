"""XLIFF 1.2 and 2. The translation of a unit is written into its <target>."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from mt.errors import DocumentError
from mt.languages import full_tag, language_and_script
from mt.text.documents.base import DocumentOptions, TextDocument
from mt.text.documents.markup import XmlReader, with_languages
from mt.text.markup.elements import Dialect, ElementIndex
from mt.text.markup.parsing import Markup
from mt.text.markup.tokens import Token, TokenKind, decode, xml_tokens
from mt.text.xliff import is_translated

_UNITS = frozenset({"trans-unit", "segment"})  # of version 1.2 and of version 2
_SCOPES = frozenset({"xliff", "file", "body", "group", "unit"})
_CODES = frozenset({"bpt", "bx", "cp", "ec", "ept", "ex", "it", "ph", "sc", "x"})
_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}  # of versions 1.2, 2
_TEXT_TAG = re.compile(r"\{(\w{1,9})(?:&gt;|>)|&lt;(\w{1,9})\}")  # of Phrase: {b>red<b}
_HALF = re.compile(r"(START|CLOSE)_(\w+?)(?:_\d+)?")  # the number of a code of Angular that is half of a pair
_LISTED = 10  # maximum number of pairs of languages in an error message
_UNKNOWN = frozenset({"", "mul", "und"})  # language codes that name no language


def open_xliff(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse XLIFF. Segments are the translatable units that `is_translated` does not call translated.

    If a unit has a <seg-source>, each <mrk> element in it is a segment, whose translation is the content of the <mrk>
    with the same number in the target, if there is one.

    White space is that of the translation, unless `xml:space` is `preserve`. Inline codes are placed by alignment, like
    tags. Each branch of a plural or select message is a segment. Rendering changes only targets, their states, and a
    target language that is missing.

    Raises: DocumentError if there is no unit, or if the file names other languages than `options`.
    """
    reader = _Reader(name, content, options)
    names = {_local(token) for token in reader.tokens if token.kind is TokenKind.START}
    if "xliff" not in names or not names & _UNITS:
        raise DocumentError(
            f"{name} is not XLIFF 1.2 or 2: it contains no <xliff> element with a <trans-unit> or <segment>"
        )
    reader.read()
    if reader.others and not reader.matches:
        requested = f"{options.source_language or 'any language'} into {options.target_language or 'any language'}"
        raise DocumentError(
            f"{name} is for translation from {', '.join(sorted(reader.others)[:_LISTED])}, not from {requested}; "
            "accepted: the languages that the file names"
        )
    return reader.document


@dataclass(frozen=True, slots=True)
class _Scope:
    """Properties of an element that its descendants inherit. `end` is the index of the token after the element."""

    end: int
    translate: bool = True
    preserve: bool = False  # xml:space
    matches: bool = True  # whether the languages are those of the request


class _Reader(XmlReader):
    """Reader that adds the units of XLIFF to a document.

    `others` describes the languages of those parts of the file that have other languages than the request, and
    `matches` is whether there are parts with the languages of the request.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        super().__init__(name, content, options)
        self._options = options
        self._root = ""  # name of the elements that state the languages
        self.others: set[str] = set()
        self.matches = False

    def read(self) -> None:
        scopes = [_Scope(len(self.tokens))]
        for number, token in enumerate(self.tokens):
            while number >= scopes[-1].end:
                scopes.pop()
            local = _local(token)
            if token.kind is not TokenKind.START or number < self.done:
                continue
            if local in _SCOPES:
                scopes.append(self._scope(number, scopes[-1]))
            elif local in _UNITS:
                scope = self._scope(number, scopes[-1])
                self.matches |= scope.matches
                if scope.translate and scope.matches:
                    self._add_unit(number, scope.preserve)
        self.keep_until(len(self.tokens))

    def _scope(self, number: int, outer: _Scope) -> _Scope:
        token = self.tokens[number]
        translate, space = token.attribute("translate"), token.attribute("xml:space")
        return _Scope(
            self.elements.end[number],
            outer.translate if translate is None else translate != "no",
            outer.preserve if space is None else space == "preserve",
            outer.matches and self._has_requested_languages(number),
        )

    def _has_requested_languages(self, number: int) -> bool:
        """Return whether an element may have the requested languages. If it lacks a target language, add it."""
        token, options = self.tokens[number], self._options
        if _local(token) == "xliff":
            self._root = "xliff" if (token.attribute("version") or "").startswith("2") else "file"
        if _local(token) != self._root:
            return True
        names = _LANGUAGES[self._root]
        stated = [(token.attribute(name) or "").strip() for name in names]
        requested = full_tag(options.source_language), full_tag(options.target_language)
        if requested[1] and not stated[1]:
            self.tokens[number] = _with_attribute(token, names[1], requested[1])
        pairs = [pair for pair in zip(stated, requested, strict=True) if pair[0].lower() not in _UNKNOWN and pair[1]]
        if all(language_and_script(code) == language_and_script(other) for code, other in pairs):
            return True
        self.others.add(" into ".join(code or "?" for code in stated))
        return False

    def _add_unit(self, unit: int, preserve: bool) -> None:
        """Add a unit to the document if it has to be translated. `preserve` is whether its white space counts."""
        tokens, elements = self.tokens, self.elements
        children = self._children(unit)
        source = children.get("seg-source", children.get("source"))
        if source is None or tokens[source].kind is not TokenKind.START:
            return
        self.document.frame.append(elements.inner(source))
        target = children.get("target")
        space = tokens[source].attribute("xml:space")
        collapse = not preserve if space is None else space != "preserve"
        languages = with_languages(self._options).languages
        dialect = Dialect(
            xml=True, textless=_CODES, collapse=collapse, messages=True, words=True, languages=languages, fragment=True
        )
        if _local(tokens[source]) == "seg-source":
            sources, targets = self._segments(source), {} if target is None else self._segments(target)
            pairs = [(sources[mid], number) for mid, number in targets.items() if mid in sources]
            for pair in pairs:
                self._add_translation(unit, *pair, dialect)
            if pairs:
                return
            dialect = replace(dialect, splitting=frozenset({"mrk"}))
        self._add_translation(unit, source, target, dialect, children.get("source", source))

    def _segments(self, number: int) -> dict[str, int]:
        """Return the <mrk> elements of segments in a <seg-source> or <target>, by the numbers that they state."""
        inside = ((n, self.tokens[n]) for n in range(number + 1, self.elements.end[number]))
        starts = ((n, token) for n, token in inside if token.kind in (TokenKind.START, TokenKind.EMPTY))
        return {token.attribute("mid") or "": n for n, token in starts if token.attribute("mtype") == "seg"}

    def _add_translation(
        self, unit: int, source: int, target: int | None, dialect: Dialect, whole: int | None = None
    ) -> None:
        """Add the content of the element `source` as the content of the element `target`, if that is not translated.

        `whole` is the element with the text of `source`, if that is another one.
        """
        tokens, elements = self.tokens, self.elements
        state = tokens[unit if target is None else target].attribute("state") or tokens[unit].attribute("state")
        texts = self._text(source if whole is None else whole), "" if target is None else self._text(target)
        if is_translated(*texts, state, tokens[unit].attribute("approved")):
            return
        tokens[unit] = _as_translated(tokens[unit])
        if target is None:
            self.keep_until(elements.end[source])
            prefix = tokens[source].name.removesuffix("seg-source").removesuffix("source")
            opening = Token(TokenKind.START, f"<{prefix}target>", f"{prefix}target")
            self.document.keep(self.space_before(source))
        else:
            self.keep_until(target)
            opening = _as_translated(tokens[target])
            self.done = elements.end[target]
        self.keep_start(opening)
        inline = list(_inline_tokens(elements.inner(source)))
        self.document.embed(Markup(list(_with_pairs(inline)), dialect, []))
        self.document.keep(f"</{opening.name}>")

    def _children(self, unit: int) -> dict[str, int]:
        """Return the index of the first child of a unit for each element name. Alternative targets are deeper."""
        return {_local(self.tokens[number]): number for number in reversed([*self.elements.children(unit)])}

    def _text(self, number: int) -> str:
        """Return the text of an element with single spaces, or its tags if it has no text."""
        inside = self.tokens[number + 1 : self.elements.end[number] - 1]
        text = " ".join("".join(map(_token_text, inside)).split())
        return text or "".join(token.source for token in inside if token.name)


def _local(token: Token) -> str:
    return token.name.rpartition(":")[2]


def _inline_tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of the content of a source. The tags that Phrase writes into its text are tags."""
    for token in xml_tokens(source):
        place = 0
        for tag in _TEXT_TAG.finditer(token.source) if token.kind is TokenKind.TEXT else ():
            if tag.start() > place:
                yield Token(TokenKind.TEXT, token.source[place : tag.start()])
            yield Token(TokenKind.START if tag[1] else TokenKind.END, tag[0], "{" + (tag[1] or tag[2]))
            place = tag.end()
        if place == 0:
            yield token
        elif place < len(token.source):
            yield Token(TokenKind.TEXT, token.source[place:])


def _with_pairs(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with inline codes that are the halves of a pair as the start tag and the end tag of a pair."""
    elements = ElementIndex(tokens, Dialect(xml=True))
    groups: list[tuple[Token, Sequence[Token]]] = []  # (tag, the tokens that it replaces)
    number = 0
    while number < len(tokens):
        token, end = tokens[number], elements.end[number]
        half = _half(token) if token.kind in (TokenKind.START, TokenKind.EMPTY) else None
        if half is None:
            groups.append((token, (token,)))
            number += 1
        else:
            code = tokens[number:end]
            kind, name = half
            groups.append((Token(kind, "".join(part.source for part in code), name), code))
            number = end
    tags = ElementIndex([tag for tag, _ in groups], elements.dialect)
    for number, (tag, code) in enumerate(groups):
        yield from (tag,) if tags.partner[number] >= 0 else code


def _half(token: Token) -> tuple[TokenKind, str] | None:
    """Return the kind of the tag for which an inline code stands, and the name of its pair. None: it is no half."""
    local, number = _local(token), token.attribute("id") or ""
    if local == "x" and (match := _HALF.fullmatch(number)):
        return TokenKind.START if match[1] == "START" else TokenKind.END, f"x {match[2]}"
    if local in ("bpt", "bx", "sc"):
        return TokenKind.START, f"{local[0]} {token.attribute('rid') or number}"
    if local in ("ept", "ex", "ec"):
        start = token.attribute("startRef") or token.attribute("rid") or number
        return TokenKind.END, f"{'s' if local == 'ec' else 'b'} {start}"
    return None


def _token_text(token: Token) -> str:
    if token.kind is TokenKind.TEXT:
        return decode(token.source, xml=True)
    return token.source[9:-3] if token.source.startswith("<![CDATA[") else ""


def _as_translated(token: Token) -> Token:
    """Return the start tag of a unit or target with the state `translated`, if it has a state.

    The attributes that describe the previous state more exactly are removed.
    """
    for name in ("subState", "state-qualifier"):
        token = _with_attribute(token, name, None)
    return token if token.attribute("state") is None else _with_attribute(token, "state", "translated")


def _with_attribute(token: Token, name: str, value: str | None) -> Token:
    """Return a tag with the attribute `name` set to `value`, or without it if `value` is None."""
    source = token.source
    old = next((attribute for attribute in token.attributes if attribute.name == name), None)
    if old is None and value is None:
        return token
    if old is None:
        end = token.attributes[-1].end if token.attributes else len(token.name) + 1
        begin = end
    else:
        begin, end = len(source[: source.rindex(name, 0, old.begin)].rstrip()), old.end
    written = "" if value is None else f' {name}="{escape(value)}"'
    return next(xml_tokens(source[:begin] + written + source[end:]))
