"""Interface and options of documents, and the class of documents that consist of text."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from mt.errors import DocumentLimitExceeded
from mt.languages import full_tag
from mt.text.encoding import TextEncoding, decode_text
from mt.text.markup import Markup, MarkupOptions, Segment, TranslatedSegment
from mt.text.markup.attributes import same_language
from mt.text.markup.inline import VALUES, Decode, InlineItem, InlineKind, read_inline, split_whitespace, text_items
from mt.text.markup.marks import Part, Translations, is_changed, render_parts, text_of
from mt.text.markup.tokens import MAX_TOKENS
from mt.text.messages import double_apostrophes, safe_apostrophes, split_message

LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")  # and its line break
_ACCESS_KEY = re.compile(  # in labels of Windows, Qt and GTK, such as _Open and E&xit
    r"(?<![\w&])[&_](?=[^\W\d_])(?!\w{1,10};)|(?:(?<=(?<!\w)[A-Z])|(?<=(?<!\w)[A-Z][a-z]))&(?=[a-z])"
)
_MAX_LABEL = 100  # characters
LOCALE_WITHIN = 100_000  # characters that are searched for the language of a file, after comments such as a license


@dataclass(frozen=True)
class DocumentOptions:
    """Limits for all documents, and options for some formats.

    - `max_bytes` limits the size of a file, `max_unpacked_bytes` the size of a file after unpacking, `max_segments` the
      number of segments, and `max_characters` the number of characters of all segments together.
    - `source_language` and `target_language` select the languages in formats with texts in several languages, such as
      .tmx. If `source_language` is empty, the source language that the file states is used.
    - `encoding` is the encoding of text files without a byte order mark. If it is empty, it is detected.
    - `columns` selects the columns of .csv and .tsv by name or by number from 1. If it is empty, all cells are
      translated. `separator` is the character between the cells of .csv, or "" for rows of one cell. If it is None, it
      is found.
    - `markup` contains the options for .html and .xml.
    """

    max_bytes: int = 20_000_000
    max_unpacked_bytes: int = 200_000_000
    max_segments: int = 200_000
    max_characters: int = 20_000_000
    source_language: str = ""
    target_language: str = ""
    encoding: str = ""
    columns: tuple[str, ...] = ()
    separator: str | None = None
    markup: MarkupOptions = field(default_factory=MarkupOptions)


def check_count(name: str, count: int, things: str) -> None:
    """Raise DocumentLimitExceeded if there are more than MAX_TOKENS things, for each of which a parser takes memory."""
    if count > MAX_TOKENS:
        raise DocumentLimitExceeded(f"{name} has too many {things}; accepted: at most {MAX_TOKENS:,}")


class SegmentList(list[Segment]):
    """List of segments with a limit on their number and on the total number of their characters.

    Raises: DocumentLimitExceeded from `append` and `extend` if a segment would exceed a limit.
    """

    def __init__(self, name: str, options: DocumentOptions) -> None:
        super().__init__()
        self._name, self._options = name, options
        self._characters = 0

    def append(self, segment: Segment) -> None:
        self._characters += len(segment.text)
        if len(self) >= self._options.max_segments:
            raise DocumentLimitExceeded(
                f"{self._name} has too many texts; accepted: at most {self._options.max_segments:,}"
            )
        if self._characters > self._options.max_characters:
            limit = f"{self._options.max_characters:,}"
            raise DocumentLimitExceeded(f"{self._name} has too many characters to translate; accepted: at most {limit}")
        super().append(segment)

    def extend(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            self.append(segment)


class Document:
    """A parsed file. `segments` are its texts to translate, in the order of the file.

    `decisions` are options with which the translated file is parsed: what the parser found out about the file.
    `has_text` is whether the file has text that a reader sees, with letters, and that is not a translation.
    """

    segments: list[Segment]
    decisions: Mapping[str, Any] = MappingProxyType({})
    has_text = False

    def structure(self) -> list[Hashable]:
        """Return what a translation must not change, such as keys, the number of cells in each row, or tags.

        The list is empty if the translation is a file of another format.
        """
        return []

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation."""
        raise NotImplementedError


class TextDocument(Document):
    """Document that is a sequence of parts: source text that is kept, and texts to translate.

    `source` is the text of the file, of which `done` characters are in the parts.
    """

    def __init__(
        self, name: str, options: DocumentOptions, encoding: TextEncoding, errors: str = "strict", source: str = ""
    ) -> None:
        self.segments = SegmentList(name, options)
        self.source, self.done = source, 0
        self.parts: list[Part] = []
        self.frame: list[Hashable] = []  # the structure, which the parser of the format appends
        self.decisions: dict[str, Any] = {"encoding": encoding.codec}
        self.finish: Callable[[str, bool], str] = lambda text, changed: text  # makes the last changes of the text
        self.encoding, self._errors = encoding, errors

    def structure(self) -> list[Hashable]:
        return self.frame

    def keep(self, source: str) -> None:
        self.parts.append(source)

    def keep_until(self, place: int) -> None:
        """Append the source up to offset `place`."""
        self.parts.append(self.source[self.done : place])
        self.done = place

    def add_stripped(self, text: str, source: str, write: Callable[[str], str]) -> None:
        """Append a text without tags. Its segment is the text without leading and trailing white space.

        Before `write` converts a translation to its form in the file, the white space is put around the translation
        again. A text without letters and digits, or of VALUES, is not translated: `source` is kept.
        """
        before, body, after = split_whitespace(text)
        if body in VALUES or not any(map(str.isalnum, body)):
            self.keep(source)
            return
        body, sign, letter = _without_access_key(body)
        self.parts.append(partial(text_of, len(self.segments)))
        self.segments.append(Segment(body))
        begin = len(self.parts) - 1
        self.join(begin, body, source, lambda new: write(before + _with_access_key(new, sign, letter) + after))

    def add_string(self, text: str, source: str, write: Callable[[str], str], doubled: bool = False) -> None:
        """Append a string of a program. In an ICU message, each branch is a text of its own.

        `source` is the form of the string in the file, and `write` returns the form of a translated string. If
        `doubled` is true, or if two apostrophes stand for one in a message, each apostrophe is written twice.
        """
        begin, pieces = len(self.parts), split_message(text)
        doubled = doubled or (len(pieces) > 1 and "''" in text)
        for piece, translated in pieces:
            if not translated:
                self.keep(piece)
            else:
                value = piece.replace("''", "'") if doubled else piece
                write_piece = double_apostrophes if doubled else safe_apostrophes
                self.add_stripped(value, piece, partial(write_piece, source=piece))
        self.join(begin, text, source, write)

    def join(self, begin: int, text: str, source: str, write: Callable[[str], str] = str) -> None:
        """Make one part of the parts from `begin` on. It is rendered by `write`, or as `source` if they are `text`."""
        parts = self.parts[begin:]

        def render(translations: Translations) -> str:
            new = render_parts(parts, translations)
            return source if new == text else write(new)

        self.parts[begin:] = [render]

    def embed(self, markup: Markup) -> None:
        begin, end = len(self.segments), len(self.segments) + len(markup.segments)
        self.parts.append(lambda translations: markup.render(translations[begin:end]))
        self.segments.extend(markup.segments)

    def add_items(
        self,
        items: Sequence[InlineItem[Any]],
        decode: Decode,
        write: Callable[[str, Segment, dict[str, str]], str] = lambda text, segment, forms: text,
        finish: Callable[[str, str], str] = lambda text, source: text,
    ) -> None:
        """Append a text that consists of inline items, such as pieces of text and tags.

        The parts of the items are parts of documents. `decode` resolves the escapes of the source. `write(text,
        segment, forms)` escapes a line of the translation. `forms` maps each character that the source escapes to its
        escaped form. `finish(text, source)` returns the final form of the whole translation.
        """
        divided: list[InlineItem[Any]] = []  # the white space around each text is an item of its own
        for item in items:
            is_source = item.kind is InlineKind.TEXT and item.parts == (item.text,)
            divided += text_items(item.text) if is_source else [item]
        inline = read_inline(divided, decode, collapse=True)
        before, source, after = inline.sources()
        built = inline.built
        self.parts += before
        if built is None:
            self.parts += source
        else:
            segment, forms, number = built.segment, built.forms, len(self.segments)

            def write_line(text: str) -> str:
                return write(" ".join(text.splitlines()), segment, forms)

            def render(translations: Translations) -> str:
                new, whole = translations[number], render_parts(source, translations)
                if new.text == segment.text:
                    return whole
                return finish(render_parts(built.render(new, write_line), translations), whole)

            self.parts.append(render)
            self.segments.append(segment)
        self.parts += after

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        assert len(translations) == len(self.segments)
        text = render_parts(self.parts, translations)
        return self.encoding.encode(self.finish(text, is_changed(self.segments, translations)), self._errors)


def _without_access_key(text: str) -> tuple[str, str, str]:
    """Return a text without the sign of its access key, the sign, and the key: `_Open` becomes (`Open`, `_`, `O`)."""
    match = _ACCESS_KEY.search(text)
    if match is None or text.count(match[0]) > 1 or len(text) > _MAX_LABEL:
        return text, "", ""
    return text[: match.start()] + text[match.end() :], match[0], text[match.end()]


def _with_access_key(text: str, sign: str, letter: str) -> str:
    """Insert the sign of an access key before a word that begins with its letter, or else before the first word."""
    if not sign:
        return text
    place = re.search(rf"(?<!\w){re.escape(letter)}", text, re.IGNORECASE) or re.search(r"(?<!\w)[^\W\d_]", text)
    return text[: place.start()] + sign + text[place.start() :] if place else text


def read_text(
    name: str, content: bytes, options: DocumentOptions, declared: str | None = None, errors: str = "strict"
) -> tuple[str, TextDocument]:
    """Return the text of a file, and a document without parts. `declared` is the encoding that the file states.

    `errors` says how the document writes characters that the encoding lacks. Raises: DocumentError if the content is
    not text.
    """
    text, encoding = decode_text(name, content, declared, options.encoding, options.source_language)
    return text, TextDocument(name, options, encoding, errors, text)


def tag_key(opened: list[tuple[int, str]], kind: InlineKind, name: str, place: int) -> int:
    """Return the key of the item of a tag: its place, or that of the tag that it closes, or -1 if it closes none.

    `opened` has the places and names of the open tags. A start tag is appended to it.
    """
    if kind is InlineKind.OPEN:
        opened.append((place, name))
        return place
    return opened.pop()[0] if opened and opened[-1][1] == name else -1


def with_locale(pattern: re.Pattern[str], options: DocumentOptions, text: str, changed: bool, sign: str = "_") -> str:
    """Return a changed text with the code of the target language (group 1), unless it has one of the same language.

    `sign` is the sign between language and region.
    """
    match = pattern.search(text, 0, LOCALE_WITHIN) if options.target_language and changed else None
    if match is None or same_language(match[1].replace("_", "-"), options.target_language):
        return text
    return text[: match.start(1)] + full_tag(options.target_language).replace("-", sign) + text[match.end(1) :]
