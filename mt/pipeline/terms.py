"""Glossary terms in translations. A constrained search writes missing terms; if it fails, terms are substituted."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.pipeline.constraint_compiler import RequiredTerm
from mt.pipeline.driver import DecodeCall
from mt.pipeline.results import Alternative
from mt.pipeline.term_words import (
    CAPITALIZED_NOUNS,
    can_ban,
    displaced_words,
    is_translated_twice,
    mark_compounds,
    substitute_terms,
)
from mt.pipeline.variants import (
    DecodedVariant,
    SentenceContext,
    SourceVariant,
    decode_variants,
    piece_attention,
    restore,
)
from mt.text import negation, protect, repetition, schedules, symbols
from mt.text.alignment import UnitLinks, find_words
from mt.text.inflection import NounNumber, with_usual_cases
from mt.text.terms import NOUN_AFTER, TermMatch, find_translation, is_beside_noun, missing_terms

# Least numbers of beams of a constrained search, which are divided among hypotheses with 0, 1, 2, ... terms. They are
# the only two, because only the compiled kernels decode several beam sizes in one batch.
MIN_BEAMS, MANY_TERMS_BEAMS = 8, 16  # the other for more than two terms: with 8 beams, more searches fail
THRESHOLD = 1.5  # difference of log-probabilities at which a search drops hypotheses; about 3.5 remain
MAX_TERMS = 12  # that a search must write; the other terms are substituted afterwards
MAX_TERM_CHARACTERS = 300  # of all terms that a search must write: its tables grow with the square of it
MAX_WORDS_ALONE = 4096  # entries of the cache `SentenceContext.words_alone`; a full cache is cleared
_LEAST_OF_SOURCE = 0.85  # share of the width of a source: with narrower translations the free one is compared
_SENTENCE_END = re.compile(r"[.!?](?=\s)")
_LEAST_OF_FREE = 0.7  # share of the width of the free translation
_MOST_CUT = 3  # letters that the beginning of a banned word lacks, as `Batter` of `Batterie`


def is_endless(decoded: DecodedVariant, context: SentenceContext) -> bool:
    """Return whether the best alternative repeats itself, or has the maximum length of the search."""
    source = decoded.request.source
    options, pieces = decoded.request.options, decoded.best.pieces
    longest = options.longest(len(source), len(context.prefix))
    reached_limit = longest < options.max_length and len(context.prefix) + len(pieces) + 1 >= longest
    if reached_limit or not repetition.may_repeat(pieces):
        return reached_limit
    return repetition.is_repetitive(context.tokenizer.pieces(source), pieces)


async def translate_with_terms(
    decoded: DecodedVariant, alternatives: tuple[Alternative, ...], any_case: bool, context: SentenceContext
) -> tuple[Alternative, ...]:
    """Return alternatives that contain all glossary terms of the sentence.

    If the best alternative lacks a term, a constrained search requires all terms and bans the words that the model
    wrote in place of the missing terms. If no search succeeds, the terms are substituted into the best alternative.
    """
    wanted, links, complete = await search_with_terms(decoded, alternatives[0].text, any_case, context)
    if links is None:
        return _with_all_terms(wanted, alternatives, context.target) if wanted else alternatives
    if complete:
        return complete
    for number, match in enumerate(wanted):  # of a compound, with a hyphen
        noun = NOUN_AFTER.match(decoded.variant.stripped.text, match.end) if match.compound else None
        if noun and (word := await _word_alone(noun[1], match.translation or "", context)):
            wanted[number] = replace(match, translation=f"{match.translation}-{word}", number=NounNumber.SINGULAR)
    best = replace(alternatives[0], text=substitute_terms(wanted, alternatives[0].text, links, context.target))
    return (best, *_with_all_terms(wanted, alternatives[1:], context.target))


async def translate_directly(
    variant: SourceVariant, any_case: bool, context: SentenceContext
) -> tuple[DecodedVariant, tuple[Alternative, ...]] | None:
    """Translate a sentence by a single constrained search, which bans a word for each glossary term.

    The banned word is the one that the model writes for the term without context. Return the result of the search, and
    its alternatives with all terms. Return None if a word cannot be banned, if the model writes the required
    translation of a term without a constraint, or if the search fails.
    """
    wanted, text = _wanted_terms(variant, any_case, context), variant.stripped.text
    displaced: dict[str, list[str]] = {}
    if any(is_beside_noun(match, text, context.target) for match in wanted):
        return None  # the links of a draft decide whether they form a compound
    for match in wanted[: MAX_TERMS + 1]:
        translation = match.translation or ""
        word = await _word_alone(text[match.begin : match.end], translation, context)
        if not word:
            return None
        displaced.setdefault(translation, []).append(word)
    required = required_terms(wanted, displaced, None, context.target)
    if not required or len(displaced) > MAX_TERMS:
        return None
    source = context.request(text, context.options)
    request = _constrained_request(variant, len(source.source), required, displaced, context)
    (result,) = await DecodeCall([request])
    decoded = DecodedVariant.of(variant, source, result, context)
    if decoded is None:
        return None
    complete = _with_all_terms(wanted, await restore(decoded, context), context.target)
    least = _LEAST_OF_SOURCE * repetition.text_width(text)
    is_damaged = not complete or _is_damaged(complete[0].text, text, least, wanted, displaced, context)
    return None if is_damaged else (decoded, complete)


async def _word_alone(term: str, translation: str, context: SentenceContext) -> str:
    """Translate a term without context. Return the target word with the most attention on the term.

    Only words that can be banned are considered. Return "" if there are none, or if the model writes `translation`.
    """
    options = SearchOptions(beam_size=1, max_length=context.options.max_length)
    key = (context.source, context.target, context.tag, context.prefix, context.banned, options.max_length)
    known = context.words_alone
    if (word := known.get((*key, term, translation))) is not None:
        return word
    decoded, _ = await decode_variants([context.variant(term, (), ())], context, options)
    word = ""
    if decoded:
        links = await _unit_links(decoded[0], context)
        weights, language = links.weights_from((0, len(term))), context.target
        words = [links.target[begin:end] for begin, end in links.right]
        for first in words[:1] if language in CAPITALIZED_NOUNS else ():
            small = first[0].lower() + first[1:]  # as within a sentence, if the vocabulary contains it
            words[0] = small if context.compiler.is_piece(small) else first
        units = [
            unit for unit, word in enumerate(words) if word.isalpha() and can_ban(word, translation, False, language)
        ]
        if units and not find_translation(translation, links.target, language):
            word = words[max(units, key=lambda unit: weights[unit])]
    if len(known) >= MAX_WORDS_ALONE:
        known.clear()
    known[(*key, term, translation)] = word
    return word


def greedy(options: SearchOptions) -> SearchOptions:
    """Return `options` changed to a greedy search: one beam, without sampling."""
    return replace(options, beam_size=1, n_best=1, sample=False, temperature=1.0)


def _wanted_terms(variant: SourceVariant, any_case: bool, context: SentenceContext) -> list[TermMatch]:
    """Return the glossary terms of `variant` that its translation must contain."""
    source, spans = variant.stripped.text, variant.spans
    protected = {span.text for span in spans}
    located = protect.find_translated_spans(source, spans)
    taken = [(span.begin, span.end) for span in located if span.text in protected]
    for stand_in in variant.stand_ins:
        begin = source.find(stand_in.word)
        taken.append((begin, begin + len(stand_in.word)))
    matches = context.terms.find(source, context.source, taken, any_case)
    return [match for match in matches if match.translation is not None]


async def search_with_terms(
    decoded: DecodedVariant, text: str, any_case: bool, context: SentenceContext
) -> tuple[list[TermMatch], UnitLinks | None, tuple[Alternative, ...]]:
    """Return the terms of a sentence, its links to `text`, and the alternatives of a constrained search for all terms.

    `text` is the best alternative of `decoded` after its protected spans were restored. If it has all terms, there are
    no links, and without a successful search, no alternatives. A search fails if it translates a term twice that could
    be substituted, or writes a term without the rest of its compound.
    """
    wanted, language = _wanted_terms(decoded.variant, any_case, context), context.target
    if not missing_terms(wanted, text, language):
        return wanted, None, ()
    links = await _unit_links(decoded, context)
    wanted = mark_compounds(wanted, links, language)
    missing = missing_terms(wanted, text, language)
    if not missing:
        return wanted, None, ()
    banned = displaced_words(missing, links, language)
    required = required_terms(wanted, banned, links, language)
    if not required:
        return wanted, links, ()
    request = _constrained_request(decoded.variant, len(decoded.best.pieces), required, banned, context)
    (result,) = await DecodeCall([request])
    again = DecodedVariant.of(decoded.variant, decoded.request, result, context)
    if again is None or is_endless(again, context):
        return wanted, links, ()
    if len(again.best.text.split()) > len(decoded.best.text.split()):
        wrong = is_translated_twice(missing, await _unit_links(again, context), language)
        wrong = wrong and all(match.translation in banned for match in missing)
    else:
        joined = [match.translation or "" for match in wanted if match.compound]
        places = (
            [find_translation(term, again.best.text, language, part) for part in (False, True)] for term in joined
        )
        wrong = any(apart == anywhere for apart, anywhere in places)
    complete = () if wrong else _with_all_terms(wanted, await restore(again, context), language)
    source, least = decoded.variant.stripped.text, _LEAST_OF_FREE * repetition.text_width(text)
    is_damaged = not complete or _is_damaged(complete[0].text, source, least, wanted, banned, context)
    return wanted, links, () if is_damaged else complete


def _is_damaged(
    text: str,
    source: str,
    least: float,
    wanted: Sequence[TermMatch],
    displaced: Mapping[str, Sequence[str]],
    context: SentenceContext,
) -> bool:
    """Return whether a search with terms lost a part of its sentence, wrote a banned word, or copied a term.

    A part is the end, a negation, a unit, a day or a date. `least` is the least width of a complete text.
    """
    languages, words = (context.source, context.target), re.findall(r"\w+", text.casefold())
    terms = ((source[one.begin : one.end].casefold(), (one.translation or "").casefold()) for one in wanted)
    copies = (term for term, new in terms if term.isalpha() and term not in new)
    pairs = (sorted((word, ban.casefold()), key=len) for ban in chain(copies, *displaced.values()) for word in words)
    return (
        (text[-1:].isalnum() and not source[-1:].isalnum())  # ended at a term that the model does not know
        or repetition.text_width(text) < least
        or len(_SENTENCE_END.findall(text)) > len(_SENTENCE_END.findall(source))
        or schedules.lost_days(source, text, languages)
        or negation.is_lost(source, text, languages)
        or bool(symbols.lost_symbols(source, text))
        or any(len(long) - len(short) <= _MOST_CUT and long.startswith(short) for short, long in pairs)
    )


def required_terms(
    matches: Sequence[TermMatch], displaced: Mapping[str, Sequence[str]], links: UnitLinks | None, language: str
) -> list[RequiredTerm]:
    """Return the terms that a search must write, up to MAX_TERMS terms with MAX_TERM_CHARACTERS characters in total.

    `displaced` maps a required translation to the words that the model wrote in its place. A term may be repeated
    only if `links.target` contains it. If `links` is None, none may be repeated.
    """
    counts = Counter(match.translation or "" for match in matches)
    required = []
    characters_left = MAX_TERM_CHARACTERS
    for translation in list(counts)[:MAX_TERMS]:
        if len(translation) > characters_left:
            continue
        characters_left -= len(translation)
        of_translation = [match for match in matches if match.translation == translation]
        numbers = {match.number for match in of_translation}
        required.append(
            RequiredTerm(
                translation,
                count=sum(counts[other] for other in counts if find_words(translation, other)),
                repeatable=links is not None and bool(find_translation(translation, links.target, language)),
                displaced=tuple(displaced.get(translation, ())),
                number=numbers.pop() if len(numbers) == 1 else NounNumber.ANY,
                compound=any(match.compound for match in of_translation),
            )
        )
    return required


def _constrained_request(
    variant: SourceVariant,
    expected_length: int,
    terms: Sequence[RequiredTerm],
    banned: Mapping[str, Sequence[str]],
    context: SentenceContext,
) -> Request:
    """Return a request whose search requires `terms` and bans the words in `banned`.

    `expected_length` is the approximate number of tokens of the translation without the terms.
    """
    compiler, options = context.compiler, context.options
    minimum = MIN_BEAMS if sum(term.count for term in terms) <= 2 else MANY_TERMS_BEAMS
    beams = max(minimum, 1 if options.sample else options.beam_size)
    length = sum(term.count * compiler.length(term.translation) for term in terms)
    options = replace(
        greedy(options),
        beam_size=beams,
        n_best=min(options.n_best, beams),
        max_length_offset=options.max_length_offset + length,
        seed=0,
    )
    words = dict.fromkeys([*chain.from_iterable(banned.values()), *context.banned])
    constraints = compiler.compile(terms, words, context.target, expected_length + length, THRESHOLD)
    return replace(context.request(variant.stripped.text, options), constraints=constraints)


def _with_all_terms(
    wanted: Sequence[TermMatch], alternatives: Iterable[Alternative], language: str
) -> tuple[Alternative, ...]:
    """Return the alternatives that contain all terms in `wanted`, in their usual cases and letter case."""
    terms = {match.translation for match in wanted if match.translation}
    return tuple(
        replace(alternative, text=_in_usual_forms(alternative.text, terms, language))
        for alternative in alternatives
        if not missing_terms(wanted, alternative.text, language)
    )


def _in_usual_forms(text: str, terms: Iterable[str], language: str) -> str:
    """Return a text with terms in their usual cases, and within a sentence with their small first letters."""
    for term in terms:
        text = re.sub(rf"(?<=\w[ \u00a0]){re.escape(term[0].upper() + term[1:])}\b", term, text)
    return with_usual_cases(terms, text, language)


async def _unit_links(decoded: DecodedVariant, context: SentenceContext) -> UnitLinks:
    """Return the links between the words of the source and the words of the best alternative."""
    attention = await piece_attention(decoded, 0, context)
    return UnitLinks(decoded.variant.stripped.text, decoded.best.text, attention)
