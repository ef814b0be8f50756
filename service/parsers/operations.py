"""Operations of a parser process. They keep no state: writing a document parses it again.

The operations for reading return the text of each segment without its marks, such as tags. A segment may have 100,000
marks, and reading them would take the event loop 0.3 s.

Arguments are pickled, and results are sent as JSON, so they are plain data. A long list must be the last argument or
the whole result, because only these are sent in parts.
"""

import io
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from mt.data.translation_memory import read_memory_stream, read_tab_separated, tmx_languages
from mt.data_config import MEMORY_FORMATS
from mt.errors import DataError, DocumentError, DocumentLimitExceeded
from mt.text.alignment import Link
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import Markup, MarkupOptions, Segment, TranslatedSegment, parse_html, parse_xml
from service.workers.messages import SourceText

PackedSegment = tuple[str, bytes]
"""Text and alignment of a translated segment, as `pack` returns them."""


def read_document(name: str, content: bytes, options: DocumentOptions) -> list[SourceText]:
    """Return the text of each segment of a document. Raises: DocumentError if the document cannot be read."""
    return list(map(_source_text, open_document(name, content, options).segments))


def write_document(name: str, content: bytes, options: DocumentOptions, translations: list[PackedSegment]) -> bytes:
    """Return the document with its segments replaced by `translations`, in order.

    Raises: DocumentError if the document cannot be read or written.
    """
    return open_document(name, content, options).render(list(map(_unpacked, translations)))


def pack(text: str, alignment: Iterable[Link] = ()) -> PackedSegment:
    """Return a translated segment with the numbers of its alignment as bytes.

    A pickle of the alignment of 100,000 words took 70 ms. Use a thread for long texts.
    """
    numbers = array("I")
    for source, target in alignment:
        numbers.extend((*source, *target))
    return text, numbers.tobytes()


def _unpacked(segment: PackedSegment) -> TranslatedSegment:
    numbers = iter(array("I", segment[1]))
    return TranslatedSegment(segment[0], tuple(((a, b), (c, d)) for a, b, c, d in zip(*[numbers] * 4, strict=True)))


def read_markup(texts: Sequence[str], xml: bool, options: MarkupOptions) -> list[tuple[int, SourceText]]:
    """Return (index in `texts`, text of the segment) of each segment of marked-up texts."""
    parsed = enumerate(_parse(text, xml, options) for text in texts)
    return [(number, _source_text(segment)) for number, markup in parsed for segment in markup.segments]


def write_markup(
    texts: Sequence[tuple[str, int]], xml: bool, options: MarkupOptions, translations: list[PackedSegment]
) -> list[str]:
    """Return translated copies of marked-up texts: n copies for each pair (text, n) of `texts`.

    `translations` has one item for each segment of each copy, in the order of the copies.
    """
    left = map(_unpacked, translations)
    written: list[str] = []
    for text, versions in texts:
        markup = _parse(text, xml, options)
        written += [markup.render(list(islice(left, len(markup.segments)))) for _ in range(versions)]
    return written


def _source_text(segment: Segment) -> SourceText:
    """Return the text of a segment. If the segment's marks can only be placed by a word alignment, request one."""
    aligned = bool(segment.marks) and not segment.ordered
    return SourceText(segment.text, segment.kept, aligned, marked=segment.marked)


def _parse(text: str, xml: bool, options: MarkupOptions) -> Markup:
    return (parse_xml if xml else parse_html)(text, options)


UNIT_SUFFIXES = (*MEMORY_FORMATS, ".tsv")


def read_units(name: str, content: bytes, source: str, target: str, limit: int) -> list[tuple[str, str]]:
    """Return (source text, target text) of each unit in the file of a translation memory.

    A .tsv file has a source text and a target text on each line. In other formats, the texts of the languages `source`
    and `target` are used.

    Raises: DocumentError if the file cannot be read, DocumentLimitExceeded if it has more than `limit` units.
    """
    units: list[tuple[str, str]] = []
    try:
        for pair in read_units_of(name, content, source, target):
            units.append(pair)
            if len(units) > limit:
                raise DocumentLimitExceeded(f"the file has more than {limit} units")
    except DataError as error:
        raise DocumentError(str(error)) from error
    return units


def read_languages(name: str, content: bytes) -> tuple[str, list[str]]:
    """Return the source language of a TMX file, and its target languages.

    Raises: DocumentError if the file cannot be read, or has texts in fewer than two languages.
    """
    try:
        return tmx_languages(io.BytesIO(content), name)
    except DataError as error:
        raise DocumentError(str(error)) from error


def read_units_of(name: str, content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield (source text, target text) of each unit in a file. Raises: DataError if the file cannot be read."""
    if name.lower().endswith(".tsv"):
        pairs = read_tab_separated(name, content, source, target)
    else:
        pairs = read_memory_stream(io.BytesIO(content), name, source, target)
    return ((pair.source, pair.target) for pair in pairs)


OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (read_document, write_document, read_markup, write_markup, read_units, read_languages)
}


def _decode_text(item: Any) -> SourceText:
    text, protected, aligned, _, marked = item
    ranges = (tuple((int(begin), int(end)) for begin, end in places) for places in (protected, marked))
    return SourceText(decode_string(text), next(ranges), bool(aligned), marked=next(ranges))


def _decode_numbered(item: Any) -> tuple[int, SourceText]:
    number, text = item
    return int(number), _decode_text(text)


def _decode_pair(item: Any) -> tuple[str, str]:
    source, target = item
    return decode_string(source), decode_string(target)


def decode_string(item: Any) -> str:
    """Return an item that is a string. Raises: TypeError if it is none."""
    if not isinstance(item, str):
        raise TypeError(f"{type(item).__name__} is no text")
    return item


DECODERS: dict[str, Callable[[Any], Any]] = {
    read_document.__name__: _decode_text,
    read_markup.__name__: _decode_numbered,
    write_markup.__name__: decode_string,
    read_units.__name__: _decode_pair,
}
"""Functions that return an item of an operation's list, given its JSON. They raise TypeError or ValueError."""
