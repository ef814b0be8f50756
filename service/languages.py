"""Which languages a model translates, and what they are called."""

from collections.abc import Sequence
from typing import NamedTuple

from service.errors import UnsupportedLanguage, shown
from service.schemas import Language

AUTO = "auto"

NAMES = {
    "ar": "Arabic",
    "az": "Azerbaijani",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "cy": "Welsh",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "ms": "Malay",
    "mt": "Maltese",
    "nb": "Norwegian Bokmål",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pb": "Portuguese (Brazil)",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
    "zt": "Chinese (traditional)",
}
"""English names, as LibreTranslate gives them; a language that is not here goes by its code."""


class Direction(NamedTuple):
    source: str
    target: str

    @classmethod
    def of(cls, name: str) -> "Direction":
        """`en-de`."""
        source, _, target = name.partition("-")
        return cls(source, target)


def listed(directions: Sequence[Direction]) -> list[Language]:
    """Every language of the directions, sources and targets alike, by code."""
    codes = sorted({code for direction in directions for code in direction})
    return [
        Language(code=code, name=NAMES.get(code, code), targets=sorted(t for s, t in directions if s == code))
        for code in codes
    ]


def choose(source: str, target: str, directions: Sequence[Direction]) -> Direction:
    """The direction asked for; `auto` is the source language where the target has only one.

    Raises UnsupportedLanguage, which names every code that is unknown, or what the pair lacks.
    """
    known = {code for direction in directions for code in direction}
    unknown = [code for code, accepted in ((source, {AUTO, *known}), (target, known)) if code not in accepted]
    if unknown:
        raise UnsupportedLanguage("; ".join(f"{shown(code)} is not supported" for code in dict.fromkeys(unknown)))
    fitting = [pair for pair in directions if pair.target == target and source in (AUTO, pair.source)]
    if len(fitting) == 1:
        return fitting[0]
    if source == AUTO and fitting:
        sources = ", ".join(sorted(pair.source for pair in fitting))
        raise UnsupportedLanguage(f"auto is not supported: name the source language, one of {sources}")
    into = f"{_described(target)} is not available as a target language"
    raise UnsupportedLanguage(into if source == AUTO else f"{into} from {_described(source)}")


def _described(code: str) -> str:
    return f"{NAMES.get(code, code)} ({code})"
