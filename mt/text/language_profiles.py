"""Reader of language_profiles.toml: letters and words of languages."""

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict

from mt.languages import primary_language
from mt.text.word_tables import read_tables

_ALIASES = {"no": "nb", "iw": "he", "fil": "tl"}


class LanguageProfiles(BaseModel):
    """The content of language_profiles.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    letters: Mapping[str, Mapping[str, str]]
    words: Mapping[str, str]
    decisive: Mapping[str, str]
    varieties: Mapping[str, tuple[str, str]]


@cache
def language_profiles() -> LanguageProfiles:
    return LanguageProfiles.model_validate(read_tables("language_profiles.toml"))


def profile_name(tag: str) -> str:
    """Return the name that the profile of a language would have."""
    primary = primary_language(tag)
    return _ALIASES.get(primary, primary)
