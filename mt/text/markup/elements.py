"""Which tags belong together, and what each element means to a translator."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mt.text.markup.tokens import Kind, Token

BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "button", "caption", "center", "col", "colgroup", "dd"),
        *("details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
        *("frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li"),
        *("link", "main", "menu", "meta", "nav", "noscript", "ol", "optgroup", "option", "p", "pre", "search"),
        *("section", "select", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul"),
    }
)
"""HTML elements at which a text ends."""

_VOID = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track"),
        "wbr",
    }
)
_REACH = 512  # open elements that an end tag is compared with; browsers nest no deeper
_CELLS, _ROWS = frozenset({"td", "th"}), frozenset({"tbody", "tfoot", "thead", "tr"})


@dataclass(frozen=True)
class Dialect:
    """How to read a kind of markup.

    `splitting` elements end a text, and so do, with `outline`, all in whose parent there is no text of its own, unless
    they are `non_splitting`. The contents of `textless` elements are no part of a text; those of `kept` ones are, but
    are not translated. `attributes` are translated. With `collapse`, white space is what HTML takes it for.
    """

    xml: bool
    splitting: frozenset[str]
    non_splitting: frozenset[str] = frozenset()
    outline: bool = False
    textless: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    collapse: bool = True


@dataclass
class Elements:
    """Tags paired. `partner[i]` is the token that closes or opens what token i does, -1 if none does."""

    tokens: Sequence[Token]
    dialect: Dialect
    partner: list[int] = field(init=False)
    end: list[int] = field(init=False)  # of an element that begins at i: the token after its last
    block: list[bool] = field(init=False)  # whether a tag ends a text

    def __post_init__(self) -> None:
        count = len(self.tokens)
        self.partner, self.end, self.block = [-1] * count, list(range(1, count + 1)), [False] * count
        self._parent = [-1] * count
        self._mixed = [False] * (count + 1)  # the last is of what lies in no element
        stack: list[int] = []
        for number, token in enumerate(self.tokens):
            if token.kind is Kind.START:
                self._close_implied(stack, number)
            self._parent[number] = stack[-1] if stack else -1
            if token.kind is Kind.TEXT and not token.source.isspace():
                self._mixed[self._parent[number]] = True
            elif token.kind is Kind.START and not (token.name in _VOID and not self.dialect.xml):
                stack.append(number)
            elif token.kind is Kind.END:
                self._close(stack, number)
        for number in stack:
            self.end[number] = count
        self._find_blocks()

    def untranslatable(self, number: int) -> bool:
        """Whether an element is to be left as it is, by what it is or by what it says."""
        token = self.tokens[number]
        if token.name in self.dialect.textless or token.name in self.dialect.kept:
            return True
        said = token.attribute("translate") or token.attribute("its:translate")
        classes = (token.attribute("class") or "").split()
        return said == "no" or "notranslate" in classes or token.attribute("mtype") == "protected"

    def asks_for_translation(self, number: int) -> bool:
        return self.tokens[number].attribute("translate") == "yes"

    def holds_block(self, number: int) -> bool:
        return any(self.block[number : self.end[number]])

    def _close(self, stack: list[int], number: int) -> None:
        """An end tag: closes the innermost element of its name. In HTML, an inline one reaches through no block."""
        name = self.tokens[number].name
        for depth in range(len(stack) - 1, max(-1, len(stack) - 1 - _REACH), -1):
            opened = self.tokens[stack[depth]].name
            if opened == name:
                self.partner[number], self.partner[stack[depth]] = stack[depth], number
                self._parent[number] = self._parent[stack[depth]]
                for unclosed in stack[depth + 1 :]:
                    self.end[unclosed] = number
                self.end[stack[depth]] = number + 1
                del stack[depth:]
                return
            if not self.dialect.xml and opened in BLOCKS and name not in BLOCKS:
                return

    def _close_implied(self, stack: list[int], number: int) -> None:
        """HTML's optional end tags: what the start of an element closes."""
        if self.dialect.xml:
            return
        closed = _closed_by(self.tokens[number].name)
        depth = len(stack) - 1
        lowest = max(0, len(stack) - _REACH)
        while closed and depth >= lowest:
            name = self.tokens[stack[depth]].name
            if name in closed:
                for unclosed in stack[depth:]:
                    self.end[unclosed] = number
                del stack[depth:]
            elif name in BLOCKS:
                return
            depth -= 1

    def _find_blocks(self) -> None:
        dialect = self.dialect
        for number, token in enumerate(self.tokens):
            if token.kind is Kind.END and self.partner[number] >= 0:
                self.block[number] = self.block[self.partner[number]]
            elif token.name in dialect.splitting:
                self.block[number] = True
            elif (
                dialect.outline
                and token.kind is not Kind.TEXT
                and token.name
                and token.name not in dialect.non_splitting
            ):
                parent = self._parent[number]
                within_text = self._mixed[parent] or (parent >= 0 and not self.block[parent])
                self.block[number] = not within_text


def _closed_by(name: str) -> frozenset[str]:
    """The elements that the start of one closes, if they are open and nothing else stands between."""
    if name == "li":
        return frozenset({"li", "p"})
    if name in ("dt", "dd"):
        return frozenset({"dt", "dd", "p"})
    if name in _CELLS:
        return _CELLS | {"p"}
    if name in _ROWS:
        return _CELLS | {"p", "tr"} | (_ROWS if name != "tr" else frozenset())
    if name in ("option", "optgroup"):
        return frozenset({"option"})
    return frozenset({"p"}) if name in BLOCKS else frozenset()
