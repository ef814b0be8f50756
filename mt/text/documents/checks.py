"""Checks of documents: a file with text has texts to translate, and its translation has the structure of the file."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from sys import maxsize

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import Document, DocumentOptions
from mt.text.markup import TranslatedSegment

Open = Callable[[bytes, DocumentOptions], Document]


class CheckedDocument(Document):
    """A document that is parsed again after rendering.

    `name` is the name of the file in error messages. `open_source` parses the content, and `open_translation` the
    content of the translated file.
    """

    def __init__(
        self, name: str, content: bytes, options: DocumentOptions, open_source: Open, open_translation: Open
    ) -> None:
        """Parse the content.

        Raises: DocumentError if the content has another format, or if it has text, but no text to translate.
        """
        self._name, self._content = name, content
        self._document = open_source(content, options)
        self._open_translation = open_translation
        self._options = replace(
            options, max_bytes=maxsize, max_unpacked_bytes=maxsize, max_segments=maxsize, max_characters=maxsize
        )
        self.segments = self._document.segments
        self.decisions = self._document.decisions
        self.has_text = self._document.has_text
        if self.has_text and not self.segments:
            raise DocumentError(f"{name} has text, but all of it is of kinds that are not translated")

    def structure(self) -> list[Hashable]:
        return self._document.structure()

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the translated file.

        Raises: DocumentError if it cannot be read, or if its structure is another one than that of the source.
        """
        expected = self.structure()  # before the document is rendered, which may change it
        rendered = self._document.render(translations)
        if rendered == self._content:
            return rendered
        try:
            options = replace(self._options, **self.decisions)
            structure = self._open_translation(rendered, options).structure()
        except DocumentLimitExceeded:  # a limit of the parser: the translation is a little longer than the source
            return rendered
        except DocumentError as error:
            raise DocumentError(f"the translation of {self._name} would be damaged: {error}") from error
        if expected and structure != expected:
            raise DocumentError(f"the translation of {self._name} would be damaged: {_difference(expected, structure)}")
        return rendered


def _difference(expected: Sequence[Hashable], actual: Sequence[Hashable]) -> str:
    """Describe the first difference between two structures."""
    pairs = enumerate(zip(expected, actual, strict=False))
    place = next((number for number, pair in pairs if pair[0] != pair[1]), min(len(expected), len(actual)))
    before, after = (str(parts[place])[:100] if place < len(parts) else "nothing" for parts in (expected, actual))
    return f"part {place + 1:,} of its structure changes from {before} to {after}"
