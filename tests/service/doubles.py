"""Models that a person can follow: some write words in capitals, others put them in reverse order."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mt.engine.results import Alternative, SentenceTranslation, Translation
from mt.text import segment
from mt.text.markup.units import Link, Range, units
from service.errors import CannotTranslate, ServiceError
from service.languages import Direction
from service.workers.messages import Text, Wish

Order = Callable[[list[str]], list[tuple[str, int]]]
"""Words into the words of the translation, each with the number of its source."""


def upper(words: list[str]) -> list[tuple[str, int]]:
    return [(word.upper(), number) for number, word in enumerate(words)]


def backwards(words: list[str]) -> list[tuple[str, int]]:
    return [(words[number], number) for number in reversed(range(len(words)))]


@dataclass
class Call:
    """What a double was asked."""

    texts: list[str]
    direction: Direction
    wish: Wish
    caller: str
    deadline: float | None
    cancelled: bool = False


@dataclass
class WordModels:
    """Directions and how each writes. Punctuation stays where it is; `poison` cannot be translated."""

    ways: dict[str, Order] = field(default_factory=lambda: {"en-de": upper})
    calls: list[Call] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # opened, unless a test closes it
    errors: list[ServiceError] = field(default_factory=list)  # of the next calls
    revision: int = 1

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(map(Direction.of, self.ways))

    def version(self, direction: Direction) -> str:
        return f"{'-'.join(direction)}@{self.revision}"

    async def translate(
        self,
        texts: Sequence[Text],
        direction: Direction,
        wish: Wish,
        *,
        caller: str = "",
        deadline: float | None = None,
    ) -> list[Translation]:
        call = Call([text.text for text in texts], direction, wish, caller, deadline)
        self.calls.append(call)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            call.cancelled = True
            raise
        if self.errors:
            raise self.errors.pop(0)
        if any("poison" in text.text for text in texts):
            raise CannotTranslate("poison cannot be translated")
        order = self.ways["-".join(direction)]
        return [written(text, direction, wish, order) for text in texts]


def written(text: Text, direction: Direction, wish: Wish, order: Order) -> Translation:
    """A text sentence by sentence, with everything in its place."""
    pieces = segment.whole(text.text) if wish.sentences else segment.split(text.text, direction.source)
    sentences: list[SentenceTranslation] = []
    done: list[str] = []
    place = 0
    for piece in pieces:
        kept = tuple((begin - place, end - place) for begin, end in text.kept)
        if not piece.kept:
            found, links = sentence(piece.text, kept, wish, order)
            before = len("".join(done))
            done.append(found)
            sentences.append(
                SentenceTranslation(
                    source=piece.text,
                    text=found,
                    score=-1.0,
                    alternatives=alternatives(found, wish),
                    source_range=(place, place + len(piece.text)),
                    target_range=(before, before + len(found)),
                    confidence=0.5,
                    links=tuple(((a + place, b + place), (c + before, d + before)) for (a, b), (c, d) in links)
                    if wish.insight.alignment
                    else (),
                    attention=None,
                )
            )
        else:
            done.append(piece.text)
        place += len(piece.text)
    whole = "".join(done)
    return Translation(whole, -1.0, alternatives(whole, wish), tuple(sentences))


def alternatives(text: str, wish: Wish) -> tuple[Alternative, ...]:
    """The second ends with `~1`, and so on."""
    count = wish.n_best or 1
    texts = [text + (f"~{rank}" if rank else "") for rank in range(count)]
    return tuple(Alternative(each, -1.0, -1.0, (), ()) for each in texts)


def sentence(text: str, kept: Sequence[Range], wish: Wish, order: Order) -> tuple[str, list[Link]]:
    """The words in their new order and form, everything between them as it was."""
    words = [unit for unit in units(text) if unit.word]
    glossary = dict(wish.terms.glossary)
    found: list[str] = []
    links: list[Link] = []
    new = order([text[unit.begin : unit.end] for unit in words])
    place = 0
    for unit, (word, number) in zip(words, new, strict=True):
        source = words[number]
        old = text[source.begin : source.end]
        held = any(begin < source.end and source.begin < end for begin, end in kept)
        word = glossary.get(old, old if held or old in wish.terms.untranslated else word)
        found.append(text[place : unit.begin])
        begin = len("".join(found))
        found.append(word)
        links.append(((source.begin, source.end), (begin, begin + len(word))))
        place = unit.end
    return "".join(found) + text[place:], links


class Guesses:
    """Tells English from German and French by a word of each."""

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = tuple(languages)

    def detect(self, text: str) -> list[tuple[str, float]]:
        words = {"en": "the", "de": "der", "fr": "le"}
        lowered = text.lower().split()
        found = {code: 0.9 if words.get(code) in lowered else 0.05 for code in self.languages}
        return sorted(found.items(), key=lambda item: -item[1])
