"""Second searches for a sentence whose translation has lost or damaged something."""

from collections.abc import Callable, Set
from dataclasses import replace

from mt.languages import likely_script
from mt.pipeline.terms import MIN_BEAMS, is_endless
from mt.pipeline.variants import DecodedVariant, Reading, SentenceContext, SourceVariant, decode_variants
from mt.text import names, negation, places, protect, schedules, symbols, titles
from mt.text.alignment import Range, has_text
from mt.text.protect import ProtectedSpan, SpanKind
from mt.text.span_patterns import SIGNS_WITH_WORDS
from mt.text.typography import space_copied_slashes

NO_REPEAT_NGRAM = 3  # in the second search, which follows a repetitive translation
_LOSS_HANDICAP, _MARK_HANDICAP = 0.6, 0.3  # of scores, in favour of a translation without losses, or with all marks
_OTHER_READINGS = (Reading.NAMES, Reading.NUMBERS, Reading.REMOVED)
_REMOVED_IF_LOST = frozenset({SpanKind.OPAQUE, SpanKind.TAG, SpanKind.KEPT})


async def decode_with_spaced_slashes(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again if the model copied a word beside a slash. Return the result if it copied none."""
    text = decoded.variant.text
    if "/" not in text:
        return decoded
    again = await _decode_text(space_copied_slashes(text, decoded.best.text), decoded, context)
    is_better = again and space_copied_slashes(text, again.best.text.replace(" / ", "/")) == text
    return again if again and is_better else decoded


async def _decode_text(text: str, decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant | None:
    """Decode a text without kept ranges. Return None if it is that of `decoded`, or if the model loses a span."""
    variants = [context.variant(text, (), ())] if text != decoded.variant.text else []
    again, _ = await decode_variants(variants, context, context.options)
    return again[0] if again and not lost_copies(again[0]) else None


async def decode_otherwise(variant: SourceVariant, context: SentenceContext, lost: Set[str]) -> DecodedVariant | None:
    """Decode a sentence whose spans the model damages: with other stand-ins for `lost`, for all spans, without spans.

    `lost` has the texts of the spans that the model lost. Return the first result with undamaged stand-ins, or else
    that without the spans. Most second readings succeed.
    """
    tried = {(variant.stripped, variant.stand_ins)}
    for reading, texts in ((Reading.NAMES, lost), *((reading, None) for reading in _OTHER_READINGS)):
        other = context.variant(variant.text, variant.kept, variant.terms, reading, texts)
        if (other.stripped, other.stand_ins) not in tried:
            tried.add((other.stripped, other.stand_ins))
            decoded, _ = await decode_variants([other], context, context.options)
            if decoded and (reading is Reading.REMOVED or not lost_copies(decoded[0])):
                return decoded[0]
    return None


def lost_copies(decoded: DecodedVariant, text: str = "") -> Set[str]:
    """Return the texts of the amounts, and of the spans in _REMOVED_IF_LOST, that `text` (or the best) lacks.

    A text with a mark of a link that its source does not have lacks all of them.
    """
    if not (copied := decoded.variant.copied):
        return set()
    text = text or decoded.best.text
    amounts = [one for one in copied if not SIGNS_WITH_WORDS.isdisjoint(one.text)]
    spans = [one for one in copied if one.kind in _REMOVED_IF_LOST or one in amounts]
    lost = protect.lost_spans(spans, text)
    lost += amounts if any(one in amounts for one in lost) else []  # not $12 und 30 Dollar
    is_link = "](" in text and "](" not in decoded.variant.text  # as the model has read it around ./install.sh
    return {span.text for span in lost or (spans if is_link or not protect.are_in_order(spans, text) else ())}


async def decode_with_marks(decoded: DecodedVariant, context: SentenceContext) -> DecodedVariant:
    """Decode again, with more hypotheses, if the best translation lost marks of emphasis, but no other spans."""
    if context.options.sample or set("".join(lost_copies(decoded))) != {"*"}:
        return decoded
    return await _decode_more(decoded, lambda text: not lost_copies(decoded, text), context, _MARK_HANDICAP)


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
    lost += damaged + symbols.lost_symbols(variant.text, text)
    lost += context.phrases.lost_brackets(variant.text, text, *languages) if context.phrases else ()
    spans = [span for span in variant.spans if span.kind is not SpanKind.NUMBER] if lost else []
    return [
        (begin, end)
        for begin, end in sorted(set(lost))
        # Müller GmbH stays, in which GmbH is a span, but not the `sHere` of `%sHere`
        if all(end <= span.begin or span.end <= begin or _contains((begin, end), span) for span in spans)
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
    """Decode again, with more hypotheses, if the best translation lost or doubled a number, or lost or has a negation.

    Return the alternatives that have all of them, if the best of them is not much worse. Otherwise, lost numbers
    replace other words (mt.text.restoration).
    """
    source, languages = decoded.variant.stripped.text, (context.source, context.target)
    numbers = [span for span in decoded.variant.copied if span.kind is SpanKind.NUMBER]

    def is_complete(text: str) -> bool:
        inverted = negation.is_lost(source, text, languages) or negation.is_lost(text, source, languages[::-1])
        return not (inverted or protect.lost_spans(numbers, text) or protect.has_doubled_numbers(numbers, text))

    return decoded if is_complete(decoded.best.text) else await _decode_more(decoded, is_complete, context)


async def _decode_more(
    decoded: DecodedVariant, is_right: Callable[[str], bool], context: SentenceContext, handicap: float = _LOSS_HANDICAP
) -> DecodedVariant:
    """Return more hypotheses, those that are right, or `decoded` if the best of them is much worse."""
    beams, kept = max(MIN_BEAMS, context.options.beam_size), context.options.n_best
    options = replace(context.options, beam_size=beams, n_best=beams)
    again, _ = await decode_variants([decoded.variant], context, options)
    right = again and again[0].only(lambda one: is_right(one.text))
    if not right or right.best.score < decoded.best.score - handicap:
        return decoded
    return replace(right, alternatives=right.alternatives[:kept], hypotheses=right.hypotheses[:kept])


def _contains(place: Range, span: ProtectedSpan) -> bool:
    return place[0] <= span.begin and span.end <= place[1] and place[1] - place[0] > len(span.text)
