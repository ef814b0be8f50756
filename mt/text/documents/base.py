"""Interface and options of documents, and the class of documents that consist of text."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.markup import Markup, MarkupOptions, Segment, TranslatedSegment
from mt.text.markup.inline import Decode, InlineItem, InlineKind, read_inline, split_whitespace

_ENCODING = re.compile(
    r"utf-?8|utf-?16(?:-?[bl]e)?|(?:us-?)?ascii|latin-?1|iso-?8859-?\d{1,2}|(?:windows-?|cp)125\d|koi8-?[ru]"
    r"|shift-?jis|euc-?(?:jp|kr|cn)|gb-?2312|gbk|gb-?18030|big5(?:-?hkscs)?",
    re.IGNORECASE,
)
"""Encodings that a file may declare. Other codecs of Python may take quadratic time or accept any bytes."""

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class DocumentOptions:
    """Limits for all documents, and options for some formats.

    - `max_bytes` limits the size of a file, `max_unpacked_bytes` the size of a file after unpacking, `max_segments` the
      number of segments, and `max_characters` the number of characters of all segments together.
    - If `retranslate` is true, texts in .po, .xliff and .tmx that already have a translation are translated again.
    - If `mark_fuzzy` is true, new translations in .po are flagged for review.
    - `source_language` and `target_language` select the languages in formats with texts in several languages, such as
      .tmx. If `source_language` is empty, the source language that the file states is used.
    - `columns` selects the columns of .csv and .tsv by name or by number from 1. If it is empty, all cells are
      translated.
    - `markup` contains the options for .html and .xml.
    """

    max_bytes: int = 20_000_000
    max_unpacked_bytes: int = 200_000_000
    max_segments: int = 200_000
    max_characters: int = 20_000_000
    retranslate: bool = False
    mark_fuzzy: bool = False
    source_language: str = ""
    target_language: str = ""
    columns: tuple[str, ...] = ()
    markup: MarkupOptions = field(default_factory=MarkupOptions)


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
            most = f"{self._options.max_characters:,}"
            raise DocumentLimitExceeded(f"{self._name} has too many characters to translate; accepted: at most {most}")
        super().append(segment)

    def extend(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            self.append(segment)

    def empty_copy(self) -> "SegmentList":
        return SegmentList(self._name, self._options)


class Document(Protocol):
    """A parsed file. `segments` are its texts to translate, in the order of the file."""

    segments: list[Segment]

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        """Return the content of the file, with each segment replaced by its translation."""
        ...


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The codec of a text file, and the byte order mark at the beginning of the file, if any."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str, errors: str = "replace") -> bytes:
        """Return the byte order mark and the encoded text. `errors` is passed on to `str.encode`."""
        return self.mark + text.encode(self.codec, errors)


@dataclass(frozen=True, slots=True)
class TextSlot:
    """A text to translate. `segment_index` is the index of its segment, and `source` is its form in the file.

    `write` returns the form of a translation in the file, given the segment and the translation.
    """

    segment_index: int
    source: str
    write: Callable[[Segment, TranslatedSegment], str]


@dataclass(frozen=True, slots=True)
class EmbeddedMarkup:
    """HTML or XML within a document.

    `segment_index` is the index of the first segment of `markup` among the segments of the document.
    """

    segment_index: int
    markup: Markup


class TextDocument:
    """Document that is a sequence of parts: source text that is kept, and texts to translate."""

    def __init__(self, segments: SegmentList, encoding: TextEncoding, errors: str = "replace") -> None:
        self.segments: list[Segment] = segments
        self.parts: list[str | TextSlot | EmbeddedMarkup] = []
        self._encoding, self._errors = encoding, errors

    def keep(self, source: str) -> None:
        self.parts.append(source)

    def add(self, segment: Segment, source: str, write: Callable[[Segment, TranslatedSegment], str]) -> None:
        """Append a text. It is rendered by `write`, or as `source` if its translation equals the segment."""
        self.parts.append(TextSlot(len(self.segments), source, write))
        self.segments.append(segment)

    def add_stripped(self, text: str, source: str, write: Callable[[str], str]) -> None:
        """Append a text without tags. Its segment is the text without leading and trailing white space.

        Before `write` converts a translation to its form in the file, the white space is put around the translation
        again. A text without letters and digits is not translated: `source` is kept.
        """
        if not any(map(str.isalnum, text)):
            self.keep(source)
            return
        before, body, after = split_whitespace(text)
        self.add(Segment(body), source, lambda _, new: write(before + new.text + after))

    def embed(self, markup: Markup) -> None:
        self.parts.append(EmbeddedMarkup(len(self.segments), markup))
        self.segments.extend(markup.segments)

    def add_items(
        self, items: Sequence[InlineItem[str]], decode: Decode, write: Callable[[str, Segment, dict[str, str]], str]
    ) -> None:
        """Append a text that consists of inline items, such as pieces of text and tags.

        `decode` resolves the escapes of the source. `write(text, segment, forms)` escapes a piece of the translation.
        `forms` maps each character that the source escapes to its escaped form.
        """
        inline = read_inline([part for item in items for part in split_item(item)], decode, collapse=True)
        before, source, after = inline.sources()
        built = inline.built
        self.parts += before
        if built is None:
            self.parts += source
        else:
            forms = built.forms

            def render(segment: Segment, new: TranslatedSegment) -> str:
                return "".join(built.render(new, lambda text: write(text, segment, forms)))

            self.add(built.segment, "".join(source), render)
        self.parts += after

    def text(self, translations: Sequence[TranslatedSegment]) -> str:
        assert len(translations) == len(self.segments)
        rendered: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                rendered.append(part)
            elif isinstance(part, EmbeddedMarkup):
                begin, end = part.segment_index, part.segment_index + len(part.markup.segments)
                rendered.append(part.markup.render(translations[begin:end]))
            else:
                new, segment = translations[part.segment_index], self.segments[part.segment_index]
                rendered.append(part.source if new.text == segment.text else part.write(segment, new))
        return "".join(rendered)

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        return self._encoding.encode(self.text(translations), self._errors)


def split_item(item: InlineItem[str]) -> list[InlineItem[str]]:
    """Split a TEXT item into its leading white space, its text, and its trailing white space, without empty items.

    Return `[item]` for an item of another kind, or if the text of the item differs from its source.
    """
    if item.kind is not InlineKind.TEXT or item.parts != (item.text,):
        return [item]
    return [InlineItem(InlineKind.TEXT, (text,), text) for text in split_whitespace(item.text) if text]


def decode_text(name: str, content: bytes, declared: str | None = None) -> tuple[str, TextEncoding]:
    """Return the text of a file, and its encoding.

    The encoding is the one of the byte order mark, else `declared`, else UTF-8. `declared` is ignored if it is not an
    accepted encoding, or if the content cannot be decoded with it.

    Raises: DocumentError, with the offset of the first invalid byte, if the content cannot be decoded.
    """
    declared = declared if declared and _ENCODING.fullmatch(declared.replace("_", "-")) else None
    mark, codec = next(((mark, codec) for mark, codec in _BOMS if content.startswith(mark)), (b"", declared or "utf-8"))
    try:
        text = content[len(mark) :].decode(codec)
        if text.encode(codec) != content[len(mark) :]:
            codec = "utf-8"
            text = content.decode(codec)
    except (UnicodeError, LookupError) as error:
        if declared and not mark:
            return decode_text(name, content)
        where = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise DocumentError(
            f"{name} is not text in {codec.upper()}{where}; accepted: UTF-8, or UTF-16 with a byte order mark"
        ) from error
    return text, TextEncoding(codec, mark)
