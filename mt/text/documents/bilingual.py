"""The part that the readers of TMX and XLIFF have in common."""

from mt.text.documents.base import TextDocument
from mt.text.markup.elements import Dialect, ElementIndex
from mt.text.markup.tokens import Token, TokenKind


class BilingualReader:
    """Base of readers that copy the tokens of an XML file to a document, except translations that are to be written."""

    def __init__(self, tokens: list[Token], document: TextDocument) -> None:
        self._tokens, self._document = tokens, document
        self._elements = ElementIndex(tokens, Dialect(xml=True))
        self._done = 0  # number of tokens that have been added

    def keep_until(self, end: int) -> None:
        """Copy the tokens before `end` that have not been added."""
        self._document.keep("".join(token.source for token in self._tokens[self._done : end]))
        self._done = end

    def _space_before(self, number: int) -> str:
        """Return the white space before token `number`, or "" if there is none."""
        before = self._tokens[number - 1]
        return before.source if before.kind is TokenKind.TEXT and before.source.isspace() else ""
