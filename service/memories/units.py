"""Units of translation memories: the texts that can be stored, and the forms in which they are stored and compared."""

import re
from hashlib import blake2b
from typing import NamedTuple

from mt.text.normalise import normalise_text

MAX_TEXT_LENGTH = 4000  # characters of the source and of the target of a unit; longer units are not stored
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")  # XML cannot contain most of them


class MemoryUnit(NamedTuple):
    """A source text and its translation."""

    source: str
    target: str


def clean_text(text: str) -> str:
    """Return a text on one line: each run of white space and control characters becomes one space."""
    return " ".join(_CONTROL.sub(" ", text).split())


def clean_source(text: str) -> str:
    """Return a source text in the form in which memories compare it: normalised, and on one line."""
    return clean_text(normalise_text(text).text)


def clean_unit(unit: tuple[str, str]) -> MemoryUnit:
    return MemoryUnit(clean_source(unit[0]), clean_text(unit[1]))


def unit_problem(unit: tuple[str, str]) -> str:
    """Return why a unit cannot be stored; "" if no text is blank or has more than MAX_TEXT_LENGTH characters."""
    if max(map(len, unit)) > MAX_TEXT_LENGTH:
        return f"a text has more than {MAX_TEXT_LENGTH:,} characters"
    return "" if all(map(clean_source, unit)) else "a text is blank"


def digest_of(source: str) -> int:
    """Return a 64-bit hash of a source text."""
    digest = blake2b(source.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
