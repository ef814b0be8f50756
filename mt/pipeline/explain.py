"""Explanations of translations: links between words, the places of tags, and the model's cross-attention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mt.pipeline.driver import AttentionCall
from mt.pipeline.results import Alternative, AttentionMap, ExplainOptions
from mt.pipeline.variants import SentenceContext
from mt.scoring.attention import CrossAttention, Pair
from mt.scoring.copies import find_copies, without_ranges
from mt.text import casing
from mt.text.alignment import Link, PieceAttention, Range, link_words, with_marks
from mt.text.markup.inline import InlineText
from mt.text.markup.marks import Mark, Segment, TranslatedSegment
from mt.text.markup.placement import place_marks
from mt.text.protect import SpanKind
from mt.text.segment import TextPart
from mt.tokenizer import EOS, SPACE_MARK

MAX_SENTENCE_WEIGHTS = 2**27  # of attention; sentences with more are not explained
WEIGHT_DIGITS = 4
Marked = tuple[Sequence[Range], Sequence[Range]]


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


async def place_tags(
    inline: InlineText[str], alternatives: Sequence[Alternative], marked: Marked, context: SentenceContext
) -> tuple[Alternative, ...]:
    """Return the translations of the segment of a sentence with its tags: at the marked ranges, or by attention.

    `marked` are ranges of the segment, and those of the best alternative with their words.
    """
    assert inline.built is not None
    built, placed = inline.built, []
    before, _, after = ("".join(parts) for parts in inline.sources())
    for number, alternative in enumerate(alternatives):
        links = await _align(built.segment.text, alternative, context)
        links = with_marks(links, marked[0], () if number else marked[1])
        rendered = "".join(built.render(TranslatedSegment(alternative.text, links), str))
        placed.append(replace(alternative, text=before + rendered + after))
    return tuple(placed)


async def has_empty_mark(text: str, ranges: Sequence[Range], best: Alternative, context: SentenceContext) -> bool:
    """Return whether a mark around one of the ranges of a text would enclose no words of the translation.

    If the ranges are all of the text, as lines are, also return whether their words have another order.
    """
    segment = Segment(text, tuple(Mark(*place) for place in ranges))
    links = await _align(text, best, context)
    pieces = place_marks(segment, TranslatedSegment(best.text, links))
    order = [piece.opens for piece in pieces if piece.opens >= 0]
    is_moved = all(one[1] == other[0] for one, other in pairwise(ranges)) and order != sorted(order)
    return is_moved or any(before.opens >= 0 and not after.text.strip() for before, after in pairwise(pieces))


async def _align(text: str, translation: Alternative, context: SentenceContext) -> tuple[Link, ...]:
    """Return the links between a text and its translation; none if one of them is too long."""
    explainer = Explainer(context, 1, ExplainOptions(alignment=True))
    return (await explainer.explain([(TextPart(text, False), translation)]))[0].links
