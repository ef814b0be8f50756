"""Translation of a sentence of a text: its tags, its normalised form, the repairs of its translation, its quality."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from mt.pipeline.formality import translate_with_formality
from mt.pipeline.marked import place_tags
from mt.pipeline.memory import exact_translation, repair_match
from mt.pipeline.results import Alternative, with_text
from mt.pipeline.sentence import translate_raw, translate_sentence
from mt.pipeline.typography import restore_typography
from mt.pipeline.variants import SentenceContext
from mt.scoring.confidence import Expectation, Observation, QualityEstimator
from mt.text import protect
from mt.text.alignment import Range
from mt.text.casing import begin_with_capital
from mt.text.fuzzy_match import MemoryMatch
from mt.text.markup import strings
from mt.text.messages import safe_apostrophes
from mt.text.numbers import mend_numbers, unify_numbers
from mt.text.schedules import has_ranges, mend_names, mend_ranges
from mt.text.segment import TextPart
from mt.text.terms import TermMatch, find_translation
from mt.text.typography import mend_marks, space_guillemets, unify_quotes
from mt.tokenizer import SPACE_MARK

_HANDICAP = 0.06  # of quality, in favour of the usual reading of Markdown, which models know from documentation
_HANDICAP_OF_PLACES = 0.2  # where both mark other words: the model places marks better than attention does


@dataclass(frozen=True)
class TranslatedSentence:
    """The n-best list of a sentence, and the expected quality of its best alternative."""

    alternatives: tuple[Alternative, ...]
    expectation: Expectation

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
        translated = await self._translate_marked(part, no_break_spaces)
        is_kept = strings.keeps_marks(part.text, translated.best.text)
        is_usual = is_kept and not strings.has_unusual_marks(part.text, self.context.known_pieces)
        if is_usual or self._has_marked_term(part):
            return translated
        other = await self._translate_marked(part, no_break_spaces, marks=True)
        if not strings.keeps_marks(part.text, other.best.text):
            return translated
        if not is_kept or strings.has_foreign_marks(part.text):
            return other
        if not other.exceeds(translated, _HANDICAP):
            return translated
        moved, is_complete = strings.move_marks(other.best.text, translated.best.text)
        is_clear = is_complete or strings.copies_marked_words(part.text, translated.best.text)
        if not (is_clear or other.exceeds(translated, _HANDICAP_OF_PLACES)):
            return translated
        return replace(other, alternatives=(with_text(other.best, moved), *other.alternatives[1:]))

    def _has_marked_term(self, part: TextPart) -> bool:
        """Return whether a term contains a mark of emphasis or of a link."""
        terms = self.context.terms.find(part.text, self.context.source, part.kept_ranges)
        tags = strings.find_tags(part.text, marks=True) if terms else ()
        return any(term.begin < tag.end and tag.begin < term.end for term in terms for tag in tags)

    async def _translate_marked(self, part: TextPart, no_break_spaces: bool, marks: bool = False) -> TranslatedSentence:
        """Translate a sentence with tags. `marks` tells whether those of emphasis and links are tags."""
        inline = strings.read_marked_sentence(part.text, part.kept_ranges, marks)
        if inline and inline.built:
            marked = inline.built.segment
            bare = await self._translate_bare(marked.text, marked.kept, None, no_break_spaces)
            return replace(bare, alternatives=await place_tags(inline, bare.alternatives, self.context))
        return await self._translate_bare(part.text, part.kept_ranges, None, no_break_spaces)

    async def _translate_bare(
        self, sentence: str, kept: Sequence[Range], match: MemoryMatch | None, no_break_spaces: bool
    ) -> TranslatedSentence:
        """Translate a sentence without tags: text that looks like a tag once others are removed is no tag."""
        normalised = self.context.normaliser.normalise(sentence, kept)
        ranges, terms = [normalised.normalised_range(*place) for place in kept], tuple[TermMatch, ...]()
        if match is None:
            terms = self.context.terms.find(normalised.text, self.context.source, ranges)
            fixed = [*ranges, *((term.begin, term.end) for term in terms)]
            normalised = self.context.reworded(normalised, fixed)
            ranges = [normalised.normalised_range(*place) for place in kept]
        else:  # times stay, because the repair of a match compares the sentence with that of the memory
            normalised = unify_numbers(normalised, ("und", "und"), ranges)
        source = self.context.encode(normalised.text)
        if exact := exact_translation(match, kept):
            return TranslatedSentence((exact,), self._expectation(source, exact, ()))
        alternatives = await self._translate_normalised(normalised.text, ranges, match)
        if normalised.text != sentence or no_break_spaces:
            alternatives = await restore_typography(sentence, normalised, alternatives, self.context, no_break_spaces)
        return TranslatedSentence(alternatives, self._expectation(source, alternatives[0], terms))

    async def _translate_normalised(
        self, sentence: str, kept: Sequence[Range], match: MemoryMatch | None
    ) -> tuple[Alternative, ...]:
        repairs = self.protect or self.context.terms or kept
        translate = partial(translate_sentence, kept=kept) if repairs else translate_raw
        alternatives = await translate_with_formality(sentence, self.context, partial(translate, sentence))
        if repairs:
            alternatives = tuple(with_text(one, self._mended(sentence, one.text, kept)) for one in alternatives)
        if match is None:
            return alternatives
        return await repair_match(sentence, alternatives, match, kept, self.context)

    def _mended(self, sentence: str, translation: str, kept: Sequence[Range]) -> str:
        languages = self.context.source, self.context.target
        translation = mend_names(sentence, mend_marks(sentence, translation, self.context.target), languages, kept)
        if '"' in translation:
            translation = unify_quotes(translation, protect.find_spans(sentence, kept), self.context.target)
        translation = space_guillemets(sentence, translation, self.context.target)
        translation = safe_apostrophes(translation, sentence) if self.is_message else translation
        mended = mend_numbers(sentence, translation, languages, kept)
        if has_ranges(sentence, self.context.source):
            terms = self.context.terms.find(sentence, self.context.source, kept)
            fixed = [*kept, *((term.begin, term.end) for term in terms)]
            mended = mend_ranges(sentence, mended, languages, fixed)
        raised = begin_with_capital(mended, sentence, self.context.target, kept)
        words = filter(None, (term.strip() for _, term in self.context.terms.glossary)) if raised != mended else ()
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
        required = {term.translation for term in terms if term.translation}
        text = "".join(pieces).replace(SPACE_MARK, " ") if required else ""
        places = [place for term in required for place in find_translation(term, text, self.context.target, True)]
        begins = [0, *accumulate(map(len, pieces))] if places else []  # the last is that of EOS
        if places and len(begins) == len(log_probabilities):  # a sentence in parts has several EOS
            free = [n for n, begin in enumerate(begins) if not any(low < begin < high for low, high in places)]
            observation = Observation([log_probabilities[n] for n in free], sum(len(pieces[n]) for n in free[:-1]))
        return self.estimator.expectation(self.context.source, source[len(self.context.tag) : -1], observation)
