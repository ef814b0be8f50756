"""Formal and informal address in translations: pronouns of German and French, and verb forms that go with them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mt.errors import RequestError
from mt.languages import primary_language


class Formality(StrEnum):
    """Formality with which a translation addresses the reader."""

    LESS = "less"  # du, tu
    MORE = "more"  # Sie, vous

    @property
    def opposite(self) -> "Formality":
        return Formality.LESS if self is Formality.MORE else Formality.MORE


FORMALITY_CHOICES = ("default", "less", "more", "prefer_less", "prefer_more")
"""Names of formalities in requests, as in DeepL's API."""


@dataclass(frozen=True)
class AddressWords:
    """Words of formal and informal address in a language.

    `patterns` match the words of each formality. `ambiguous` matches words that may be formal address or refer to other
    people, such as `Sie` (you or they) at the beginning of a sentence. `banned` has, for each formality, the words that
    a translation with this formality must not contain.
    """

    patterns: Mapping[Formality, re.Pattern[str]]
    banned: Mapping[Formality, tuple[str, ...]]
    ambiguous: re.Pattern[str] | None = None


def _both_cases(*words: str) -> tuple[str, ...]:
    return tuple(written for word in words for written in (word, word[0].upper() + word[1:]))


def _declined(*stems: str, endings: str = " e em en er es") -> tuple[str, ...]:
    return tuple(stem + ending for stem in stems for ending in endings.split(" "))


def _first(words: str) -> str:
    """Return a pattern of words that begin a sentence."""
    return rf"""(?:^|(?<=[.!?:"„»] ))(?:{words.replace(" ", "|")})\b"""


# Familiar imperatives. Those of the second list are also other words, except at the beginning of a sentence.
_IMPERATIVES = "lass gib sag nimm sieh lies iss vergiss hilf sprich komm geh mach schick schreib guck hör frag zeig"
_FIRST_IMPERATIVES = (
    "Warte Öffne Denk Denke Bleib Setz Klick Klicke Drück Trag Probier Stell Leg Nutze Benutze Verwende Sende Prüfe"
)
_FRENCH_IMPERATIVES = (
    "Dis Fais Laisse Viens Prends Regarde Attends Appelle Écris Excuse Aide- Donne- Envoie- Explique- Ferme- Montre-"
    " Ouvre-"
)

_GERMAN = AddressWords(
    {
        Formality.MORE: re.compile(r'(?<!^)(?<![.!?:"„»] )\b(?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)\b'),
        Formality.LESS: re.compile(
            r"\b(?:[Dd]u|[Dd]ich|[Dd]ir|[Dd]ein(?:e[mnrs]?)?|[Ee]uch|[Ee]uer|[Ee]ure[mnrs]?)\b"
            r"|\b[Ii]hr(?= \w*t\b)|^(?:\w+t|Seid) ihr\b|"
            + _first(f"{_IMPERATIVES.title()} {_FIRST_IMPERATIVES}")
            + rf"|\b[Bb]itte (?:{_IMPERATIVES.replace(' ', '|')})\b"
        ),
    },
    {
        Formality.LESS: ("Sie", "Ihnen", *_declined("Ihr")),
        Formality.MORE: (
            *_both_cases("du", "dich", "dir", "euch", "euer", *_declined("dein", "eur"), *_IMPERATIVES.split()),
            *_FIRST_IMPERATIVES.split(),
        ),
    },
    ambiguous=re.compile(r'(?:^|(?<=[.!?:"„»] ))(?:Sie \w+en|Ihnen|Ihr(?:e[mnrs]?)?)\b'),
)
_FRENCH = AddressWords(
    {
        Formality.MORE: re.compile(r"\b(?:[Vv]ous|[Vv]otre|[Vv]os|[Vv]ôtres?|(?!(?:[Cc]h|[Nn]|[Aa]ss)ez\b)\w+ez)\b"),
        Formality.LESS: re.compile(
            r"\b(?:[Tt]u|[Tt]e|[Tt]oi|[Tt]on|[Tt]a|[Tt]es|tien(?:ne)?s?)\b|\b[Tt]['’]|" + _first(_FRENCH_IMPERATIVES)
        ),
    },
    {
        Formality.LESS: _both_cases("vous", "votre", "vos"),
        Formality.MORE: _both_cases("tu", "te", "toi", "ton", "ta", "tes", "t'"),
    },
)
_WORDS = {"de": _GERMAN, "fr": _FRENCH}
FORMALITY_LANGUAGES = tuple(_WORDS)
"""Languages whose words of formal and informal address are known."""

_ENGLISH_ADDRESS = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)


def supports_formality(language: str) -> bool:
    """Return whether the words of formal and informal address in a language are known."""
    return primary_language(language) in _WORDS


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
    words = _WORDS[primary_language(language)]
    found = {kind for kind in Formality if words.patterns[kind].search(text)}
    if words.ambiguous and primary_language(source_language) == "en" and _ENGLISH_ADDRESS.search(source):
        found |= {Formality.MORE} if words.ambiguous.search(text) else set()
    return found


def banned_words(language: str, wanted: Formality) -> tuple[str, ...]:
    """Return the words that a translation with the wanted formality must not contain."""
    return _WORDS[primary_language(language)].banned[wanted]
