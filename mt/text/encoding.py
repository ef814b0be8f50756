"""Encodings of text files."""

import re
from dataclasses import dataclass

from mt.errors import DocumentError

_ENCODING = re.compile(
    r"utf-?8|utf-?16(?:-?[bl]e)?|(?:us-?)?ascii|latin-?1|iso-?8859-?\d{1,2}|(?:windows-?|cp)125\d|koi8-?[ru]"
    r"|shift-?jis|euc-?(?:jp|kr|cn)|gb-?2312|gbk|gb-?18030|big5(?:-?hkscs)?",
    re.IGNORECASE,
)
"""Encodings that a file may declare. Other codecs of Python may take quadratic time or accept any bytes."""

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The codec of a text file, and the byte order mark at the beginning of the file, if any."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str, errors: str = "replace") -> bytes:
        """Return the byte order mark and the encoded text. `errors` is passed on to `str.encode`."""
        return self.mark + text.encode(self.codec, errors)


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
