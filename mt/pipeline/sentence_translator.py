"""Translation of a sentence of a text: its tags, its normalised form, the repairs of its translation, its quality."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise

from mt.pipeline.analysis import keep_source
from mt.pipeline.driver import gather
from mt.pipeline.explain import has_empty_mark, place_tags
from mt.pipeline.results import Alternative, with_text
from mt.pipeline.sentence import translate_raw, translate_sentence
from mt.pipeline.term_words import mark_compounds
from mt.pipeline.variants import SentenceContext, join_alternatives, link_texts, write_breaks
from mt.scoring.confidence import Expectation, Observation, QualityEstimator
from mt.text import protect, typography
from mt.text.alignment import Range, ranges_between, split_ranges
from mt.text.casing import as_clause, begin_with_capital
from mt.text.clock import is_english_time
from mt.text.formality import banned_words, formalities_of, supports_formality
from mt.text.fuzzy_match import MemoryMatch, adaptable, repair
from mt.text.markup import strings
from mt.text.mending import mend_phrases, write_signs_of_numbers
from mt.text.messages import (
    double_apostrophes,
    doubles_apostrophes,
    has_letters,
    safe_apostrophes,
    whole_sentences,
    write_branches,
    write_number_signs,
)
from mt.text.negation import mend_prohibitions
from mt.text.normalise import NormalisedText, remove_invisible
from mt.text.numbers import mend_numbers, unify_numbers
from mt.text.numerals import count_lost_values, simplify_values, write_values
from mt.text.schedules import has_ranges, mend_dates, mend_ranges
from mt.text.segment import TextPart
from mt.text.templates import FIELD, divide_at_fields
from mt.text.terms import TermMatch, find_translation, missing_terms
from mt.tokenizer import SPACE_MARK

FORMALITY_BEAMS = 8  # at least, in the second search; with 16, hardly more sentences get the requested formality
_HANDICAP = 0.06  # of quality, in favour of the usual reading of Markdown, which models know from documentation


@dataclass(frozen=True)
class TranslatedSentence:
    """The n-best list of a sentence, and the expected quality and the marked ranges of its best alternative."""

    alternatives: tuple[Alternative, ...]
    expectation: Expectation
    labels: tuple[int, ...] = ()  # numbers of the marked ranges of the sentence that were decoded between marks
    marked: tuple[Range, ...] = ()  # those of the best alternative, for `labels` in another order

    @property
    def best(self) -> Alternative:
        return self.alternatives[0]

    def exceeds(self, usual: "TranslatedSentence", margin: float) -> bool:
        """Return whether the quality of this is higher by `margin` than that of the `usual` translation."""
        before, after = usual.expectation.quality, self.expectation.quality
        if before is None and after is None:  # as of a model without an estimator
            return self.best.score > usual.best.score + margin
        return after is not None and (before is None or after > before + margin)


@dataclass(frozen=True)
class SentenceTranslator:
    """Translates the sentences of texts in one direction."""

    context: SentenceContext
    protect: bool = True  # whether to protect spans and capitals, and to repair translations
    estimator: QualityEstimator | None = None
    is_message: bool = False  # whether the text is an ICU message, in which an apostrophe may begin a literal text

    async def translate(self, part: TextPart, match: MemoryMatch | None, no_break_spaces: bool) -> TranslatedSentence:
        """Translate a sentence. Its only alternative is the translation of an exact match, if there is one.

        If `match` is not exact, its repaired translation replaces the text of the best alternative, if possible. The
        sentence must not be too long for the model, unless `match` is exact. If `no_break_spaces` is true, the
        translation gets the no-break spaces that typography demands. Emphasis and links in the notation of Markdown are
        translated as text, and also as tags if the model may not know them; the better translation is used.
        """
        if not self.protect or match is not None:
            return await self._translate_bare(part.text, part.kept_ranges, match, no_break_spaces)
        visible = remove_invisible(part.text, part.kept_ranges)
        if visible.text != part.text:
            kept, marked = ([visible.normalised_range(*at) for at in one] for one in (part.kept_ranges, part.marked))
            plain = replace(part, text=visible.text, kept_ranges=tuple(kept), marked=tuple(marked))
            translated = await self.translate(plain, None, no_break_spaces)
            best, *others = translated.alternatives
            is_copy = len(best.pieces) < 2 and best.text == plain.text
            return replace(translated, alternatives=(with_text(best, part.text), *others)) if is_copy else translated
        if doubles_apostrophes(part.text, self.is_message) and not part.kept_ranges:
            translated = await self.translate(replace(part, text=part.text.replace("''", "'")), None, no_break_spaces)
            texts = [(one, double_apostrophes(one.text, part.text)) for one in translated.alternatives]
            return replace(translated, alternatives=tuple(with_text(one, text) for one, text in texts))
        if part.marked:
            return await self._translate_with_ranges(part, no_break_spaces)
        if self.is_message and not part.kept_ranges and (message := whole_sentences(part.text)):
            return await self._translate_message(*message, no_break_spaces)
        translated = await self._translate_marked(part, no_break_spaces)
        is_kept = strings.keeps_marks(part.text, translated.best.text)
        is_usual = is_kept and not strings.has_unusual_marks(part.text, self.context.known_pieces)
        if is_usual or self._has_marked_term(part):
            return translated
        other = await self._translate_marked(part, no_break_spaces, marks=True)
        is_better = strings.has_foreign_marks(part.text) or other.exceeds(translated, _HANDICAP)
        is_better = is_better and strings.keeps_marks(part.text, other.best.text)
        return other if is_better or not is_kept else translated

    async def _translate_with_ranges(self, part: TextPart, no_break_spaces: bool) -> TranslatedSentence:
        """Translate a sentence with marks, or the words of each mark apart if some marks would have none otherwise.

        Only elements or lines side by side, without other words, are divided; lines, too, if they change their order.
        """
        ranges, text = part.marked, part.text
        around = "".join(text[begin:end] for begin, end in ranges_between(ranges, len(text)))
        if len(ranges) < 2 or any(map(str.isalnum, around)) or self.context.options.sample:
            return await self._translate_with_labels(part, no_break_spaces)
        translated = await self.translate(replace(part, marked=()), None, no_break_spaces)
        if not await has_empty_mark(text, ranges, translated.best, self.context):
            return translated
        cuts = [0, *chain.from_iterable(ranges), len(text)]
        texts = [text[begin:end] for begin, end in pairwise(cuts)]
        kept = split_ranges(part.kept_ranges, texts)[1::2]
        inner = [TextPart(one.rstrip(), False, at) for one, at in zip(texts[1::2], kept, strict=True)]
        found = await gather(self.translate(one, None, no_break_spaces) for one in inner)
        words = [one.best for one in found]
        texts[1::2] = [new.text + one[len(one.rstrip()) :] for new, one in zip(words, texts[1::2], strict=True)]
        ends = [*accumulate(map(len, texts))]
        places = tuple(zip(ends[:-1:2], ends[1::2], strict=True))
        least = min((one.expectation for one in found), key=lambda one: one.quality or 0)
        joined = join_alternatives("".join(texts), words)
        return TranslatedSentence((joined,), least, tuple(range(len(ranges))), places)

    async def _translate_with_labels(self, part: TextPart, no_break_spaces: bool) -> TranslatedSentence:
        """Translate a sentence with marks of emphasis around its labels, if the model knows these.

        The sentence is translated without them, too. This translation is used if the other lacks some of the marks, or
        is clearly worse. Attention finds the places of the marks of other words.
        """
        bare, language = replace(part, marked=()), self.context.source
        numbers = [n for n, place in enumerate(part.marked) if strings.is_label(part.text, place, language)]
        if not (labels := tuple(part.marked[n] for n in numbers)):
            return await self.translate(bare, None, no_break_spaces)
        text, cuts = strings.write_marks(part.text, labels), [cut for place in labels for cut in place]
        ranges = [*part.kept_ranges, *((span.begin, span.end) for span in protect.find_spans(part.text))]
        ranges += [(term.begin, term.end) for term in self.context.find_terms(part.text, part.kept_ranges)]
        is_cut = any(begin < cut < end for begin, end in ranges for cut in cuts)
        is_whole = labels[0] == (0, len(part.text))
        is_readable = not (self.is_message or is_cut or is_whole) and self.context.known_pieces(strings.EMPHASIS)
        is_readable = is_readable and self.context.covers(text, self.context.max_length)
        if not is_readable or strings.has_foreign_marks(text) or strings.read_marks(text) != (part.text, labels):
            return await self.translate(bare, None, no_break_spaces)
        size = len(strings.EMPHASIS)
        kept = tuple(
            (begin + size * sum(cut <= begin for cut in cuts), end + size * sum(cut < end for cut in cuts))
            for begin, end in part.kept_ranges
        )
        translated, other = await gather(
            (self._translate_bare(text, kept, None, no_break_spaces), self.translate(bare, None, no_break_spaces))
        )
        is_read = strings.EMPHASIS in "".join(translated.best.pieces)  # and the marks are not inserted again
        is_read = is_read and strings.keeps_marks(text, translated.best.text)
        if not is_read or other.exceeds(translated, _HANDICAP):
            return other
        words = [part.text[begin:end] for begin, end in labels]
        known = {word: new for word in words if (new := self.context.known_translation(word))}
        texts = [strings.read_marks(strings.write_known(one.text, known)) for one in translated.alternatives]
        pairs = zip(translated.alternatives, texts, strict=True)
        alternatives = tuple(with_text(one, new) for one, (new, _) in pairs)
        return replace(translated, alternatives=alternatives, labels=tuple(numbers), marked=texts[0][1])

    async def _translate_message(
        self, parts: Sequence[tuple[str, bool]], wholes: Sequence[str], no_break_spaces: bool
    ) -> TranslatedSentence:
        """Translate a sentence with branches: as a whole with each branch, otherwise in parts."""
        read = [one for one in wholes if has_letters(one)]
        translated = await gather(self.translate(TextPart(one, kept=False), None, no_break_spaces) for one in read)
        written = {text: one.best.text for text, one in zip(read, translated, strict=True)}
        text = write_branches(parts, [written.get(one, one) for one in wholes])
        return await self._translate_between(parts, no_break_spaces) if text is None else _joined(text, translated)

    async def _translate_between(self, parts: Sequence[tuple[str, bool]], no_break_spaces: bool) -> TranslatedSentence:
        """Translate the parts of a sentence, pairs (text, whether to translate it), each alone."""
        texts = [text for text, is_text in parts if is_text and has_letters(text)]
        stripped = [one.strip() for one in texts]
        translated = await gather(self.translate(TextPart(one, False), None, no_break_spaces) for one in stripped)
        target, is_common = self.context.target, self.context.is_common
        written = {
            text: text.replace(bare, as_clause(new.best.text, bare, target, text == parts[0][0], is_common))
            for text, bare, new in zip(texts, stripped, translated, strict=True)
        }
        return _joined("".join(written.get(text, text) if is_text else text for text, is_text in parts), translated)

    def _has_marked_term(self, part: TextPart) -> bool:
        """Return whether a term contains a mark of emphasis or of a link."""
        terms = self.context.find_terms(part.text, part.kept_ranges)
        tags = strings.find_tags(part.text, marks=True) if terms else ()
        return any(term.begin < tag.end and tag.begin < term.end for term in terms for tag in tags)

    async def _translate_marked(self, part: TextPart, no_break_spaces: bool, marks: bool = False) -> TranslatedSentence:
        """Translate a sentence with tags. `marks` tells whether those of emphasis and links are tags."""
        inline = strings.read_marked_sentence(part.text, part.kept_ranges, marks)
        if not inline or not inline.built:
            return await self._translate_bare(part.text, part.kept_ranges, None, no_break_spaces)
        marked = inline.built.segment
        if marks or self.context.options.sample or not marked.marked:
            bare = await self._translate_bare(marked.text, marked.kept, None, no_break_spaces)
        else:
            bare = await self._translate_with_ranges(
                TextPart(marked.text, False, marked.kept, marked.marked), no_break_spaces
            )
        ranges = [marked.marked[n] for n in bare.labels], bare.marked
        alternatives = await place_tags(inline, bare.alternatives, ranges, self.context)
        return replace(bare, alternatives=alternatives, labels=(), marked=())

    async def _translate_bare(
        self, sentence: str, kept: Sequence[Range], match: MemoryMatch | None, no_break_spaces: bool
    ) -> TranslatedSentence:
        """Translate a sentence without tags: text that looks like a tag once others are removed is no tag."""
        normalised = self.context.normaliser.normalise(sentence, kept)
        ranges, terms, fixed = [normalised.normalised_range(*place) for place in kept], tuple[TermMatch, ...](), kept
        if match is None:
            terms = self.context.find_terms(normalised.text, ranges)
            fixed = [*ranges, *((term.begin, term.end) for term in terms)]
            reworded = self.context.reworded(normalised, fixed)
            if reworded is not normalised:
                fixed = [reworded.normalised_range(*normalised.original_range(*place)) for place in fixed]
                normalised = reworded
                ranges = [normalised.normalised_range(*place) for place in kept]
        else:  # times stay, because the repair of a match compares the sentence with that of the memory
            normalised = unify_numbers(normalised, ("und", "und"), ranges)
        source = self.context.encode(normalised.text)
        if exact := exact_translation(match, kept):
            return TranslatedSentence((exact,), self._expectation(source, exact, ()))
        alternatives = await self._translate_normalised(normalised.text, ranges, match)
        if match is None and self.protect and not self.context.options.sample:
            alternatives = await self._with_all_values(normalised, ranges, fixed, alternatives)
        if normalised.text != sentence or no_break_spaces:
            alternatives = await _restore_typography(sentence, normalised, alternatives, self.context, no_break_spaces)
        target = self.context.target
        alternatives = tuple(with_text(one, write_signs_of_numbers(sentence, one.text, target)) for one in alternatives)
        unchanged = keep_source(sentence, self.context.find_terms(sentence, kept) if terms else ())
        wanted = sorted(FIELD.findall(unchanged.text)) if self.protect else None
        if right := tuple(one for one in alternatives if wanted in (None, sorted(FIELD.findall(one.text)))):
            return TranslatedSentence(right, self._expectation(source, right[0], terms))
        parts = divide_at_fields(sentence, kept)  # wherever the rules fail
        if any(is_text and text != sentence and has_letters(text) for text, is_text in parts):
            translated = await self._translate_between(parts, no_break_spaces)
            if sorted(FIELD.findall(translated.best.text)) == wanted:
                return translated
        return TranslatedSentence((unchanged,), Expectation(None))

    async def _with_all_values(
        self,
        normalised: NormalisedText,
        kept: Sequence[Range],
        fixed: Sequence[Range],
        alternatives: tuple[Alternative, ...],
    ) -> tuple[Alternative, ...]:
        """Return the alternatives of a sentence with simpler values if the given ones have lost more of its values."""
        text, languages = normalised.text, (self.context.source, self.context.target)
        if not (lost := count_lost_values(text, alternatives[0].text, languages)):
            return alternatives
        simple = simplify_values(normalised, languages, fixed)
        moved = [simple.normalised_range(*normalised.original_range(*place)) for place in kept]
        others = await self._translate_normalised(simple.text, moved, None) if simple.text != text else alternatives
        others = tuple(with_text(one, write_values(text, one.text, languages)) for one in others)
        return others if count_lost_values(text, others[0].text, languages) < lost else alternatives

    async def _translate_normalised(
        self, sentence: str, kept: Sequence[Range], match: MemoryMatch | None
    ) -> tuple[Alternative, ...]:
        repairs = self.protect or self.context.terms or kept
        translate = partial(translate_sentence, kept=kept) if repairs else translate_raw
        alternatives = await _translate_with_formality(sentence, self.context, partial(translate, sentence))
        if repairs:
            alternatives = tuple(with_text(one, self._mended(sentence, one.text, kept)) for one in alternatives)
        if match is None:
            return alternatives
        return await _repair_match(sentence, alternatives, match, kept, self.context)

    def _mended(self, sentence: str, translation: str, kept: Sequence[Range]) -> str:
        languages = self.context.source, self.context.target
        translation = mend_prohibitions(sentence, translation, languages)
        translation = mend_dates(sentence, typography.mend_marks(sentence, translation, languages[1]), languages, kept)
        if '"' in translation:
            translation = typography.unify_quotes(translation, protect.find_spans(sentence, kept), self.context.target)
        translation = typography.space_guillemets(sentence, translation, self.context.target)
        if self.is_message:
            translation = safe_apostrophes(translation, sentence)
            translation = as_clause(translation, sentence, languages[1], False, self.context.is_common)
        translation = write_number_signs(sentence, translation, languages[1]) if "#" in translation else translation
        for match, phrase in self.context.phrases.bracketed(sentence, *languages) if self.context.phrases else ():
            copy = re.compile(rf"{re.escape(match[0])}(?!\w)")
            translation = copy.sub(f"{match[0][0]}{phrase}", translation)
        translation = mend_phrases(sentence, translation, languages[1])
        mended = mend_numbers(sentence, translation, languages, kept)
        if has_ranges(sentence, self.context.source):
            terms = self.context.find_terms(sentence, kept)
            fixed = [*kept, *((term.begin, term.end) for term in terms)]
            mended = mend_ranges(sentence, mended, languages, fixed)
        raised = begin_with_capital(mended, sentence, self.context.target, kept)
        if raised == mended:
            return mended
        words = filter(None, (term.strip() for _, term in self.context.terms.glossary))
        has_term = any(mended.startswith(word) and not mended[len(word) : len(word) + 1].isalnum() for word in words)
        return mended if has_term else raised

    def _expectation(self, source: Sequence[int], alternative: Alternative, terms: Sequence[TermMatch]) -> Expectation:
        """Return the expected quality of a translation of a source of these ids, with its tag and EOS.

        Of `terms`, only the first pieces count: a constrained search gives the others a probability of about 1. The
        quality is unknown if the model has no estimator, or if the alternative has no pieces.
        """
        log_probabilities = alternative.piece_log_probabilities
        if self.estimator is None or not log_probabilities:
            return Expectation(None)
        if log_probabilities == (0.0,):
            return Expectation(1.0)  # a term, a phrase or a code: there was no search
        pieces, observation = alternative.pieces, Observation(log_probabilities, len(alternative.text))
        if required := {term.translation for term in terms if term.translation}:
            text, target = "".join(pieces).replace(SPACE_MARK, " "), self.context.target
            places = [place for term in required for place in find_translation(term, text, target, True)]
            begins = [0, *accumulate(map(len, pieces))]  # the last is that of EOS
            if places and len(begins) == len(log_probabilities):  # a sentence in parts has several EOS
                free = [n for n, begin in enumerate(begins) if not any(low < begin < high for low, high in places)]
                observation = Observation([log_probabilities[n] for n in free], sum(len(pieces[n]) for n in free[:-1]))
        return self.estimator.expectation(self.context.source, source[len(self.context.tag) : -1], observation)


def _joined(text: str, parts: Sequence[TranslatedSentence]) -> TranslatedSentence:
    joined = join_alternatives(text, [one.best for one in parts])
    return TranslatedSentence((joined,), min((one.expectation for one in parts), key=lambda e: e.quality or 0))


def exact_translation(match: MemoryMatch | None, kept: Sequence[Range]) -> Alternative | None:
    """Return the translation of an exact match as an alternative.

    Return None if there is no exact match, or if its translation lacks the text of a range in `kept`.
    """
    if match is None or not match.exact or any(match.sentence[begin:end] not in match.target for begin, end in kept):
        return None
    return Alternative(match.target, 0.0, 0.0, pieces=(match.target,), piece_log_probabilities=(0.0,), match=1.0)


async def _repair_match(
    sentence: str,
    alternatives: tuple[Alternative, ...],
    match: MemoryMatch,
    kept: Sequence[Range],
    context: SentenceContext,
) -> tuple[Alternative, ...]:
    """Replace the text of the best alternative by the repaired translation of a memory match. Return all alternatives.

    The alternatives are unchanged if the match is not adaptable, if the repair is not possible, if it would lose a
    protected span or a glossary term, or if a text is too long for the model.
    """
    plain = alternatives[0].text
    source = context.normaliser.normalise(match.source).text
    if not alternatives[0].pieces or not adaptable(source, sentence, context.source):
        return alternatives
    links = await link_texts([(source, match.target), (sentence, plain)], context)
    text = repair(*links) if links else None
    if text is None or any(span.text in plain and span.text not in text for span in protect.find_spans(sentence, kept)):
        return alternatives
    terms = context.find_terms(sentence, kept)
    if links and missing_terms(mark_compounds(terms, links[1], context.target), text, context.target):
        return alternatives
    return (replace(alternatives[0], text=text, match=match.score), *alternatives[1:])


async def _translate_with_formality(
    sentence: str, context: SentenceContext, translate: Callable[[SentenceContext], Awaitable[tuple[Alternative, ...]]]
) -> tuple[Alternative, ...]:
    """Return the n-best list of a sentence, with the formality of `context` if the model can produce it.

    If the best translation has a word of the opposite formality, a second search bans such words. Its n-best list
    begins with the translations of the requested formality, followed by those without any formality. If all its
    translations have a word of the opposite formality, the n-best list of the first search is returned.
    """
    alternatives = await translate(context)
    wanted, options = context.formality, context.options
    if wanted is None or options.sample or not supports_formality(context.target):
        return alternatives

    def rank(alternative: Alternative) -> tuple[bool, bool]:
        formalities = formalities_of(alternative.text, context.target, sentence, context.source)
        return bool(formalities - {wanted}), wanted not in formalities

    if not rank(alternatives[0])[0]:
        return alternatives
    beams = max(FORMALITY_BEAMS, options.beam_size)
    banning = replace(
        context,
        banned=(*context.banned, *banned_words(context.target, wanted)),
        options=replace(options, beam_size=beams, n_best=max(FORMALITY_BEAMS, options.n_best)),
    )
    again = tuple(sorted(await translate(banning), key=rank))
    return alternatives if rank(again[0])[0] else again[: options.n_best]


async def _restore_typography(
    sentence: str,
    normalised: NormalisedText,
    alternatives: tuple[Alternative, ...],
    context: SentenceContext,
    no_break_spaces: bool,
) -> tuple[Alternative, ...]:
    """Restore what a model cannot write. `normalised` is the text of `sentence` that the model read.

    An untranslated sentence becomes the original one. Line breaks, tabs and runs of spaces inside the sentence are
    inserted between the same words of the translations. `no_break_spaces` tells whether these get no-break spaces.
    """
    is_copy = len(alternatives[0].pieces) < 2 and alternatives[0].text == normalised.text  # untranslated, or a code
    if is_copy and not is_english_time(sentence, context.source):
        return (replace(alternatives[0], text=sentence), *alternatives[1:])
    texts = [alternative.text for alternative in alternatives]
    breaks = [
        (normalised.normalised_range(*match.span())[0], match[0])
        for match in typography.BREAKS.finditer(sentence)
        if normalised.text[slice(*normalised.normalised_range(*match.span()))] == " "
    ]
    if breaks:
        texts = await write_breaks(normalised.text, texts, breaks, context)
    if "…" in sentence and "..." not in sentence:
        texts = [text.replace("...", "…") for text in texts]
    if "&" in sentence:
        texts = [typography.write_references(sentence, text) for text in texts]
    if '""' in sentence and '""' not in normalised.text:  # a field of a record, in which marks are doubled
        texts = [text.replace('"', '""') for text in texts]
    if no_break_spaces:
        texts = [typography.restore_no_break_spaces(sentence, text, context.target) for text in texts]
    return tuple(replace(one, text=text) for one, text in zip(alternatives, texts, strict=True))
