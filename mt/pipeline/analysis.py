"""Analysis of a sentence before it is decoded: its terms, and the ranges that are not translated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mt.pipeline.results import Alternative
from mt.pipeline.variants import SentenceContext
from mt.text import casing, places, protect, symbols
from mt.text.alignment import Range, has_text, with_edits
from mt.text.inflection import NounNumber
from mt.text.restoration import remove_spans
from mt.text.terms import TermMatch


@dataclass(frozen=True)
class SentenceAnalysis:
    """Terms and kept ranges of a sentence, and its translation if it needs no search."""

    matches: tuple[TermMatch, ...]
    kept: tuple[Range, ...]  # ranges that the translation must contain unchanged
    without_search: Alternative | None = None  # the translation of a sentence that needs no search

    @property
    def terms(self) -> list[Range]:
        """Ranges of the terms that have a translation."""
        return [(match.begin, match.end) for match in self.matches if match.translation is not None]


def analyse(sentence: str, context: SentenceContext, kept: Sequence[Range]) -> SentenceAnalysis:
    """Find terms, and the ranges that are not translated: `kept`, untranslatable terms, and unknown words."""
    in_capitals = casing.lower_capitals(sentence, context.source, kept, context.known_pieces) is not None
    matches = context.find_terms(sentence, kept, any_case=in_capitals)
    copied = _bare_term(sentence, matches)
    if not (matches or kept or context.banned or context.options.sample):
        copied = context.known_translation(sentence)
    if copied is None and symbols.is_code(sentence, context.source):
        copied = sentence
    if copied is not None:
        alternative = Alternative(copied, 0.0, 0.0, pieces=(copied,), piece_log_probabilities=(0.0,))
        return SentenceAnalysis(matches, tuple(kept), alternative)
    untranslated = [(match.begin, match.end) for match in matches if match.translation is None]
    analysis = SentenceAnalysis(matches, (*kept, *untranslated))
    unknown = symbols.unknown_words(sentence, context.tokenizer.characters) + places.postcodes(sentence)
    if not unknown:
        return analysis
    outside = (word for word in unknown if not any(a < word[1] and b > word[0] for a, b in analysis.terms))
    analysis = replace(analysis, kept=(*analysis.kept, *outside))
    if is_untranslatable(sentence, analysis.kept):
        return replace(analysis, without_search=keep_source(sentence, matches))
    return analysis


def is_untranslatable(sentence: str, kept: Sequence[Range] = ()) -> bool:
    """Return whether a sentence contains only protected spans, such as numbers and addresses, or `kept` ranges."""
    spans = protect.find_spans(sentence, kept)
    return bool(spans) and not has_text(remove_spans(sentence, spans).text)


def _bare_term(sentence: str, matches: Sequence[TermMatch]) -> str | None:
    """Return the translation of the glossary term that is the whole sentence; None for other sentences."""
    match matches:
        case [TermMatch(0, end, str(translation), NounNumber.SINGULAR)] if end == len(sentence):
            return translation
    return None


def keep_source(sentence: str, matches: Sequence[TermMatch]) -> Alternative:
    """Return the untranslated sentence as an alternative without pieces. Only its glossary terms are translated."""
    terms = ((match.begin, match.end, match.translation) for match in matches if match.translation is not None)
    return Alternative(with_edits(sentence, terms), 0.0, 0.0, pieces=(), piece_log_probabilities=())
