"""Formal and informal address in translations: pronouns of German and French, and verb forms that go with them."""

import re
from enum import StrEnum

from mt.errors import RequestError
from mt.languages import primary_language
from mt.text.word_tables import read_tables


class Formality(StrEnum):
    """Formality with which a translation addresses the reader."""

    LESS = "less"  # du, tu
    MORE = "more"  # Sie, vous


FORMALITY_CHOICES = ("default", "less", "more", "prefer_less", "prefer_more")  # in requests, as in DeepL's API
FORMALITY_LANGUAGES = ("de", "fr")  # those whose words of formal and informal address are known

_ENGLISH_ADDRESS = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)


def supports_formality(language: str) -> bool:
    """Return whether the words of formal and informal address in a language are known."""
    return primary_language(language) in FORMALITY_LANGUAGES


def chosen_formality(choice: str | None, language: str) -> Formality | None:
    """Return the formality that one of FORMALITY_CHOICES selects; None for "default" and for None.

    `prefer_less` and `prefer_more` have no effect on a language without formality. Raises: RequestError for `less` and
    `more` in such a language.
    """
    wanted = (choice or "default").removeprefix("prefer_")
    if wanted != "default" and supports_formality(language):
        return Formality(wanted)
    if choice in tuple(Formality):
        raise RequestError(
            f"target language {language} does not support formality {choice!r}; "
            "accepted: default, prefer_less, prefer_more"
        )
    return None


def formalities_of(text: str, language: str, source: str, source_language: str) -> set[Formality]:
    """Return the formalities of the words of a translation: none, one, or both if it mixes them.

    Ambiguous words count as formal only if the source is English and addresses the reader.
    """
    words = read_tables("formality.toml")[primary_language(language)]
    found = {kind for kind in Formality if any(re.search(pattern, text) for pattern in words[kind])}
    if primary_language(source_language) == "en" and _ENGLISH_ADDRESS.search(source):
        found |= {Formality.MORE} if re.search(words["ambiguous"], text) else set()
    return found


def banned_words(language: str, wanted: Formality) -> tuple[str, ...]:
    """Return the words that a translation with the wanted formality must not contain."""
    return tuple(read_tables("formality.toml")[primary_language(language)][f"not_{wanted}"].split())
