"""Names of the profiles of languages in language_profiles.toml: letters and words of languages."""

from mt.languages import primary_language

_ALIASES = {"no": "nb", "iw": "he", "fil": "tl"}


def profile_name(tag: str) -> str:
    """Return the name that the profile of a language would have."""
    primary = primary_language(tag)
    return _ALIASES.get(primary, primary)
