"""Translation of one sentence by a coroutine that awaits searches and repairs their results."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from mt.errors import RequestError
from mt.pipeline.analysis import SentenceAnalysis, analyse, keep_source
from mt.pipeline.division import divide_at_mark, divide_at_phrase
from mt.pipeline.driver import DecodeCall, gather
from mt.pipeline.repairs import (
    decode_otherwise,
    decode_with_marks,
    decode_with_spaced_slashes,
    decode_without_blanks,
    decode_without_losses,
    decode_without_repetition,
    lost_copies,
    lost_symbols,
)
from mt.pipeline.results import Alternative, with_text
from mt.pipeline.terms import greedy, is_endless, search_with_terms, translate_directly, translate_with_terms
from mt.pipeline.unknown_words import replace_guesses
from mt.pipeline.variants import (
    FIRST_READINGS,
    DecodedVariant,
    SentenceContext,
    SourceVariant,
    decode_variants,
    join_alternatives,
    piece_attention,
    restore,
)
from mt.text import casing, members, names, negation, places, protect, repetition, segment, titles
from mt.text.alignment import Range, has_text, ranges_between, split_ranges, with_edits
from mt.text.clauses import clause_ranges
from mt.text.measures import read_measure
from mt.text.phrases import Phrases
from mt.text.quotations import (
    has_double_quotes,
    has_quotes,
    lost_quotations,
    quote_words,
    quoted_words,
    write_quotations,
)
from mt.text.segment import TextPart
from mt.text.terms import without_copies

_MOST_WORDS = 3  # in lower case within quotation marks that are no names of a user interface
_STEM = 3  # letters that two forms of a word share
_MOST_REPAIRS = 2  # second searches for lost symbols: the first may lose another one
PART_TOKENS = 24  # at most, in a part of a sentence with a doubtful translation
_LABEL_HANDICAP = 0.06  # difference of scores by which a label with a small first letter must be better
LEAST_CLAUSES, CLAUSE_TOKENS = 5, 12  # of the clauses or items of a list: the least number, the most on average
LEAST_COMPLETE, LEAST_COMPLETE_LIST = 0.55, 0.7  # completeness of a translation without omitted words, and of a list's
LEAST_GAIN = 0.05  # of completeness by which a translation in parts must be better
LEAST_TOKENS = 8  # sources of fewer are not checked for omitted words: models rarely omit any; the check takes time
_STRUCK = re.compile(r"~~(?=\S)([^~\n]{1,100})(?<=\S)~~")


async def translate_sentence(
    sentence: str, context: SentenceContext, kept: Sequence[Range] = ()
) -> tuple[Alternative, ...]:
    """Return the n-best list of a sentence. Alternatives contain protected spans, `kept` ranges and glossary terms.

    A sentence that is a glossary term becomes its translation, without a search; a code stays. If the model writes no
    letter, or knows none of the sentence, the result is one alternative without pieces: the source with its terms
    translated.

    Most sentences are decoded once. A headline is decoded in title case and in lower case, and the better result is
    used. A sentence is decoded again if its translation lacks spans, symbols or terms, or is repetitive. It is divided
    if it is longer than those of the training text. It is translated in parts, too, if its translation may omit words
    (listed in `Alternative.omitted`) or clauses, or has words twice, and the more complete result is used.

    Raises:
        RequestError: The model fails on the sentence.
    """
    analysis = analyse(sentence, context, kept)
    if analysis.without_search:
        return (analysis.without_search,)
    kept, terms, languages = analysis.kept, analysis.terms, (context.source, context.target)
    if not (kept or terms) and (measure := read_measure(sentence, *languages)):
        contents = await translate_sentence(measure.content, context)
        return tuple(with_text(one, measure.write(one.text)) for one in contents)
    if divided := divide_at_mark(sentence, context, kept) or divide_at_phrase(sentence, context, kept):
        parts = await _translate_parts(divided, context, kept)
        if not negation.is_lost(sentence, parts[0].text, languages):
            return parts
    if not (context.options.sample or context.covers(sentence, context.covered_length)):
        fits = partial(context.covers, limit=context.covered_length // 2)
        if parts := await _translate_in_parts(sentence, fits, context, kept):
            return parts
    lowered = casing.lower_capitals(sentence, context.source, kept, context.known_pieces)
    variants, is_label = _cased_variants(sentence, lowered, kept, terms, context)
    any_case = bool(lowered) or (len(variants) > 1 and not is_label)
    alternatives = await _translate_terms(variants, any_case, context) if terms else None
    alternatives = alternatives or await _translate_variants(variants, any_case, context)
    if alternatives is None:
        return (keep_source(sentence, analysis.matches),)
    alternatives, is_twice = _finish(sentence, alternatives, variants[0].text, is_label, analysis, context)
    if lowered:
        alternatives = tuple(
            with_text(one, casing.raise_capitals(one.text, sentence, context.target, kept)) for one in alternatives
        )
    for struck in _STRUCK.findall(sentence) if "~~" in sentence and not kept else ():  # the model copies it
        words = (await translate_sentence(struck, context))[0].text
        words = casing.as_clause(words, struck, context.target, False, context.is_common)
        alternatives = tuple(with_text(one, one.text.replace(f"~~{struck}~~", f"~~{words}~~")) for one in alternatives)
    if context.options.sample:
        return alternatives
    if has_quotes(sentence):
        alternatives = await _mend_quotations(sentence, alternatives, context, kept)
    if not kept and (remarks := negation.lost_remarks(sentence, alternatives[0].text, languages)):
        alternatives = await _translate_remarks(sentence, remarks, context) or alternatives
    alternatives = await _complete(sentence, alternatives, is_twice, context, kept)
    return _mend_members(sentence, alternatives, context, kept)


def _finish(
    sentence: str,
    alternatives: tuple[Alternative, ...],
    read: str,
    is_label: bool,
    analysis: SentenceAnalysis,
    context: SentenceContext,
) -> tuple[tuple[Alternative, ...], bool]:
    """Write salutations, names, titles and places, and remove words that stand twice. `read` is the decoded variant.

    Return the alternatives, and whether the best had a word twice.
    """
    languages = context.source, context.target
    fixed = [(sentence[one.begin : one.end], one.translation or "") for one in analysis.matches if one.translation]
    fixed += ((sentence[begin:end], sentence[begin:end]) for begin, end in analysis.kept)
    written = "\n".join([sentence, *chain.from_iterable(fixed)])
    twice = [repetition.doubled_words(written, one.text) for one in alternatives]
    first = sentence.partition(" ")[0]
    greeting = context.known_translation(first) if titles.is_greeting(first) else None
    label, _, rest = sentence.partition(", ")
    is_whole = titles.begins_with_address(rest, context.source) and titles.is_salutation(label, rest, context.source)
    salutation = context.known_translation(label) if is_whole else None

    def finished(text: str, repeated: Sequence[Range]) -> str:
        text = with_edits(text, [(*at, "") for at in repeated]) if repeated else text
        text = titles.write_salutation(text, salutation, len(label) / len(sentence)) if salutation else text
        text = f"{greeting}{text[len(first) :]}" if greeting and text.startswith(f"{first} ") else text
        text = names.write_names(sentence, text)
        text = titles.write_titles(read, text, languages)
        text = places.write_places(read, text, languages, fixed)
        text = without_copies(fixed, text)
        return casing.begin_with_capital(text, sentence, context.target) if is_label else text

    pairs = zip(alternatives, twice, strict=True)
    return tuple(with_text(one, finished(one.text, repeated)) for one, repeated in pairs), bool(twice[0])


def _cased_variants(
    sentence: str, lowered: str | None, kept: Sequence[Range], terms: Sequence[Range], context: SentenceContext
) -> tuple[list[SourceVariant], bool]:
    """Return the variants of a sentence, or of one in capitals, and whether the last has a small letter of a label."""
    texts = [sentence, casing.lower_title_case(sentence, context.source, kept) or ""]
    if lowered:  # london or London: the words may be names
        texts = [lowered, lowered[:1] + casing.lower_all(lowered, context.source, kept)[1:]]
    label = "" if texts[1] or kept or terms else casing.lower_first(sentence, context.source)
    variants = [
        context.variant(text, casing.ranges_in(text, sentence, kept), casing.ranges_in(text, sentence, terms))
        for text in dict.fromkeys(filter(None, [*texts, label]))
    ]
    return variants, bool(label)


async def _complete(
    sentence: str,
    alternatives: tuple[Alternative, ...],
    is_doubtful: bool,
    context: SentenceContext,
    kept: Sequence[Range],
) -> tuple[Alternative, ...]:
    """Return the alternatives of a sentence, or its translation in parts if the best is doubtful and less complete.

    It is doubtful, too, if it omits words, or if it is that of a list and may lack items. Members of a list that are
    phrases are translated as these.
    """
    best = alternatives[0]
    phrases = None if context.terms or context.banned or kept else context.phrases
    if items := phrases.list_parts(sentence, context.source, context.target) if phrases else []:
        text = members.fill_list(items, best.text, context.target)
        if text is None:
            return await _translate_parts([TextPart(*item) for item in items], context, kept)
        return (with_text(best, text),)
    if omitted := best.omitted:
        parts = await _translate_in_parts(sentence, lambda part: not any(one in part for one in omitted), context, kept)
        is_longer = parts and repetition.text_width(parts[0].text) > repetition.text_width(best.text)
        return parts if is_longer and len("".join(parts[0].omitted)) <= len("".join(omitted)) else alternatives
    if not (is_doubtful or _may_lack_clauses(sentence, best, context)):
        return alternatives
    limit = min(PART_TOKENS, len(context.encode(sentence)) // 2)
    parts = await _translate_in_parts(sentence, partial(context.covers, limit=limit), context, kept)
    is_better = parts and _completeness(sentence, parts[0]) > _completeness(sentence, best) + LEAST_GAIN
    return parts if is_better else alternatives


def _mend_members(
    sentence: str, alternatives: tuple[Alternative, ...], context: SentenceContext, kept: Sequence[Range]
) -> tuple[Alternative, ...]:
    """Return the alternatives. The best has the lost members of the lists of the sentence, or lists them as omitted."""
    phrases, is_free = context.phrases or Phrases(()), not (context.terms or context.banned or kept)
    best, *others = alternatives
    text, lost = phrases.mend_lists(sentence, best.text, context.source, context.target, not is_free)
    best = replace(best, omitted=tuple(dict.fromkeys((*best.omitted, *lost)))) if lost else best
    return (with_text(best, text), *others)


async def _mend_quotations(
    sentence: str, alternatives: tuple[Alternative, ...], context: SentenceContext, kept: Sequence[Range]
) -> tuple[Alternative, ...]:
    """Return the alternatives of a sentence in which the best has no lost quotations, and no copied yes or no."""
    if quoted := lost_quotations(sentence, alternatives[0].text, kept):
        alternatives = await _translate_quotations(sentence, quoted, alternatives[0], context, kept) or alternatives
    best = alternatives[0]
    quoted_as = {} if kept or not context.phrases else quoted_words(sentence, best.text)
    words = dict[str, str]()
    for new, old in quoted_as.items():
        phrase = (context.phrases or Phrases(())).translate_form(old, context.source, context.target)
        if phrase and (new == old or not new.casefold().startswith(phrase[:_STEM].casefold())):  # not neue for neu
            words[new] = phrase
    return (with_text(best, write_quotations(best.text, words)), *alternatives[1:]) if words else alternatives


async def _translate_remarks(
    sentence: str, remarks: Sequence[Range], context: SentenceContext
) -> tuple[Alternative, ...]:
    """Translate a sentence and, apart from it, the `remarks` in brackets. Return () if its negation is lost again."""
    alternative = (await translate_sentence(sentence, context, remarks))[0]
    for remark in (sentence[begin:end] for begin, end in remarks):
        words = (await translate_sentence(remark, context))[0].text
        alternative = with_text(alternative, alternative.text.replace(f"({remark})", f"({words})"))
    is_lost = negation.is_lost(sentence, alternative.text, (context.source, context.target))
    return () if is_lost else (alternative,)


async def _translate_quotations(
    sentence: str, quoted: Sequence[Range], draft: Alternative, context: SentenceContext, kept: Sequence[Range]
) -> tuple[Alternative, ...]:
    """Translate a sentence and, apart from it, the quotations that its `draft` lost. Return () if this does not help.

    The draft may have all the words without any marks. Words in lower case get their marks; documentation has no marks
    around other words, which are those of a user interface.
    """
    words = {sentence[begin:end]: "" for begin, end in quoted}
    for text in words:
        words[text] = (await translate_sentence(text, context))[0].text
    if not has_double_quotes(draft.text) and all(text.casefold() in draft.text.casefold() for text in words.values()):
        text, are_words = draft.text, all(one.islower() and len(one.split()) <= _MOST_WORDS for one in words)
        is_prose = are_words or not has_double_quotes(sentence)
        for original, translated in words.items() if is_prose else ():
            text = quote_words(sentence.replace(original, translated), text, [translated])
        if not lost_quotations(sentence, text):
            return (with_text(draft, text),)
        if not is_prose:
            return ()
    alternatives = await translate_sentence(sentence, context, [*kept, *quoted])
    alternatives = tuple(
        with_text(one, write_quotations(quote_words(sentence, one.text, words), words)) for one in alternatives
    )
    if not lost_quotations(sentence, alternatives[0].text):
        return alternatives
    if has_text("".join(sentence[begin:end] for begin, end in ranges_between(quoted, len(sentence)))):
        return ()
    return (with_text(alternatives[0], write_quotations(sentence, words)),)  # which has only quotations


async def _translate_terms(
    variants: Sequence[SourceVariant], any_case: bool, context: SentenceContext
) -> tuple[Alternative, ...] | None:
    """Translate a sentence with glossary terms by a constrained search. No other beam search precedes it.

    The constrained search bans the words that the model would write in place of the terms. These are the words that the
    model writes for each term alone, or else the words in a greedy translation of the sentence. Return alternatives
    with all terms; None if the greedy translation contains them, a translation needs a repair, or no search succeeds.
    """
    if len(variants) == 1 and (direct := await translate_directly(variants[0], any_case, context)):
        decoded, alternatives = direct
        return None if _needs_repair(decoded, alternatives[0].text, context) else alternatives
    if not (context.options.sample or context.options.beams):
        return None
    drafts, _ = await decode_variants(variants, context, greedy(context.options))
    if not drafts:
        return None
    draft = max(drafts, key=lambda draft: draft.best.score)
    text = (await restore(draft, context))[0].text
    if _needs_repair(draft, text, context):
        return None
    return (await search_with_terms(draft, text, any_case, context))[2] or None


def _needs_repair(decoded: DecodedVariant, text: str, context: SentenceContext) -> bool:
    """Return whether a translation lacks protected spans, is endless (`is_endless`), has no letter or is too short.

    `text` is the best alternative of `decoded` after its protected spans were restored.
    """
    return (
        bool(lost_copies(decoded))
        or is_endless(decoded, context)
        or not has_text(decoded.best.text)
        or repetition.is_too_short(decoded.variant.text, text)
    )


async def _translate_variants(
    variants: Sequence[SourceVariant], any_case: bool, context: SentenceContext
) -> tuple[Alternative, ...] | None:
    """Decode variants, choose the one with the best score, and repair its translations. Return its n-best list.

    Return None if no alternative has letters, or all of them damage a stand-in.

    Raises:
        RequestError: The model fails on a variant.
    """
    others = [
        context.variant(variant.text, variant.kept, variant.terms, reading)
        for reading in FIRST_READINGS
        for variant in variants
        if variant.stand_ins
    ]
    read = {variant.stripped.text: variant for variant in (*others, *variants)}
    candidates, problems = await decode_variants([*read.values()], context, context.options)
    if problems:
        raise RequestError(problems[0])
    key = None if any_case else casing.BEFORE_KEY.match(variants[0].text)

    def rank(one: DecodedVariant) -> float:
        is_label = not any_case and one.variant.text != variants[0].text
        is_copy = key is not None and one.best.text.startswith(f"{key[1]} ")  # of the verb
        return one.best.score - FIRST_READINGS[one.variant.reading] - _LABEL_HANDICAP * is_label - is_copy

    decoded = max(candidates, key=rank, default=None)
    decoded = decoded and await decode_with_marks(decoded, context)
    lost = lost_copies(decoded) if decoded else set()
    if decoded is None or lost:
        decoded = await decode_otherwise(decoded.variant if decoded else variants[0], context, lost) or decoded
    decoded = decoded and await decode_without_blanks(decoded, context)
    if decoded is None:
        return None
    if not context.options.sample:
        decoded = await decode_without_repetition(decoded, context)
        decoded = await decode_without_losses(decoded, context)
        for _ in range(_MOST_REPAIRS):
            if not (symbols_lost := lost_symbols(decoded, context)):
                break
            variant = replace(decoded.variant, kept=(*decoded.variant.kept, *symbols_lost))
            decoded = await decode_otherwise(variant, context, set()) or decoded
        if not (decoded.variant.kept or decoded.variant.terms):
            decoded = await decode_with_spaced_slashes(decoded, context)
    alternatives = await restore(decoded, context)
    if not context.options.sample:
        alternatives = await replace_guesses(decoded, alternatives, context)
        omitted = await _omitted_words(decoded, context)
        alternatives = (replace(alternatives[0], omitted=omitted), *alternatives[1:]) if omitted else alternatives
    if context.terms.glossary:
        alternatives = await translate_with_terms(decoded, alternatives, any_case, context)
    if " / " in decoded.variant.text and not any(" / " in variant.text for variant in variants):
        alternatives = tuple(with_text(one, one.text.replace(" / ", "/")) for one in alternatives)
    return alternatives


async def translate_raw(sentence: str, context: SentenceContext) -> tuple[Alternative, ...]:
    """Translate a sentence by a single search without repairs. Return the n-best list.

    Raises:
        RequestError: The model fails on the sentence.
    """
    (result,) = await DecodeCall([context.request(sentence, context.options)])
    if result.problem:
        raise RequestError(result.problem)
    return tuple(map(context.alternative, result.hypotheses))


async def _translate_in_parts(
    sentence: str, fits: Callable[[str], bool], context: SentenceContext, kept: Sequence[Range]
) -> tuple[Alternative, ...]:
    """Translate a sentence in parts for which `fits` is true, or in clauses, and join the translations.

    Return () if the sentence cannot be divided. Protected spans are not divided.
    """
    spans = [(span.begin, span.end) for span in protect.find_spans(sentence, kept)]
    divided = segment.split_long_sentence(
        sentence, lambda part: fits(part) or len(clause_ranges(part, context.source)) == 1, context.source
    )
    parts = list(segment.merge_divided(divided, spans))
    return await _translate_parts(parts, context, kept) if sum(not part.kept for part in parts) > 1 else ()


async def _translate_parts(
    parts: Sequence[TextPart], context: SentenceContext, kept: Sequence[Range]
) -> tuple[Alternative, ...]:
    """Translate the parts of a sentence that are not kept, and join the translations."""
    ranges_of = split_ranges(kept, [part.text for part in parts])
    to_translate = [(part.text, ranges) for part, ranges in zip(parts, ranges_of, strict=True) if not part.kept]
    lists = await gather(translate_sentence(text, context, ranges) for text, ranges in to_translate)
    joined = []
    for rank in range(max(map(len, lists))):
        chosen = [n_best[min(rank, len(n_best) - 1)] for n_best in lists]
        clauses = [
            casing.as_clause(part.text, text, context.target, number == 0, context.is_common)
            for number, (part, (text, _)) in enumerate(zip(chosen, to_translate, strict=True))
        ]
        joined.append(join_alternatives(segment.join_parts(parts, clauses, context.source, context.target), chosen))
    return tuple(joined)


def _completeness(sentence: str, translation: Alternative) -> float:
    return repetition.completeness(sentence, translation.text, translation.piece_log_probabilities)


def _may_lack_clauses(sentence: str, translation: Alternative, context: SentenceContext) -> bool:
    """Return whether a sentence is a list of many short items or clauses, of which the translation may lack some."""
    if _completeness(sentence, translation) >= LEAST_COMPLETE_LIST:
        return False
    clauses = len(clause_ranges(sentence, context.source))
    return clauses >= LEAST_CLAUSES and PART_TOKENS < len(context.encode(sentence)) <= CLAUSE_TOKENS * clauses


async def _omitted_words(decoded: DecodedVariant, context: SentenceContext) -> tuple[str, ...]:
    """Return the words of a sentence that its best translation omits. Short sentences are not checked."""
    text, best = decoded.variant.stripped.text, decoded.best
    is_short = len(decoded.request.source) < LEAST_TOKENS
    if is_short or _completeness(text, best) >= LEAST_COMPLETE:
        return ()
    omitted = repetition.omitted_words(text, await piece_attention(decoded, 0, context))
    words = [text[begin:end] for begin, end in omitted]
    # Words such as "bitte" and copies can be there without much attention.
    words = [one for one in words if (context.known_translation(one) or one) not in best.text]
    for stand_in in decoded.variant.stand_ins:
        words = [one.replace(stand_in.word, stand_in.text) for one in words]
    return tuple(words)
