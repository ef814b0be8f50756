"""The application with models for the page: they translate word by word, and words of a text say what to show of it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mt.bundled import STARTER_MODEL
from mt.decoding.options import SearchOptions
from mt.languages import Direction, DirectionSet
from mt.pipeline.results import AttentionMap, SentenceTranslation
from service.errors import UnsupportedLanguage
from service.workers.messages import Ready, TranslateOptions
from service.workers.model_files import CardFacts
from tests.service.application import Application
from tests.service.doubles import WordModels, WordOrder, WordPool

PAIRS = "a ein|the der|dog Hund|cat Katze|runs läuft|sleeps schläft|on auf|beach Strand|sees sieht|and und|man Mann"
GERMAN = {"hello": "hallo"} | {pair.split()[0]: pair.split()[1] for pair in PAIRS.split("|")}
WORDS = {
    "en-de": GERMAN,
    "ar-en": {"كلب": "dog"},
    "de-en": {word.lower(): english for english, word in GERMAN.items()},
    "en-ar": {"the": "ال", "dog": "كلب", "sleeps": "ينام", "hello": "مرحبا"},
    "en-fr": {},
}
QUALITIES = {"beach": 0.62, "and": 0.31}  # of a sentence with this word; of others 0.88
DETECTIONS = {"buongiorno": ("it", 0.98), "xyzzy": ("", 0.0), "qwer": ("", 0.46), "كلب": ("ar", 0.97)}
LIMIT = 2000
SECOND_MODEL = "captions"


def known(words: dict[str, str]) -> WordOrder:
    return lambda texts: [(words.get(text.lower(), text), number) for number, text in enumerate(texts)]


class PageGuesses:
    """Tells German by its words. A text with a word of DETECTIONS is in this language, or less surely in its own."""

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = languages

    def detect(self, text: str) -> list[tuple[str, float]]:
        words = re.findall(r"\w+", text.lower())
        german = sum(word in WORDS["de-en"] for word in words) > sum(word in GERMAN for word in words)
        own = "de" if german else "en"
        language, confidence = next((DETECTIONS[word] for word in words if word in DETECTIONS), (own, 0.97))
        others = [(code, 0.0) for code in (own, *self.languages) if code not in (own, language)]
        return [(language or own, confidence), *others]


def attention(sentence: SentenceTranslation) -> AttentionMap:
    """Two layers of four heads, each looking at the same place or some places further on."""
    sides = [re.findall(r"\w+", text) for text in (sentence.source, sentence.text)]
    source, target = ((*("<0x3F>" if word == "byte" else f"▁{word}" for word in side), "</s>") for side in sides)

    def row(place: int, spread: int) -> list[float]:
        weights = [1 / (1 + (spread + 1) * abs(column - place)) ** 2 for column in range(len(source))]
        return [weight / sum(weights) for weight in weights]

    places = range(len(target))
    heads = [[[row(place + head - layer, head) for place in places] for head in range(4)] for layer in (0, 1)]
    return AttentionMap(source, target, heads)


def described(sentence: SentenceTranslation, options: TranslateOptions) -> SentenceTranslation:
    """What the page shows of a sentence besides its text."""
    words = sentence.source.lower()
    qualities = (value for word, value in QUALITIES.items() if word in words.split() or f"{word}." in words)
    quality = min(qualities, default=0.88)
    unfamiliar = "mortgage" in words
    return replace(
        sentence,
        confidence=None if unfamiliar else 1.0 if sentence.match == 1 else 0.88 if sentence.match else quality,
        unfamiliar=unfamiliar,
        copied=("Zyklon",) if "zyklon" in words else (),
        attention=attention(sentence) if options.attention else None,
    )


class PageModels(WordModels):
    """The first model is the bundled one. If `second` is set, another model translates from English into German."""

    second = False

    @property
    def pools(self) -> list[WordPool]:
        pools = [replace(pool, name=pool.name.removeprefix("words-")) for pool in super().pools]
        pools[0] = replace(pools[0], model=STARTER_MODEL, card=CardFacts(licence="CC-BY 4.0"))
        about = "This model was trained on captions."
        ready = Ready(DirectionSet.parse(["en-de"]), SearchOptions(), "2", ("cpu",), 1, about=about)
        return [*pools, WordPool(SECOND_MODEL, ready)] if self.second else pools

    def pool_for(self, direction: Direction, name: str = "") -> WordPool:
        for pool in self.pools:
            if name in ("", pool.name) and direction in pool.description.directions:
                return pool
        raise UnsupportedLanguage(str(direction))


class PageApplication(Application):
    detector = PageGuesses

    def __init__(self, *more: str, second: bool = False, **settings: Any) -> None:
        """`more` are further target languages."""
        self._second = second
        ways = {way: known(words) for way, words in WORDS.items()}
        ways |= {f"en-{code}": known({}) for code in more}
        super().__init__(ways, max_characters=LIMIT, cache_characters=0, **settings)

    def make_models(self) -> PageModels:
        models = PageModels(self.ways, describe=described)
        models.second = self._second
        return models
