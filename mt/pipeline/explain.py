"""Explanations of translations: links between words, and the model's cross-attention."""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt.pipeline.driver import AttentionCall
from mt.pipeline.results import Alternative, AttentionMap, ExplainOptions
from mt.pipeline.variants import SentenceContext
from mt.scoring.attention import CrossAttention, Pair
from mt.text import casing, protect
from mt.text.alignment import Link, PieceAttention, Range, link_words
from mt.text.numbers import NOT_DIGIT
from mt.text.protect import SpanKind
from mt.text.segment import TextPart
from mt.tokenizer import EOS, SPACE_MARK

MAX_SENTENCE_WEIGHTS = 2**27  # of attention; sentences with more are not explained
WEIGHT_DIGITS = 4


@dataclass(frozen=True)
class Explanation:
    """Explanation of one sentence. `links` are pairs of a source range and a target range, in target order."""

    links: tuple[Link, ...] = ()
    attention: AttentionMap | None = None


@dataclass(frozen=True)
class ReducedPair:
    """A sentence and its translation. The model reads shortened texts of the given `ids`.

    `places[side][i]` is the offset in the full text of character i of the shortened one; for i = -1, its length.
    """

    source: str
    target: str
    copies: tuple[Link, ...]  # protected spans that are equal in source and target
    places: tuple[Sequence[int], Sequence[int]]
    ids: Pair


@dataclass(frozen=True)
class Explainer:
    """Explainer of translations by the cross-attention of the model.

    The attention comes from a teacher-forced pass over a sentence and its translation. The model reads both without
    copied spans. If the sentence is in ALL CAPS, the model reads both in sentence case.
    """

    context: SentenceContext
    heads: int  # number of heads of all decoder layers
    options: ExplainOptions
    max_weights: int = MAX_SENTENCE_WEIGHTS

    async def explain(self, sentences: Sequence[tuple[TextPart, Alternative]]) -> list[Explanation]:
        """Return the explanation of each sentence of a text. `sentences` contains pairs (source, best alternative).

        It is empty if a sentence is too long for the model, or has more than `max_weights` weights. An attention
        map is left out if, with it, the maps of the text would have more than `options.attention` weights.
        """
        explanations = []
        weights_left, normalise = self.options.attention, self.context.normaliser.normalise
        for part, alternative in sentences:
            source, target = normalise(part.text, part.kept_ranges), normalise(alternative.text)
            pair = self._pair(source.text, replace(alternative, text=target.text))
            source_length, target_length = len(pair.ids[0]), len(pair.ids[1]) + 1
            is_long = max(source_length, target_length) > self.context.max_length
            if is_long or self.heads * source_length * target_length > self.max_weights:
                explanations.append(Explanation())
                continue
            attention = await AttentionCall(pair.ids)  # one at a time: the weights of all sentences would be too large
            attention_map = None
            if attention.weights.size <= weights_left:
                weights_left -= attention.weights.size
                attention_map = self._map(pair, attention)
            links = self._links(pair, attention) if self.options.alignment else ()
            original = ((source.original_range(*left), target.original_range(*right)) for left, right in links)
            explanations.append(Explanation(tuple(original), attention_map))
        return explanations

    def _pair(self, source: str, alternative: Alternative) -> ReducedPair:
        copies = list(find_copies(source, alternative.text))
        removed = [link for kind, link in copies if kind is not SpanKind.NUMBER]
        texts = _lower_pair(source, alternative, self.context.source)
        (source_text, source_places), (target_text, target_places) = (
            without_ranges(text, [link[side] for link in removed]) for side, text in enumerate(texts)
        )
        ids = (self.context.encode(source_text), self.context.encode_target(target_text))
        links = tuple(link for _, link in copies)
        return ReducedPair(source, alternative.text, links, (source_places, target_places), ids)

    def _map(self, pair: ReducedPair, attention: CrossAttention) -> AttentionMap:
        tokenizer, begin = self.context.tokenizer, len(self.context.prefix)
        source = tuple(tokenizer.pieces(pair.ids[0]))
        target = tuple(tokenizer.target.pieces((*pair.ids[1][begin:], EOS)))
        return AttentionMap(
            source, target, np.round(attention.weights[:, :, begin:].astype(float), WEIGHT_DIGITS).tolist()
        )

    def _links(self, pair: ReducedPair, attention: CrossAttention) -> Sequence[Link]:
        weights = attention.alignment(len(self.context.tag), len(self.context.prefix))
        reduced = self.context.attention(*pair.ids, weights)
        if not (reduced.source and reduced.target):
            return pair.copies
        source, target = (
            [places[place] for place in offsets]
            for places, offsets in zip(pair.places, (reduced.source, reduced.target), strict=True)
        )
        return link_words(pair.source, pair.target, PieceAttention(source, target, weights), pair.copies)


def without_ranges(text: str, removed: Sequence[Range]) -> tuple[str, list[int]]:
    """Return a text without ranges, the offset in `text` of each of its characters, and the length of `text`.

    White space that is then at the beginning, or doubled, is removed, too.
    """
    gone = {place for begin, end in removed for place in range(begin, end)}
    places: list[int] = []
    for place, character in enumerate(text):
        redundant = character.isspace() and (not places or (places[-1] < place - 1 and text[places[-1]].isspace()))
        if not redundant and place not in gone:
            places.append(place)
    return "".join(text[place] for place in places), [*places, len(text)]


def _lower_pair(source: str, alternative: Alternative, language: str) -> tuple[str, str]:
    """Return a sentence and its translation. If the sentence is in ALL CAPS, change both to sentence case.

    If the length of either would change, both are returned unchanged.
    """
    lowered = casing.lower_capitals(source, language)
    written = "".join(alternative.pieces).replace(SPACE_MARK, " ").strip()
    small = written if written.lower() == alternative.text.lower() else alternative.text.lower()
    if lowered is None or len(lowered) != len(source) or len(small) != len(alternative.text):
        return source, alternative.text
    return lowered, small


def find_copies(source: str, target: str) -> Iterator[tuple[SpanKind, Link]]:
    """Yield (kind, link) for each protected span that occurs in both texts; a number also as `20 $` for $20.

    Occurrence n of a span in the source is linked to occurrence n in the target.
    """
    copies: defaultdict[str, deque[Range]] = defaultdict(deque)
    spans = protect.find_spans(source)
    texts = {span.text for span in spans}
    for copy in protect.find_translated_spans(target, spans):
        rewritten = copy.kind is SpanKind.NUMBER and copy.text not in texts
        copies[NOT_DIGIT.sub("", copy.text) if rewritten else copy.text].append((copy.begin, copy.end))
    for span in spans:
        written = copies[span.text] or (span.kind is SpanKind.NUMBER and copies[NOT_DIGIT.sub("", span.text)])
        if written:
            yield span.kind, ((span.begin, span.end), written.popleft())
