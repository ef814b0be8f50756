"""Variants of a source sentence, such as the sentence in lower case, and the decoding of these variants."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from itertools import chain
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.term_constraints import UNLIMITED
from mt.description import COVERED_LENGTH
from mt.engine.requests import Request, Result
from mt.pipeline.constraint_compiler import ConstraintCompiler
from mt.pipeline.driver import AttentionCall, DecodeCall
from mt.pipeline.results import Alternative, with_text
from mt.source_bigrams import SourceBigrams
from mt.text import protect, typography
from mt.text.abbreviations import expand_abbreviations
from mt.text.alignment import PieceAttention, Range, UnitLinks, piece_offsets
from mt.text.clock import read_times, relative_time
from mt.text.formality import Formality
from mt.text.normalise import NormalisedText, Normaliser, plain_spaces
from mt.text.numbers import unify_numbers
from mt.text.phrases import Phrases
from mt.text.places import read_acronyms
from mt.text.protect import ProtectedSpan, SpanKind
from mt.text.restoration import StrippedText, remove_spans, restore_spans
from mt.text.schedules import translate_line
from mt.text.span_patterns import SIGNS_WITH_WORDS
from mt.text.stand_ins import StandIn, StandInKind, StandInWords, is_placeholder, likely_kinds, put_back, replace_spans
from mt.text.terms import TermMatch, Terms
from mt.text.titles import translate_pair
from mt.text.typography import join_numbers, unify_quotes, without_damage
from mt.tokenizer import EOS, SPACE_MARK, UNK, Tokenizer

Ranges = Sequence[Range]
WordKey = tuple[str, str, tuple[int, ...], tuple[int, ...], tuple[str, ...], int, str, str]
"""Key of `words_alone`: source and target language, tag, prefix, banned words, maximum length, term, translation."""


class Reading(Enum):
    """Form in which a model reads the protected spans of a sentence, except numbers and emoji."""

    LIKELY = "likely"  # the likely stand-in for a placeholder or unknown characters, another span itself
    SECOND = "second"  # the same, with the stand-in that is next likely
    THIRD = "third"
    NAMES = "names"  # other stand-ins than those of LIKELY, for all spans but tags
    NUMBERS = "numbers"
    REMOVED = "removed"  # nothing


FIRST_READINGS = {Reading.LIKELY: 0.0, Reading.SECOND: 0.08, Reading.THIRD: 0.0}
"""Readings of a sentence that are decoded together, and the difference of scores by which each must be better.

Models often drop a preposition before a number that stands for a name.
"""
_SKIPPED = {Reading.NAMES: 3}  # number of words that are passed over in the choice of stand-ins


@dataclass(frozen=True)
class SentenceContext:
    """Tokenizer, search options and terms for translating sentences of one direction."""

    tokenizer: Tokenizer
    normaliser: Normaliser
    compiler: ConstraintCompiler
    request_ids: Iterator[int]  # ids that are unique in the engine
    caller: int
    source: str  # source language; empty if unknown
    target: str  # target language
    tag: tuple[int, ...]  # ids at the beginning of every source
    options: SearchOptions
    terms: Terms
    max_length: int  # maximum number of tokens of a source, tag and EOS included, or of a target that the model reads
    prefix: tuple[int, ...] = ()  # ids at the beginning of every translation
    formality: Formality | None = None
    banned: tuple[str, ...] = ()  # words that no translation contains
    covered_length: int = COVERED_LENGTH  # sentences of more tokens are divided at clauses
    bigrams: SourceBigrams | None = None  # pairs of tokens in the sources of the training text, if known
    phrases: Phrases | None = None  # of the model
    reads_target: bool = False  # the training text has sources in the target language, too
    words_alone: dict[WordKey, str] = field(default_factory=dict)
    """Cache of the words that the model writes for terms without context. All sentences of a translator share it."""

    def reworded(self, text: NormalisedText, kept: Sequence[Range]) -> NormalisedText:
        """Return a text with words for abbreviations, and times and numbers as models read them, but not in `kept`."""
        languages = self.source, self.target
        for reword in (read_acronyms, lambda one, _, fixed: expand_abbreviations(one, self.source, fixed), read_times):
            reworded = reword(text, languages, kept)
            if reworded is not text:
                kept = [reworded.normalised_range(*text.original_range(*place)) for place in kept]
                text = reworded
        return unify_numbers(text, languages, kept)

    def find_terms(self, text: str, kept: Sequence[Range] = (), any_case: bool = False) -> tuple[TermMatch, ...]:
        """Return the terms of a text outside the ranges `kept` that are no part of a placeholder, code or address."""
        terms = self.terms.find(text, self.source, kept, any_case)
        if not terms:
            return ()
        spans = [span for span in protect.find_spans(text) if span.kind is not SpanKind.NUMBER]
        return tuple(
            term
            for term in terms
            if not any(
                span.begin <= term.begin and term.end <= span.end and len(span.text) > term.end - term.begin
                for span in spans
            )
        )

    def known_pieces(self, word: str) -> int:
        """Return the number of tokens of a source word, or 0 if they never occurred side by side in training text."""
        ids = self.tokenizer.encode(word)
        known = self.bigrams is not None and not any(self.bigrams.new_pairs(self.source, ids)[1:-1])
        return len(ids) if len(ids) == 1 or known else 0

    def is_common(self, word: str) -> bool:
        """Return whether a word is a token of the target vocabulary."""
        return len(self.tokenizer.target.encode(word)) == 1

    def covers(self, text: str, limit: int) -> bool:
        """Return whether a source text has at most `limit` tokens."""
        return len(text) < limit or len(self.encode(text)) <= limit

    def known_translation(self, text: str) -> str | None:
        """Return the translation of a phrase of the model, or of a line of days and times; None for another text."""
        phrase = self.phrases and self.phrases.translate(text, self.source, self.target)
        pair = self.source, self.target
        return phrase or translate_line(text, pair) or relative_time(text, pair) or translate_pair(text, pair)

    def request(self, text: str, options: SearchOptions) -> Request:
        source = self.encode(text)
        constraints = self.compiler.compile([], self.banned, self.target, UNLIMITED) if self.banned else None
        return Request(next(self.request_ids), source, options.of(source), self.prefix, self.caller, constraints)

    def attention(self, source: Sequence[int], target: Sequence[int], weights: ArrayLike) -> PieceAttention:
        """Return the attention between the pieces of a source and a translation, of which these are the ids."""
        offsets = piece_offsets(self.tokenizer.pieces(source)[len(self.tag) : -1], SPACE_MARK)
        pieces = self.tokenizer.target.pieces(target[len(self.prefix) :])
        return PieceAttention(offsets, piece_offsets(pieces, SPACE_MARK), weights)

    def alternative(self, hypothesis: Hypothesis, spans: Sequence[ProtectedSpan] = ()) -> Alternative:
        """Convert a hypothesis to an alternative: without prefix and damage, on one line, and with one kind of quotes.

        The numbers in `spans`, the protected spans of the source, keep their no-break spaces.
        """
        target, begin = self.tokenizer.target, len(self.prefix)
        tokens = hypothesis.tokens[begin:]
        line = without_damage(" ".join(target.decode(tokens).splitlines()))
        return Alternative(
            text=unify_quotes(join_numbers(line, spans), spans, self.target),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            pieces=tuple(target.pieces(tokens)),
            piece_log_probabilities=hypothesis.token_log_probabilities[begin:],
        )

    def variant(
        self, text: str, kept: Ranges, terms: Ranges, reading: Reading = Reading.LIKELY, lost: Set[str] | None = None
    ) -> "SourceVariant":
        """Return the variant of a text in which stand-ins replace some protected spans, and others are removed.

        With `lost`, `reading` is only that of spans with these texts. Others are read as in Reading.LIKELY.

        Emoji and spans without a stand-in are removed. Spans in `terms` are not protected, except numbers and `kept`.
        """
        spans = protect.find_spans(text, kept)
        if spans and terms:
            spans = tuple(
                span
                for span in spans
                if span.kind in (SpanKind.NUMBER, SpanKind.KEPT)
                or not any(begin < span.end and end > span.begin for begin, end in terms)
            )
        if not spans:
            return SourceVariant(text, tuple(kept), tuple(terms), (), (), StrippedText(text.rstrip()), reading)
        is_first = reading in FIRST_READINGS
        copied: list[ProtectedSpan] = []
        replaced: list[ProtectedSpan] = []
        removed: list[ProtectedSpan] = []
        for span in spans:
            first = is_first or (lost is not None and span.text not in lost)
            readable = span.kind is not SpanKind.EMOJI and self._can_read(span.text, first)
            has_sense = span.kind not in (SpanKind.EMOJI, SpanKind.TAG) and _stands_for_words(span)
            may_stand = has_sense and reading is not Reading.REMOVED
            if readable and (span.kind is SpanKind.NUMBER or (first and not (may_stand and is_placeholder(span.text)))):
                copied.append(span)
            else:
                (replaced if may_stand else removed).append(span)
        written = replace_spans(text, replaced, removed, partial(self._stand_ins, text, reading))
        stripped = remove_spans(written.text, written.others)
        return SourceVariant(
            text, tuple(kept), tuple(terms), spans, tuple(copied), stripped, reading, written.stand_ins
        )

    def _can_read(self, span: str, is_first: bool) -> bool:
        """Return whether the model knows a span's characters; at first, signs of money that it read as bytes count."""
        signs = set(plain_spaces(span)) - self.tokenizer.characters
        is_read = is_first and self.bigrams is not None and signs <= SIGNS_WITH_WORDS
        return not signs or (
            is_read and all(self.known_pieces(sign) and UNK not in self.tokenizer.encode(sign) for sign in signs)
        )

    def _stand_ins(
        self, sentence: str, reading: Reading, texts: Sequence[str], befores: Sequence[str]
    ) -> list[str] | None:
        """Return the words that stand for `texts` in a sentence. `befores` are the texts before them."""
        rank, place, kinds = [*Reading].index(reading) if reading in FIRST_READINGS else 0, 0, list[StandInKind]()
        for text, before in zip(texts, befores, strict=True):
            place = sentence.index(text, place) + len(text)
            likely = likely_kinds(text, before, sentence[place : place + 2])
            kind = StandInKind.NUMBER if reading is Reading.NUMBERS else likely[min(rank, len(likely) - 1)]
            is_time = kind in (StandInKind.DATE, StandInKind.TIME)  # which the model changed in another reading
            kinds.append(StandInKind.NAME if is_time and reading is Reading.NAMES else kind)
        return self._stand_in_words.choose(texts, kinds, sentence, befores, _SKIPPED.get(reading, 0))

    @cached_property
    def _stand_in_words(self) -> StandInWords:
        tokenizer, known = self.tokenizer, self.tokenizer.characters  # a function with `self` would be a cycle
        return StandInWords(
            lambda word: len(tokenizer.encode(word)) if known.issuperset(word.replace(" ", "")) else 0, self.target
        )

    @cached_property
    def encode(self) -> Callable[[str], tuple[int, ...]]:
        """Function that returns the tag, the ids of a normalised source text, and EOS. It caches the last result."""
        tag, tokenizer = self.tag, self.tokenizer  # planner and request encode the same text
        return lru_cache(maxsize=1)(lambda text: (*tag, *tokenizer.encode(plain_spaces(text)), EOS))

    def encode_target(self, text: str) -> tuple[int, ...]:
        """Return the ids of a normalised translation: the prefix, and the ids of the text."""
        return (*self.prefix, *self.tokenizer.target.encode(plain_spaces(text)))


def _stands_for_words(span: ProtectedSpan) -> bool:
    """Return whether a span is no mere sign such as ‖, unlike Ⓐ."""
    has_words = any(map(str.isalnum, normalize("NFKC", span.text)))
    return has_words or span.kind is not SpanKind.KEPT or is_placeholder(span.text)


@dataclass(frozen=True)
class SourceVariant:
    """A source sentence, perhaps in changed letter case.

    `stripped` is `text` without the removed spans, and with `stand_ins` in place of other spans.
    """

    text: str
    kept: tuple[Range, ...]  # ranges that the translation must contain unchanged
    terms: tuple[Range, ...]  # ranges of glossary terms
    spans: tuple[ProtectedSpan, ...]
    copied: tuple[ProtectedSpan, ...]  # spans that the stripped text contains
    stripped: StrippedText
    reading: Reading = Reading.LIKELY
    stand_ins: tuple[StandIn, ...] = ()  # words that the stripped text contains in place of spans


@dataclass(frozen=True)
class DecodedVariant:
    """A source variant and the non-empty n-best list of its translations."""

    variant: SourceVariant
    request: Request
    alternatives: tuple[Alternative, ...]
    hypotheses: tuple[Hypothesis, ...]  # of each alternative, with the prefix
    attentions: dict[int, PieceAttention] = field(default_factory=dict, init=False)  # known so far, by rank

    @classmethod
    def of(
        cls, variant: SourceVariant, request: Request, result: Result, context: SentenceContext
    ) -> "DecodedVariant | None":
        """Return the n-best list without the alternatives that damage a stand-in, or None if no alternative is left."""
        pairs = [(context.alternative(hypothesis, variant.spans), hypothesis) for hypothesis in result.hypotheses]
        source, stand_ins = variant.stripped.text, variant.stand_ins
        if stand_ins:
            pairs = [pair for pair in pairs if put_back(pair[0].text, source, stand_ins, context.target) is not None]
        return cls(variant, request, *map(tuple, zip(*pairs, strict=True))) if pairs else None

    @property
    def best(self) -> Alternative:
        return self.alternatives[0]

    def only(self, is_right: Callable[[Alternative], bool]) -> "DecodedVariant | None":
        """Return the n-best list without the alternatives that are not right, or None if no alternative is left."""
        pairs = [pair for pair in zip(self.alternatives, self.hypotheses, strict=True) if is_right(pair[0])]
        if not pairs:
            return None
        alternatives, hypotheses = zip(*pairs, strict=True)
        return replace(self, alternatives=alternatives, hypotheses=hypotheses)


async def decode_variants(
    variants: Sequence[SourceVariant], context: SentenceContext, options: SearchOptions
) -> tuple[list[DecodedVariant], list[str]]:
    """Decode variants. Return the decoded variants, and the problem of each variant on which the model failed.

    A variant is left out if all its translations damage a stand-in.
    """
    requests = [context.request(variant.stripped.text, options) for variant in variants]
    results = await DecodeCall(requests)
    decoded = [
        one
        for variant, request, result in zip(variants, requests, results, strict=True)
        if (one := DecodedVariant.of(variant, request, result, context))
    ]
    return decoded, [result.problem for result in results if result.problem]


async def restore(decoded: DecodedVariant, context: SentenceContext) -> tuple[Alternative, ...]:
    """Insert protected spans that were removed, or that the model omitted. Return all alternatives of `decoded`."""
    stripped, spans, stand_ins = decoded.variant.stripped, decoded.variant.spans, decoded.variant.stand_ins
    if not (spans or stand_ins):
        return decoded.alternatives
    alternatives = []
    for rank, alternative in enumerate(decoded.alternatives):
        text = put_back(alternative.text, stripped.text, stand_ins, context.target) if stand_ins else alternative.text
        assert text is not None
        if spans and (stripped.removed or protect.lost_spans(spans, text)):
            attention = await piece_attention(decoded, rank, context)
            text = restore_spans(stripped, spans, alternative.text, attention, stand_ins)
        alternatives.append(with_text(alternative, text))
    return tuple(alternatives)


async def piece_attention(decoded: DecodedVariant, rank: int, context: SentenceContext) -> PieceAttention:
    """Return the attention between the stripped source and the alternative of a rank. Rank 0 is the best."""
    if rank not in decoded.attentions:
        source, hypothesis = decoded.request.source, decoded.hypotheses[rank]
        if hypothesis.attention is None:
            weights = (await AttentionCall((source, hypothesis.tokens))).mean()
        else:
            weights = np.asarray(hypothesis.attention)
        weights = weights[len(context.prefix) : -1, len(context.tag) : -1]
        decoded.attentions[rank] = context.attention(source, hypothesis.tokens, weights)
    return decoded.attentions[rank]


async def link_texts(texts: Sequence[tuple[str, str]], context: SentenceContext) -> list[UnitLinks] | None:
    """Return the links between a normalised source and a target, for each pair of `texts`.

    Return None if a text is too long for the model.
    """
    pairs = [(context.encode(source), context.encode_target(target)) for source, target in texts]
    if any(len(source) > context.max_length or len(target) >= context.max_length for source, target in pairs):
        return None
    sizes = len(context.tag), len(context.prefix)
    attentions = [context.attention(*pair, (await AttentionCall(pair)).alignment(*sizes)) for pair in pairs]
    return [UnitLinks(*pair, attention) for pair, attention in zip(texts, attentions, strict=True)]


async def write_breaks(
    source: str, texts: Sequence[str], breaks: Sequence[tuple[int, str]], context: SentenceContext
) -> list[str]:
    """Insert line breaks (place in `source`, text) in the translations `texts`.

    A break at the end of a sentence goes to the end of its translation; others by attention, or lengths in long texts.
    """
    places = [place for place, _ in breaks]
    ends = [typography.places_of_sentence_ends(source, text, places) for text in texts]
    links = await link_texts([(source, text) for text in texts], context) if None in ends else None
    written = []
    divides = any(span.begin < place < span.end for span in protect.find_spans(source) for place in places)
    for number, (text, targets) in enumerate(zip(texts, ends, strict=True)):
        if targets is None and links:
            units = links[number]
            targets = [units.right[gap - 1][1] if gap else 0 for gap in map(units.gap, places)]
        elif targets is None:
            targets = [max(0, text.find(" ", place * len(text) // len(source))) for place in places]
        moved = [(target, mark) for target, (_, mark) in zip(targets, breaks, strict=True)]
        written.append(typography.insert_breaks(text, moved, () if divides else protect.find_spans(text)))
    return written


def join_alternatives(text: str, alternatives: Sequence[Alternative]) -> Alternative:
    """Join one alternative of each sentence into an alternative of the text. `text` is the joined text."""
    if len(alternatives) == 1 and alternatives[0].text == text and alternatives[0].match is None:
        return alternatives[0]
    tokens = [len(alternative.piece_log_probabilities) for alternative in alternatives]
    weighted = sum(alternative.score * count for alternative, count in zip(alternatives, tokens, strict=True))
    return Alternative(
        text=text,
        score=alternatives[0].score if len(alternatives) == 1 else weighted / max(1, sum(tokens)),
        log_probability=sum((alternative.log_probability for alternative in alternatives), 0.0),
        pieces=tuple(chain.from_iterable(alternative.pieces for alternative in alternatives)),
        piece_log_probabilities=tuple(
            chain.from_iterable(alternative.piece_log_probabilities for alternative in alternatives)
        ),
        omitted=tuple(chain.from_iterable(alternative.omitted for alternative in alternatives)),
        copied=tuple(chain.from_iterable(alternative.copied for alternative in alternatives)),
    )
