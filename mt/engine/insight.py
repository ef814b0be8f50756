"""How a translation came about, for those who ask: which words translate which, and what the model looked at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from mt.engine.attention import Attender, Pair
from mt.engine.results import Alternative, AttentionMap, Insight
from mt.text import casing, protect
from mt.text.linking import Attention, Link, Range, begins_of, word_links
from mt.text.protect import Kind
from mt.tokenizer import EOS, SPACE_MARK, Tokenizer

MOST_WEIGHTS = 500_000  # that are told of the sentences of a text
LARGEST = 2**27  # weights of a sentence
DIGITS = 4  # of a weight


@dataclass(frozen=True)
class Sight:
    """What is seen of one sentence: links of its own characters, in order of the translation."""

    links: tuple[Link, ...] = ()
    attention: AttentionMap | None = None


Look = Callable[[Sequence[tuple[str, Alternative]]], list[Sight]]
"""Of the sentences of a text and their translations."""


@dataclass(frozen=True)
class Reading:
    """A text as the model is to read it: what stands at its characters, and one more place, in the text itself."""

    text: str
    places: tuple[int, ...]

    @classmethod
    def of(cls, text: str, left_out: Sequence[Range]) -> "Reading":
        """A text without some ranges, and without white space that follows such a one and other white space."""
        places: list[int] = []
        for place, character in enumerate(text):
            follows = not places or (places[-1] < place - 1 and text[places[-1]].isspace())
            if not any(begin <= place < end for begin, end in left_out) and not (character.isspace() and follows):
                places.append(place)
        return cls("".join(text[place] for place in places), (*places, len(text)))


@dataclass(frozen=True)
class Observer:
    """Looks at translations as the model sees them when it is given both sides."""

    tokenizer: Tokenizer
    attender: Attender
    tag: tuple[int, ...]
    language: str  # of the source
    longest: int  # tokens of either side that the model can read
    insight: Insight

    def __call__(self, sentences: Sequence[tuple[str, Alternative]]) -> list[Sight]:
        """Raises whatever a model can raise.

        A sentence whose translation is longer than the model can read has nothing to show, nor has one of more than
        LARGEST weights. Attention is told until a text has MOST_WEIGHTS.
        """
        views = [self._view(source, found) for source, found in sentences]
        sights = [Sight()] * len(views)
        left = MOST_WEIGHTS
        shown = [number for number, view in enumerate(views) if self._shown(view.ids)]
        for group in self.attender.groups([views[number].ids for number in shown]):
            numbers = [shown[each] for each in group]
            weights_of = self.attender.layers([views[number].ids for number in numbers])
            for number, weights in zip(numbers, weights_of, strict=True):
                attention = None
                if self.insight.attention and weights.numel() <= left:
                    left -= weights.numel()
                    attention = self._map(views[number], weights)
                links = self._links(views[number], weights) if self.insight.alignment else ()
                sights[number] = Sight(tuple(links), attention)
        return sights

    def _view(self, source: str, found: Alternative) -> "View":
        """The sentence as models read it: in small letters, and without what was carried across whole."""
        copied = list(_copies(source, found.text))
        left_out = [link for kind, link in copied if kind is not Kind.NUMBER]
        texts = _in_small_letters(source, found, self.language)
        readings = [Reading.of(text, [link[side] for link in left_out]) for side, text in enumerate(texts)]
        sides = (self.tokenizer, self.tokenizer.target)
        encoded = [side.encode(reading.text) for side, reading in zip(sides, readings, strict=True)]
        return View(
            source,
            found.text,
            tuple(link for _, link in copied),
            (readings[0], readings[1]),
            ((*self.tag, *encoded[0], EOS), encoded[1]),
        )

    def _shown(self, pair: Pair) -> bool:
        source, target = len(pair[0]), len(pair[1]) + 1
        config = self.attender.model.config
        heads = config.decoder_layers * config.heads
        return max(source, target) <= self.longest and heads * source * target <= LARGEST

    def _map(self, view: "View", weights: Tensor) -> AttentionMap:
        source = tuple(self.tokenizer.pieces(view.ids[0]))
        target = tuple(self.tokenizer.target.pieces((*view.ids[1], EOS)))
        return AttentionMap(source, target, _rounded(weights.tolist()))

    def _links(self, view: "View", weights: Tensor) -> list[Link]:
        own = (view.ids[0][len(self.tag) : -1], view.ids[1])
        if not all(own):
            return list(view.copies)
        source, target = (
            [reading.places[place] for place in begins_of(side.pieces(ids), SPACE_MARK)]
            for side, reading, ids in zip((self.tokenizer, self.tokenizer.target), view.readings, own, strict=True)
        )
        aligned = self.attender.aligned(weights[:, :, :-1, len(self.tag) :])
        return word_links(view.source, view.target, Attention(source, target, aligned), view.copies)


@dataclass(frozen=True)
class View:
    """A sentence and its translation, and how the model reads them."""

    source: str
    target: str
    copies: tuple[Link, ...]
    readings: tuple[Reading, Reading]
    ids: Pair


def _in_small_letters(source: str, found: Alternative, language: str) -> tuple[str, str]:
    """A sentence in capitals, and its translation, as they would be written otherwise, if each has the same length."""
    lowered = casing.lowered(source, language)
    written = "".join(found.pieces).replace(SPACE_MARK, " ").strip()
    small = written if written.lower() == found.text.lower() else found.text.lower()
    if lowered is None or len(lowered) != len(source) or len(small) != len(found.text):
        return source, found.text
    return lowered, small


def _copies(source: str, target: str) -> Iterator[tuple[Kind, Link]]:
    """What was carried across whole: the n-th time that it stands in both."""
    there = list(protect.find(target))
    for span in protect.find(source):
        copy = next((other for other in there if other.text == span.text), None)
        if copy is not None:
            there.remove(copy)
            yield span.kind, ((span.begin, span.end), (copy.begin, copy.end))


def _rounded(weights: list[list[list[list[float]]]]) -> tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]:
    return tuple(
        tuple(tuple(tuple(round(weight, DIGITS) for weight in row) for row in head) for head in layer)
        for layer in weights
    )
