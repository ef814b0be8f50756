"""What all documents have in common: segments out, translations in, and limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mt.errors import DocumentError
from mt.text.markup import Markup, MarkupOptions, Segment, Translated, arrange
from mt.text.markup.slots import Decode, Item, ItemKind, around, build, trim, writes_nothing

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class DocumentOptions:
    """Limits of size in bytes, as sent and unpacked, and of segments; and what to translate.

    `retranslate`: entries of .po and units of .xliff that have a translation, too. `mark_fuzzy`: new entries of .po get
    the flag that asks a person to look at them. `markup` is for .html and .xml.
    """

    max_bytes: int = 20_000_000
    max_unpacked_bytes: int = 200_000_000
    max_segments: int = 200_000
    retranslate: bool = False
    mark_fuzzy: bool = False
    markup: MarkupOptions = field(default_factory=MarkupOptions)


class Document(Protocol):
    """A file taken apart. `segments` are to be translated, in this order."""

    segments: list[Segment]

    def render(self, translations: Sequence[Translated]) -> bytes:
        """The file with a translation for each segment."""
        ...


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a text was written: a codec, and the byte order mark before it."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str, errors: str = "replace") -> bytes:
        """`errors` says what becomes of characters that the codec lacks, which only a translation can have."""
        return self.mark + text.encode(self.codec, errors)


@dataclass(frozen=True, slots=True)
class Slot:
    """A translatable text: its segment, and how it is written."""

    number: int
    source: str
    write: Callable[[Segment, Translated], str]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Markup within a document: its first segment."""

    number: int
    markup: Markup


class TextDocument:
    """A document of text: parts that are kept, and slots between them."""

    def __init__(self, encoding: Encoding, errors: str = "replace") -> None:
        self.segments: list[Segment] = []
        self.parts: list[str | Slot | Embedded] = []
        self._encoding, self._errors = encoding, errors

    def keep(self, source: str) -> None:
        self.parts.append(source)

    def add(self, segment: Segment, source: str, write: Callable[[Segment, Translated], str]) -> None:
        """A text that is written as `source` unless it is translated into something else."""
        self.parts.append(Slot(len(self.segments), source, write))
        self.segments.append(segment)

    def add_stripped(self, text: str, source: str, write: Callable[[str], str]) -> None:
        """A plain text, written with the white space around it, or kept if there is nothing to translate in it."""
        if not any(map(str.isalnum, text)):
            self.keep(source)
            return
        before, body, after = around(text)
        self.add(Segment(body), source, lambda _, new: write(before + new.text + after))

    def embed(self, markup: Markup) -> None:
        self.parts.append(Embedded(len(self.segments), markup))
        self.segments += markup.segments

    def add_items(
        self, items: Sequence[Item[str]], decode: Decode, write: Callable[[str, Segment, dict[str, str]], str]
    ) -> None:
        """Text with inline marks; `write` escapes what is translated of it, given how its source did."""
        items = [part for item in items for part in _apart(item)]
        begin, end = trim(items)
        middle = items[begin:end]
        for item in items[:begin]:
            self.parts += item.parts
        source = "".join(part for item in middle for part in item.parts)
        if writes_nothing(middle, decode):
            self.keep(source)
        else:
            built = build(middle, decode, collapse=True)

            def written(segment: Segment, new: Translated) -> str:
                found = []
                for piece in arrange(segment, new):
                    if piece.opens >= 0:
                        found.append("".join(built.openings[piece.opens]))
                    elif piece.closes >= 0:
                        found.append(built.closings[piece.closes] or "")
                    else:
                        found.append(write(piece.text, segment, built.forms))
                return "".join(found)

            self.add(built.segment, source, written)
        for item in items[end:]:
            self.parts += item.parts

    def text(self, translations: Sequence[Translated]) -> str:
        assert len(translations) == len(self.segments)
        found: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
            elif isinstance(part, Embedded):
                begin, end = part.number, part.number + len(part.markup.segments)
                found.append(part.markup.render(translations[begin:end]))
            else:
                new, segment = translations[part.number], self.segments[part.number]
                found.append(part.source if new.text == segment.text else part.write(segment, new))
        return "".join(found)

    def render(self, translations: Sequence[Translated]) -> bytes:
        return self._encoding.encode(self.text(translations), self._errors)


def _apart(item: Item[str]) -> list[Item[str]]:
    """A text without the white space at its ends, and that."""
    if item.kind is not ItemKind.TEXT or item.parts != (item.text,):
        return [item]
    return [Item(ItemKind.TEXT, (text,), text) for text in around(item.text) if text]


def decode_text(name: str, content: bytes, declared: str | None = None) -> tuple[str, Encoding]:
    """The text of a file, and how to write it again: by its byte order mark, by what it declares, or UTF-8.

    Raises DocumentError, with the place, for what is not such a text.
    """
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
            f"{name} is not text in {codec.upper()}{where}; accepted: UTF-8, or UTF-16 with its mark"
        ) from error
    return text, Encoding(codec, mark)
