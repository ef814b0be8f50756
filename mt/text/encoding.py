"""Encodings of text files."""

import codecs
import re
from dataclasses import dataclass

from mt.errors import DocumentError
from mt.text.encoding_detection import decode_strict, detect_encoding
from mt.text.word_tables import read_tables

_ENCODING = re.compile(read_tables("patterns.toml")["encodings"]["accepted"])
"""Encodings that are accepted. Other codecs of Python may take quadratic time or accept any bytes."""

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")  # in UTF-16, these are bytes of Cyrillic letters, for example
_LEAST_NULS = 0.2  # share of the bytes of UTF-16 that are also valid UTF-8 without control characters
_C1 = re.compile(rb"[\x80-\x9f]")  # control characters of ISO 8859-1
_MARKED = (".csv", ".srt", ".tsv", ".txt")  # programs recognise UTF-8 in these files by the byte order mark
_ACCEPTED = "accepted: UTF-8, UTF-16 or UTF-32, or another encoding that is named (`encoding`), such as cp1252"


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The codec of a text file, and the byte order mark at the beginning of the file, if any.

    A text with characters that the codec lacks is written in UTF-8, after `utf8_mark`.
    """

    codec: str = "utf-8"
    mark: bytes = b""
    utf8_mark: bytes = b""

    def has_all(self, text: str) -> bool:
        """Return whether the codec has all characters of a text."""
        try:
            text.encode(self.codec)
        except UnicodeEncodeError:
            return False
        return True

    def encode(self, text: str, errors: str = "strict") -> bytes:
        """Return the byte order mark and the encoded text. `errors` other than `strict` is for `str.encode`."""
        if errors != "strict" or self.codec.startswith("utf"):
            return self.mark + text.encode(self.codec, "replace" if errors == "strict" else errors)
        return text.encode(self.codec) if self.has_all(text) else self.utf8_mark + text.encode(errors="replace")


def accepted_encoding(name: str) -> str | None:
    """Return the name of Python's codec for an encoding, or None if the encoding is not accepted."""
    name = re.sub(r"(?i)^x-|:\d{4}$", "", name.strip())  # such as x-mac-roman, and ISO-8859-1:1987
    if not _ENCODING.fullmatch(name.replace("_", "-")):
        return None
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def check_encoding(name: str) -> None:
    """Raise DocumentError unless `name` is "" or an accepted encoding."""
    if name and accepted_encoding(name) is None:
        raise DocumentError(f"the encoding {name[:40]!r} is unknown; accepted: such as utf-16, cp1252 or gb18030")


def is_utf8(content: bytes) -> bool:
    return decode_strict(content, "utf-8") is not None


def decode_text(
    name: str, content: bytes, declared: str | None = None, encoding: str = "", language: str = ""
) -> tuple[str, TextEncoding]:
    """Return the text of a file, and its encoding.

    The encoding is the one of the byte order mark, or UTF-16 or UTF-32 if the content has their zero bytes. Otherwise,
    it is the first of these that can be: `declared`, which the file states; UTF-8; the probable encoding of a text in
    `language`. If the user states `encoding`, it is that one, unless the content is UTF-8.

    Raises: DocumentError, with the offset of the first invalid byte, if the content cannot be decoded, if it contains
        NUL, or if `encoding` is not accepted.
    """
    check_encoding(encoding)
    mark, codec = next((pair for pair in _BOMS if content.startswith(pair[0])), (b"", ""))
    body = content[len(mark) :]
    codec = codec or _wide_codec(body) or _narrow_codec(body, declared, encoding, language)
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as error:
        raise DocumentError(f"{name} is not text in {codec.upper()} at byte {error.start}; {_ACCEPTED}") from error
    if (place := text.find("\0")) >= 0:
        raise DocumentError(f"{name} is not text: character {place + 1} is NUL; {_ACCEPTED}")
    utf8_mark = _BOMS[0][0] if name.lower().endswith(_MARKED) else b""
    return text, TextEncoding(codec, mark, utf8_mark)


def _narrow_codec(content: bytes, declared: str | None, encoding: str, language: str) -> str:
    if encoding:
        return "utf-8" if is_utf8(content) and not content.isascii() else accepted_encoding(encoding) or "utf-8"
    stated = accepted_encoding(declared or "")
    if stated == "iso8859-1" and _C1.search(content):
        stated = "cp1252"  # as browsers do
    if stated and decode_strict(content, stated) is not None:
        return stated
    return "utf-8" if is_utf8(content) else detect_encoding(content, language) or "utf-8"


def _wide_codec(content: bytes) -> str | None:
    """Return the codec of a text in UTF-16 or UTF-32 without byte order mark, or None if the content is neither.

    The byte order is the one with more spaces and line breaks.
    """
    if b"\0" not in content:
        return None
    if content.count(0) < _LEAST_NULS * len(content) and not _CONTROL.search(content) and is_utf8(content):
        return None
    texts = {codec: text for codec in _WIDE if (text := decode_strict(content, codec)) is not None and "\0" not in text}
    scores = {codec: (sum(map(text.count, " \n\r\t")), sum(map(str.isascii, text))) for codec, text in texts.items()}
    return max(scores, key=scores.__getitem__, default=None)
