"""Second searches for a sentence whose translation has lost or damaged something."""

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

from mt.languages import likely_script, primary_language
from mt.pipeline.analysis import has_text
from mt.pipeline.results import with_text
from mt.pipeline.terms import MIN_BEAMS, is_endless
from mt.pipeline.variants import DecodedVariant, Reading, SentenceContext, SourceVariant, decode_variants
from mt.text import casing, names, negation, places, protect, schedules, symbols, titles
from mt.text.alignment import Range
from mt.text.protect import SpanKind
from mt.text.span_patterns import SIGNS_WITH_WORDS
from mt.text.typography import space_copied_slashes

NO_REPEAT_NGRAM = 3  # in the second search, which follows a repetitive translation
_NAME_HANDICAP = 0.5  # difference of scores from which the words of a headline are names, which need their capitals
_LOSS_HANDICAP = 0.6  # difference of scores up to which a translation without losses is better than one with them
_SHORT_HEADLINE = 3  # most words of a headline that may be decoded in lower case: longer ones often have names
_SHORT_TEXT = 40  # characters
_LEAST_COPIED, _LOST_SHARE = 3, 0.5  # letters of a word that is copied, and share of the words of a headline
_SENTENCE_HANDICAP, _ARTICLE_BONUS = 0.2, 0.1  # differences of scores up to which sentences, or articles, are better
_LEAST_SCORE = -0.7  # of a headline that is read as a sentence: worse ones were invented
_DASHES = re.compile(" (?:--?|[–—]) ")
_PHRASE = re.compile(
    r"\b(?:an?|all|and|five|for|four|her|his|how|i|my|no|of|or|our|six|the|their|this|three|two|what|when|who|why|your)\b"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-]\w+)*")
_GENITIVE = re.compile(r"\b((?:(?:Mrs?|Ms|Dr|Mme|M)\.? )?[A-Z]\w+)['’]s ((?:[a-z]+ )?[a-z]+)\b")
_OTHER_READINGS = (Reading.NAMES, Reading.NUMBERS, Reading.REMOVED)
_NAME_WITHIN, _ENDING = re.compile(r"\b[a-zà-ÿ]+,? ([A-Z][a-zà-ÿ]{3,})\b(?! [A-Z])"), 2
_CAPITAL_WITHIN = re.compile(" [A-Z][a-zà-ÿ]")  # a fast test
_REMOVED_IF_LOST = frozenset({SpanKind.OPAQUE, SpanKind.TAG, SpanKind.KEPT})


async def decode_with_spaced_slashes(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again if the model copied a word beside a slash. Return the result if it copied none."""
    text = decoded.variant.text
    again = await _decode_text(space_copied_slashes(text, decoded.best.text), decoded, context)
    is_better = again and space_copied_slashes(text, again.best.text.replace(" / ", "/")) == text
    return again if again and is_better else decoded


async def _decode_text(text: str, decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant | None:
    """Decode a text without kept ranges. Return None if it is that of `decoded`, or if the model loses a span."""
    variants = [context.variant(text, (), ())] if text != decoded.variant.text else []
    again, _ = await decode_variants(variants, context, context.options)
    return again[0] if again and not lost_copies(again[0]) else None


async def decode_with_commas(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again, with commas for the two dashes of an insertion, if the translation lost one of them.

    Return the result, with dashes again, if it has two commas.
    """
    variant, text = decoded.variant, decoded.best.text
    has_pair = "," not in variant.text and len(_DASHES.findall(variant.text)) == 2
    left = len(_DASHES.findall(text)) if has_pair else 2
    if variant.spans or left >= 2 or (not left and text.count(", ") >= 2):
        return decoded
    again = await _decode_text(_DASHES.sub(", ", variant.text), decoded, context)
    again = again and again.only(lambda one: one.text.count(", ") == 2)
    if not again:
        return decoded
    texts = ((one, one.text.replace(", ", " – ")) for one in again.alternatives)
    return replace(again, alternatives=tuple(with_text(one, text) for one, text in texts))


async def decode_in_lower_case(
    decoded: DecodedVariant, candidates: Sequence[DecodedVariant], context: SentenceContext
) -> DecodedVariant:
    """Decode a short headline in lower case if its translation contains capitalised words of the source.

    The model may know these words in lower case only. Return the result if it contains none of them, has no fewer words
    than the source, and its score is at most _NAME_HANDICAP worse; else these may be names. `candidates` count, too.
    """
    variant = decoded.variant
    copied = casing.copied_words(variant.text, decoded.best.text, variant.kept)
    text = casing.lower_all(variant.text, context.source, variant.kept)
    if not copied or len(text.split()) > _SHORT_HEADLINE or len(text) != len(variant.text):
        return decoded
    again = [one for one in candidates if one.variant.text == text]
    if not again:
        again, _ = await decode_variants([context.variant(text, variant.kept, variant.terms)], context, context.options)
    if not again or again[0].best.score < decoded.best.score - _NAME_HANDICAP:
        return decoded
    words = re.findall(r"\w+", again[0].best.text.lower())
    if len(words) < len(text.split()) or not copied.isdisjoint(words):
        return decoded
    return again[0]


async def decode_as_sentence(decoded: DecodedVariant, source: str, context: SentenceContext) -> DecodedVariant:
    """Decode an English headline as a sentence if its translation has copied or lost words.

    `Stock Market Falls` is read as `The stock market falls.`, and a headline without a verb, if all its words were
    copied, without an article. Return the best result that has copied and lost no word, if there is one.
    """
    best, has_verb = decoded, casing.has_verb(source)
    people = {word for pair in pairwise(_WORD.findall(source)) if names.is_given_name(pair[0]) for word in pair}
    read = casing.headline_as_sentence(
        source, context.source, lambda word: 0 if word.title() in people else context.known_pieces(word)
    )
    if not read or best.variant.kept or best.variant.terms or not _is_partial(source, read, best.best.text, has_verb):
        return decoded
    texts = [casing.raise_first(read, "en") + "."]
    if has_verb and not read[0].isupper() and not _PHRASE.search(read):
        texts.append(f"The {read}.")
    again, _ = await decode_variants([context.variant(text, (), ()) for text in texts], context, context.options)
    right = [one for one in again if not _is_partial(source, read, one.best.text, True)]
    new = max(right, key=lambda one: one.best.score + _ARTICLE_BONUS * (one.variant.text == texts[-1]), default=best)
    return new if new.best.score > max(best.best.score - _SENTENCE_HANDICAP, _LEAST_SCORE) else best


def _is_partial(headline: str, read: str, translation: str, has_verb: bool) -> bool:
    """Return whether a translation has copied words of a headline that are no names, or has too few words.

    `read` is the headline with small letters in words that are no names. Noun phrases may have fewer or equal words in
    other languages: without a verb, all words must be copied.
    """
    count, written = _count_words(headline), {word.casefold() for word in _WORD.findall(translation)}
    common = {word for word in _WORD.findall(read) if word.islower() and len(word) > _LEAST_COPIED}
    if not has_verb or count < _SHORT_HEADLINE:
        return bool(common) and common <= written
    return not common.isdisjoint(written) or _count_words(translation) <= _LOST_SHARE * count


async def decode_with_all_words(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode a short English text again whose translation has lost the verb, or has kept `Smith's cat`.

    `Buy milk` became `Milch`. The first word of a text of two or three words is read in lower case, and the genitive as
    `the cat of Smith`. Return the result if it has more words, or no genitive.
    """
    text, written, languages = decoded.variant.text, decoded.best.text, (context.source, context.target)
    if primary_language(languages[0]) != "en":
        return decoded
    is_genitive = languages[1].startswith("fr") and _GENITIVE.search(written)
    if is_genitive:
        other = _GENITIVE.sub(r"the \2 of \1", text)
    elif (
        len(text) <= _SHORT_TEXT
        and text[1:].islower()
        and _count_words(written) < _count_words(text) <= _SHORT_HEADLINE
    ):
        other = text[0].lower() + text[1:]
    else:
        return decoded
    again = await _decode_text(other, decoded, context)
    new = again.best.text if again else written
    is_better = not _GENITIVE.search(new) if is_genitive else _count_words(new) > _count_words(written)
    return again if again and is_better else decoded


def _count_words(text: str) -> int:
    return len(_WORD.findall(text))


async def decode_otherwise(variant: SourceVariant, context: SentenceContext, lost: Set[str]) -> DecodedVariant | None:
    """Decode a sentence whose spans the model damages: with other stand-ins for `lost`, for all spans, without spans.

    `lost` has the texts of the spans that the model lost. Return the first result with undamaged stand-ins, or else
    that without the spans. Most second readings succeed.
    """
    tried = {variant.stripped.text}
    for reading, texts in ((Reading.NAMES, lost), *((reading, None) for reading in _OTHER_READINGS)):
        other = context.variant(variant.text, variant.kept, variant.terms, reading, texts)
        if other.stripped.text not in tried:
            tried.add(other.stripped.text)
            decoded, _ = await decode_variants([other], context, context.options)
            if decoded and (reading is Reading.REMOVED or not lost_copies(decoded[0])):
                return decoded[0]
    return None


def lost_copies(decoded: DecodedVariant) -> Set[str]:
    """Return the texts of the amounts, and of the spans in _REMOVED_IF_LOST, that the best translation lacks."""
    copied = decoded.variant.copied
    amounts = [one for one in copied if not SIGNS_WITH_WORDS.isdisjoint(one.text)]
    spans = [one for one in copied if one.kind in _REMOVED_IF_LOST or one in amounts]
    lost = protect.lost_spans(spans, decoded.best.text)
    lost += amounts if any(one in amounts for one in lost) else []  # not $12 und 30 Dollar
    return {span.text for span in lost or (() if protect.are_in_order(spans, decoded.best.text) else spans)}


def lost_symbols(decoded: DecodedVariant, context: SentenceContext) -> list[Range]:
    """Return the ranges of the units, names, days and unknown letters that the best translation lacks.

    Those in other spans are left out.
    """
    variant, text = decoded.variant, decoded.best.text
    damaged = symbols.damaged_words(variant.text, text, context.tokenizer.characters, context.source)
    languages = context.source, context.target
    lost = schedules.lost_ranges(variant.text, text, languages, variant.kept)
    lost += schedules.lost_dates(variant.text, text, languages)
    lost += places.lost_places(variant.text, text, languages)
    if likely_script(context.target) in ("Latn", ""):
        lost += names.lost_names(variant.text, text) + titles.lost_titled_names(variant.text, text, context.source)
        lost += _lost_unknown_names(variant.text, text, context)
    lost += damaged + symbols.lost_symbols(variant.text, text)
    if context.phrases and text.count("(") < variant.text.count("("):
        lost += [match.span(1) for match, _ in context.phrases.bracketed(variant.text, *languages)]
    spans = [span for span in variant.spans if span.kind is not SpanKind.NUMBER] if lost else []
    return [
        (begin, end)
        for begin, end in sorted(set(lost))
        # Müller GmbH stays, in which GmbH is a span
        if not any(max(begin, span.begin) < min(end, span.end) and end - begin <= len(span.text) for span in spans)
    ]


def _lost_unknown_names(source: str, translation: str, context: SentenceContext) -> list[Range]:
    """Return the ranges of the words with a capital, such as `an Ibuprofen`, that are unknown to the model, and lost.

    German is left out, because its nouns have capitals.
    """
    if context.bigrams is None or not _CAPITAL_WITHIN.search(source) or primary_language(context.source) == "de":
        return []
    written = translation.casefold()
    return [
        name.span(1)
        for name in _NAME_WITHIN.finditer(source)
        if name[1][:-_ENDING].casefold() not in written and not context.known_pieces(name[1])
    ]


async def decode_without_blanks(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant | None:
    """Decode again if an alternative is blank, and drop the blank alternatives.

    A text is blank if it has no letter and no digit. Return the result of the second search or, if all its alternatives
    are blank, `decoded`. Return None if all of both are blank, but `decoded` if the source itself is blank.
    """
    if not has_text(decoded.variant.stripped.text) or all(has_text(one.text) for one in decoded.alternatives):
        return decoded
    options = replace(context.options, min_length=max(context.options.min_length, 2))
    again, _ = await decode_variants([decoded.variant], context, options)
    written = (candidate.only(lambda one: has_text(one.text)) for candidate in [*again, decoded])
    return next(filter(None, written), None)


async def decode_without_repetition(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again, with repeated n-grams forbidden, if a translation is endless (`is_endless`).

    Return the result that is not endless, else the shorter one. If `decoded` forbids repeated n-grams, return it.
    """
    options = decoded.request.options
    if options.no_repeat_ngram or not is_endless(decoded, context):
        return decoded
    options = replace(options, no_repeat_ngram=NO_REPEAT_NGRAM)
    again, _ = await decode_variants([decoded.variant], context, options)
    return min([*again, decoded], key=lambda one: (is_endless(one, context), len(one.best.text)))


async def decode_without_losses(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again, with more hypotheses, if the best translation lost a negation or a number, or has a new negation.

    Return the alternatives that have all of them, if the best of them is not much worse. Otherwise, lost numbers
    replace other words (mt.text.restoration).
    """
    source, languages = decoded.variant.stripped.text, (context.source, context.target)
    numbers = [span for span in decoded.variant.copied if span.kind is SpanKind.NUMBER]

    def has_lost(text: str) -> bool:
        inverted = negation.is_lost(source, text, languages) or negation.is_lost(text, source, languages[::-1])
        return inverted or bool(protect.lost_spans(numbers, text))

    if not has_lost(decoded.best.text):
        return decoded
    beams = max(MIN_BEAMS, context.options.beam_size)
    options = replace(context.options, beam_size=beams, n_best=beams)
    again, _ = await decode_variants([decoded.variant], context, options)
    right = again and again[0].only(lambda one: not has_lost(one.text))
    if not right or right.best.score < decoded.best.score - _LOSS_HANDICAP:
        return decoded
    kept = context.options.n_best
    return replace(right, alternatives=right.alternatives[:kept], hypotheses=right.hypotheses[:kept])
