"""Which languages the models translate, directly and through a bridge, and what they are called."""

from collections.abc import Sequence
from typing import NamedTuple

from service.errors import UnsupportedLanguage, shown

PIVOT = "en"  # the bridge that is taken before others

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


Route = tuple[Direction, ...]
"""One direction, or two that meet in a bridge language; empty where source and target are the same."""


class Routes:
    """Every pair that some directions translate: as it is, or through a language in common."""

    def __init__(self, directions: Sequence[Direction]) -> None:
        self.languages = tuple(sorted({code for direction in directions for code in direction}))
        self._routes: dict[Direction, Route] = {}
        bridges = sorted(self.languages, key=lambda code: (code != PIVOT, code))
        known = set(directions)
        for bridge in bridges:
            sources = [source for source, target in known if target == bridge]
            targets = [target for source, target in known if source == bridge]
            for pair in (Direction(source, target) for source in sources for target in targets):
                if pair.source != pair.target:
                    self._routes.setdefault(pair, (Direction(pair.source, bridge), Direction(bridge, pair.target)))
        self._routes.update((direction, (direction,)) for direction in directions)

    @property
    def pairs(self) -> tuple[Direction, ...]:
        return tuple(sorted(self._routes))

    def sources(self, target: str) -> tuple[str, ...]:
        """The languages that can be translated into one."""
        return tuple(sorted(pair.source for pair in self._routes if pair.target == target))

    def of(self, source: str, target: str) -> Route:
        """Raises UnsupportedLanguage, which says what the pair lacks."""
        self.check(source, target)
        if source == target:
            return ()
        route = self._routes.get(Direction(source, target))
        if route is None:
            said = f"{described(target)} is not available as a target language from {described(source)}"
            raise UnsupportedLanguage(said)
        return route

    def check(self, *codes: str) -> None:
        """Raises UnsupportedLanguage, which names every code that is unknown."""
        unknown = [code for code in dict.fromkeys(codes) if code not in self.languages]
        if unknown:
            raise UnsupportedLanguage("; ".join(f"{shown(code)} is not supported" for code in unknown))


def name_of(code: str) -> str:
    """In English."""
    return NAMES.get(code, code)


def described(code: str) -> str:
    """`German (de)`."""
    return f"{name_of(code)} ({code})"
