"""Reader of the tables of words of this package, which are .toml files."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mt.languages import primary_language

_PROFILE_NAMES = {"no": "nb", "iw": "he", "fil": "tl"}


@cache
def read_tables(name: str) -> dict[str, Any]:
    """Return the content of a .toml file, such as `markup/elements.toml`."""
    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))


@cache
def read_words(name: str) -> dict[str, frozenset[str]]:
    """Return the words of each key of a .toml file."""
    return {key: frozenset(words.split()) for key, words in read_tables(name).items()}


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with other patterns in place of their names in braces, also within these."""
    return re.sub(r"\{([a-z_][a-z_\d]*)\}", lambda name: filled(parts[name[1]], parts), pattern)


def profile_name(tag: str) -> str:
    """Return the name that the profile of a language would have in language_profiles.toml."""
    primary = primary_language(tag)
    return _PROFILE_NAMES.get(primary, primary)
