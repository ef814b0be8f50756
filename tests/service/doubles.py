"""Models that a person can follow: some write words in capitals, others put them in reverse order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack, cast

from mt.decoding.options import SearchOptions
from mt.languages import Direction, DirectionSet
from mt.pipeline.results import Alternative, SentenceTranslation, Translation
from mt.text import segment
from mt.text.alignment import Link, Range
from mt.text.markup.units import find_units
from service.access.database import Database, DatabaseWork
from service.errors import CannotTranslate, Overloaded, StorageUnavailable
from service.http.admission import RequestGate
from service.parsers import process
from service.parsers.pool import ParserPool
from service.translation.answers import answer_of, reports_of
from service.workers.fleet import FleetStats
from service.workers.messages import OnSentence, Ready, SourceText, TranslateOptions, WorkCounts
from service.workers.model_files import CardFacts

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

COUNTED = (
    *("requests", "queued", "running", "finished", "failed", "refused", "restarts"),
    *("reloads", "refused_reloads", "workers", "workers_ready"),
)
STATS = FleetStats(
    **{name: number for number, name in enumerate(COUNTED, start=1)},  # type: ignore[arg-type]
    work=WorkCounts(steps=20, rows=60, source_tokens=21, target_tokens=22),
)
"""Each count has another number."""

WordOrder = Callable[[list[str]], list[tuple[str, int]]]
"""Words into the words of the translation, each with the number of its source."""


def upper(words: list[str]) -> list[tuple[str, int]]:
    return [(word.upper(), number) for number, word in enumerate(words)]


def backwards(words: list[str]) -> list[tuple[str, int]]:
    return [(words[number], number) for number in reversed(range(len(words)))]


Describe = Callable[[SentenceTranslation, TranslateOptions], SentenceTranslation]
"""Function that changes what a model states of a sentence."""


class DirectParsers(ParserPool):
    """Runs operations in this process, and notes their names."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    async def run(self, caller: str, operation: Callable[[Unpack[Arguments]], T], /, *args: *Arguments) -> T:
        self.names.append(operation.__name__)
        return cast(T, self.result(process.run(operation.__name__, args), operation.__name__))


class UnreliableDatabase(Database):
    """`outcomes` are those of the next writes of callers.

    "done", "refused", or "late", which is refused although it is stored.
    """

    outcomes: Sequence[str] = ()

    async def write(self, work: DatabaseWork[T], caller: str = "") -> T:
        outcome, *self.outcomes = (caller and self.outcomes) or ["done", *self.outcomes]
        if outcome == "refused":
            raise StorageUnavailable
        result = await super().write(work, caller)
        if outcome == "late":
            raise StorageUnavailable
        return result


@dataclass
class Call:
    texts: list[SourceText]
    options: TranslateOptions
    caller: str
    cancelled: bool = False


@dataclass(frozen=True)
class WordPool:
    name: str
    description: Ready
    model: Path = Path()
    card: CardFacts = field(default_factory=CardFacts)
    size: int = 0
    loaded: bool = True


def word_pool(way: str, version: str) -> WordPool:
    return WordPool(f"words-{way}", Ready(DirectionSet.parse([way]), SearchOptions(), version, ("cpu",), 1))


@dataclass
class WordModels:
    """Directions and how each writes. Punctuation stays where it is; `poison` cannot be translated."""

    ways: Mapping[str, WordOrder] = field(default_factory=lambda: {"en-de": upper})
    calls: list[Call] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)  # set, unless a test clears it
    errors: list[Exception] = field(default_factory=list)  # of the next calls
    revision: int = 1
    finished: int = 0  # calls
    full: bool = False  # the queue
    gate: RequestGate = field(default_factory=RequestGate)
    ready: bool = True
    failure: Exception | None = None  # of every canary and reload
    canaries: list[tuple[str, str]] = field(default_factory=list)  # texts and callers
    describe: Describe | None = None

    def __post_init__(self) -> None:
        self.opened.set()

    def forget(self) -> None:
        self.opened.set()
        self.calls.clear()
        self.errors.clear()

    @property
    def draining(self) -> bool:
        return self.gate.closed

    def stats(self) -> FleetStats:
        return STATS

    async def translate_by_each(self, text: str, caller: str) -> None:
        self.canaries.append((text, caller))
        await self.opened.wait()
        if self.failure:
            raise self.failure

    async def reload(self) -> None:
        if self.failure:
            raise self.failure
        self.revision += 1

    @property
    def pools(self) -> list[WordPool]:
        return [word_pool(way, str(self.revision)) for way in self.ways]

    def pool_for(self, direction: Direction, name: str = "") -> WordPool:
        assert name in ("", f"words-{direction}")
        return word_pool(str(direction), f"{direction}@{self.revision}")

    def joining(self, caller: str) -> AbstractContextManager[None]:
        return nullcontext()

    def check_room(self, caller: str, texts: Sequence[str]) -> None:
        if self.full:
            raise Overloaded(1)

    async def translate(
        self,
        texts: Sequence[SourceText],
        options: TranslateOptions,
        *,
        caller: str = "",
        on_sentence: OnSentence | None = None,
    ) -> list[Translation]:
        call = Call(list(texts), options, caller)
        self.calls.append(call)
        try:
            await self.opened.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            call.cancelled = True
            raise
        if self.errors:
            raise self.errors.pop(0)
        order = self.ways[str(options.direction)]
        translations = [written(text, options, order) for text in texts]
        if self.describe:
            described = ([self.describe(one, options) for one in each.sentences] for each in translations)
            translations = [replace(a, sentences=tuple(b)) for a, b in zip(translations, described, strict=True)]
        for report in reports_of(answer_of(translations[0], "", "")) if on_sentence else ():
            if "poison" not in report.text.lower():
                assert on_sentence
                on_sentence(report)
                await asyncio.sleep(0)
        if any("poison" in text.text for text in texts):
            raise CannotTranslate("poison cannot be translated")
        self.finished += 1
        return translations


def written(text: SourceText, options: TranslateOptions, order: WordOrder) -> Translation:
    """A text sentence by sentence, with everything in its place, except invisible characters between sentences."""
    language = options.direction.source
    pieces = segment.split_text(text.text, language) if options.split_sentences else segment.cut_text(text.text)
    sentences: list[SentenceTranslation] = []
    whole = ""
    place = 0
    for piece in pieces:
        kept = tuple((begin - place, end - place) for begin, end in text.protected)
        found, links = (
            (piece.text.replace("\u200b", ""), []) if piece.kept else sentence(piece.text, kept, options, order)
        )
        if not piece.kept:
            match = next((one for one in text.matches if one.sentence == piece.text), None)
            if match:
                found, links = match.target, []
            before = len(whole)
            moved = tuple(((a + place, b + place), (c + before, d + before)) for (a, b), (c, d) in links)
            sentences.append(
                SentenceTranslation(
                    source=piece.text,
                    alternatives=alternatives(found, options, match.score if match else None),
                    source_range=(place, place + len(piece.text)),
                    target_range=(before, before + len(found)),
                    confidence=0.5,
                    links=moved if text.aligned else (),
                )
            )
        whole += found
        place += len(piece.text)
    return Translation(alternatives(whole, options), tuple(sentences))


def alternatives(text: str, options: TranslateOptions, match: float | None = None) -> tuple[Alternative, ...]:
    """The second ends with `~1`, and so on."""
    count = options.n_best or 1
    texts = [text + (f"~{rank}" if rank else "") for rank in range(count)]
    return tuple(Alternative(each, -1.0, -1.0, (), (), match) for each in texts)


def sentence(text: str, kept: Sequence[Range], options: TranslateOptions, order: WordOrder) -> tuple[str, list[Link]]:
    words = [unit for unit in find_units(text) if unit.word]
    glossary = dict(options.terms.glossary)
    found: list[str] = []
    links: list[Link] = []
    new = order([text[unit.begin : unit.end] for unit in words])
    place = 0
    for unit, (word, number) in zip(words, new, strict=True):
        source = words[number]
        old = text[source.begin : source.end]
        held = any(begin < source.end and source.begin < end for begin, end in kept)
        word = glossary.get(old, old if held or old in options.terms.untranslated else word)
        found.append(text[place : unit.begin])
        begin = len("".join(found))
        found.append(word)
        links.append(((source.begin, source.end), (begin, begin + len(word))))
        place = unit.end
    return "".join(found) + text[place:], links


class Guesses:
    """Tells English from German and French by a word of each. A text with "il" is in Italian, served or not."""

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = tuple(languages)

    def detect(self, text: str) -> list[tuple[str, float]]:
        words = {"en": "the", "de": "der", "fr": "le"}
        lowered = text.lower().split()
        found = {code: 0.9 if words.get(code) in lowered else 0.05 for code in self.languages}
        foreign = [("it", 0.7)] if "il" in lowered else []
        return foreign + sorted(found.items(), key=lambda item: -item[1])
