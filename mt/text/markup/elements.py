"""Elements of HTML and XML: pairs of tags, and the properties that decide how an element is translated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from mt.text.markup.inline import StandsForWord
from mt.text.markup.tokens import Token, TokenKind
from mt.text.word_tables import read_tables, read_words

_WORDS = read_words("markup/elements.toml")  # which says what each set is
BLOCKS, VOID = _WORDS["blocks"], _WORDS["void"]
NO_WORDS, HTML_INLINE = _WORDS["no_words"], _WORDS["html_inline"]
CODE, VISIBLE = _WORDS["code"], _WORDS["visible"]
HTML_NAMES = BLOCKS | VOID | NO_WORDS | HTML_INLINE

_CLOSED_BY = dict.fromkeys(BLOCKS, frozenset({"p"})) | {
    name: frozenset(closed.split())
    for names, closed in read_tables("markup/closed.toml").items()
    for name in names.split()
}


@dataclass(frozen=True)
class Dialect:
    """Rules for one kind of markup: which parts of it are texts to translate.

    All sets contain names of elements, except `textless_attributes`, which contains names of attributes, and `raised`,
    which contains names of styles of text above the line.

    - If `xml` is true, the markup is parsed as XML, otherwise as HTML.
    - The tags of `splitting` elements end the current text. If `outline` is true, the tags of all other elements do so,
      too. Exceptions are elements in `non_splitting`, and elements inside an element that contains text directly.
    - The content of `textless` elements, and of elements with an attribute in `textless_attributes`, is not part of a
      text. The content of `kept` elements is part of a text, but is not translated.
    - The content of elements with a local name in `code` is not translated if they contain text directly.
    - The content of `notes` elements is divided into texts of its own, and the element is an empty one within a text.
    - Empty XML elements in `breaks` stand for white space.
    - If `attributes` is true, attributes with text are translated, and if `srcdoc` is true, so are documents in
      attributes.
    - `languages` and `fragment` are those of MarkupOptions.
    - If `backslashes` is true, a backslash begins an escape, as in the resources of Android.
    - If `collapse` is true, a run of white space counts as one space, as in HTML.
    - If `messages` is true, each branch of a message in ICU MessageFormat is a text of its own.
    - If `words` is true, an empty element can stand for a word, as a placeholder does.
    - If `literal` is true, no character is escaped, as in a CDATA section.
    """

    xml: bool
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    outline: bool = False
    textless: frozenset[str] = frozenset()
    textless_attributes: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    raised: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()
    backslashes: bool = False
    attributes: bool = False
    srcdoc: bool = False
    languages: tuple[str, str] | None = None
    fragment: bool = False
    collapse: bool = True
    messages: bool = False
    literal: bool = False
    words: bool = False

    def stands_for_word(self, name: str) -> StandsForWord:
        """Return where the element `name` stands for a word if it has no text."""
        if not self.words or not name or name in NO_WORDS or name in self.breaks:
            return StandsForWord.NEVER
        return StandsForWord.WITHIN if not self.xml and name in HTML_INLINE else StandsForWord.ALWAYS


HTML = Dialect(
    xml=False,
    splitting=BLOCKS,
    textless=_WORDS["textless"],
    kept=_WORDS["kept"],
    notes=frozenset({"del"}),
    attributes=True,
    srcdoc=True,
    words=True,
)
"""The rules for HTML. Deleted text is not a part of the sentence around it."""


def is_marked_as_kept(token: Token) -> bool:
    """Return whether an attribute of a start tag says that its element is not translated."""
    translate = token.attribute("translate") or token.attribute("its:translate")
    classes = (token.attribute("class") or "").split()
    return translate == "no" or "notranslate" in classes or token.attribute("mtype") == "protected"


class OpenElements:
    """Stack of open elements, with fast access to the innermost element of a name and to the innermost HTML block."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.names: list[str] = []
        self.depths: dict[str, list[int]] = {}
        self.blocks: list[int] = []

    def open(self, number: int, name: str) -> None:
        depth = len(self.numbers)
        self.numbers.append(number)
        self.names.append(name)
        self.depths.setdefault(name, []).append(depth)
        if name in BLOCKS:
            self.blocks.append(depth)

    def close(self, depth: int) -> list[int]:
        """Close the elements at `depth` and deeper. Return the numbers of their start tags, the outermost first."""
        for name in self.names[depth:]:
            self.depths[name].pop()
        while self.blocks and self.blocks[-1] >= depth:
            self.blocks.pop()
        closed = self.numbers[depth:]
        del self.numbers[depth:], self.names[depth:]
        return closed


@dataclass
class ElementIndex:
    """Elements of a sequence of tokens. An element is identified by the index of its first token.

    `partner[i]` is the index of the end tag that belongs to start tag i, and the index of the start tag that belongs to
    end tag i. It is -1 for a tag without partner, and for all other tokens.
    """

    tokens: Sequence[Token]
    dialect: Dialect
    partner: list[int] = field(init=False)
    end: list[int] = field(init=False)  # end[i]: index of the first token after the element that begins with token i
    parent: list[int] = field(init=False)  # parent[i]: index of the start tag of the element around token i, or -1
    block: list[bool] = field(init=False)  # block[i]: whether token i is a tag that ends a text

    def __post_init__(self) -> None:
        count = len(self.tokens)
        self.partner, self.end, self.block = [-1] * count, list(range(1, count + 1)), [False] * count
        self.parent = [-1] * count
        # _last_text[i]: last text directly in element i, or -1; _last_text[-1]: last text outside of all elements
        self._last_text = [-1] * (count + 1)
        stack = OpenElements()
        for number, token in enumerate(self.tokens):
            if token.kind is TokenKind.START:
                self._close_implied(stack, number)
            self.parent[number] = stack.numbers[-1] if stack.numbers else -1
            if token.kind is TokenKind.TEXT and not token.source.isspace():
                self._last_text[self.parent[number]] = number
            elif token.kind is TokenKind.START and not (token.name in VOID and not self.dialect.xml):
                stack.open(number, token.name)
            elif token.kind is TokenKind.END:
                self._close(stack, number)
        for number in stack.numbers:
            self.end[number] = count
        self._find_blocks()
        self._blocks_before = [0, *accumulate(self.block)]

    def children(self, number: int) -> Iterator[int]:
        """Yield the index of the first token of each child of the element that begins at `number`."""
        child = number + 1
        while child < self.end[number] - 1:
            if self.tokens[child].kind in (TokenKind.START, TokenKind.EMPTY):
                yield child
                child = self.end[child]
            else:
                child += 1

    def inner(self, number: int) -> str:
        """Return the source of the content of the element that begins at `number`, without its tags."""
        if self.tokens[number].kind is TokenKind.EMPTY:
            return ""
        return "".join(token.source for token in self.tokens[number + 1 : self.end[number] - 1])

    def untranslatable(self, number: int) -> bool:
        """Return whether the element that begins at `number` is not translated, because of its name or an attribute."""
        token = self.tokens[number]
        code = self._last_text[number] >= 0 and token.name.rpartition(":")[2] in self.dialect.code
        return code or self.is_textless(number) or token.name in self.dialect.kept or is_marked_as_kept(token)

    def is_textless(self, number: int) -> bool:
        """Return whether the content of the element that begins at `number` is not part of a text."""
        token, attributes = self.tokens[number], self.dialect.textless_attributes
        has_attribute = bool(attributes) and any(attribute.name in attributes for attribute in token.attributes)
        return has_attribute or token.name in self.dialect.textless

    def within_text(self, number: int) -> bool:
        """Return whether the element around token `number` contains text directly."""
        return self._last_text[self.parent[number]] >= 0

    def holds_block(self, number: int) -> bool:
        return self._blocks_before[self.end[number]] > self._blocks_before[number]

    def _close(self, stack: OpenElements, number: int) -> None:
        """Close the innermost open element that has the name of end tag `number`. If there is none, do nothing.

        In HTML, the end tag of an inline element is ignored if a block inside that element is still open.
        """
        name = self.tokens[number].name
        depths = stack.depths.get(name)
        if not depths:
            return
        depth = depths[-1]
        if not self.dialect.xml and name not in BLOCKS and stack.blocks and stack.blocks[-1] > depth:
            return
        opened, *unclosed = stack.close(depth)
        self.partner[number], self.partner[opened] = opened, number
        self.parent[number] = self.parent[opened]
        for inner in unclosed:
            self.end[inner] = number
        self.end[opened] = number + 1

    def _close_implied(self, stack: OpenElements, number: int) -> None:
        """Close the open HTML blocks without end tag that end where start tag `number` begins.

        For example, <li> ends the list item before it. No element of a picture, such as <title>, ends one around it.
        """
        if self.dialect.xml or stack.depths.get("svg"):
            return
        closed = _CLOSED_BY.get(self.tokens[number].name, frozenset())
        while stack.blocks and stack.names[stack.blocks[-1]] in closed:
            for unclosed in stack.close(stack.blocks[-1]):
                self.end[unclosed] = number

    def _find_blocks(self) -> None:
        dialect = self.dialect
        for number, token in enumerate(self.tokens):
            if token.kind is TokenKind.END and self.partner[number] >= 0:
                self.block[number] = self.block[self.partner[number]]
            elif token.name in dialect.splitting or token.kind is TokenKind.STATEMENT:
                self.block[number] = True
            elif dialect.outline and token.name and token.name not in dialect.non_splitting:
                parent = self.parent[number]
                inline = self.within_text(number) and not self._is_item(number)
                self.block[number] = not inline and (parent < 0 or self.block[parent])

    def _is_item(self, number: int) -> bool:
        """Return whether an element ends one of the same name, after a text such as `consisting of:`."""
        parent = self.parent[number]
        last = self._last_text[parent]
        is_nested = parent >= 0 and self.tokens[parent].name == self.tokens[number].name
        return is_nested and last < number and self.tokens[last].source.rstrip().endswith((":", ";", "."))
