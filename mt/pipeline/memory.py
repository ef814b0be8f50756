"""Use of translation memory matches for the translation of sentences."""

from collections.abc import Sequence
from dataclasses import replace

from mt.pipeline.results import Alternative
from mt.pipeline.term_words import mark_compounds
from mt.pipeline.variants import SentenceContext, link_texts
from mt.text import protect
from mt.text.alignment import Range
from mt.text.fuzzy_match import MemoryMatch, adaptable, repair
from mt.text.terms import missing_terms


def exact_translation(match: MemoryMatch | None, kept: Sequence[Range]) -> Alternative | None:
    """Return the translation of an exact match as an alternative.

    Return None if there is no exact match, or if its translation lacks the text of a range in `kept`.
    """
    if match is None or not match.exact or any(match.sentence[begin:end] not in match.target for begin, end in kept):
        return None
    return Alternative(match.target, 0.0, 0.0, pieces=(match.target,), piece_log_probabilities=(0.0,), match=1.0)


async def repair_match(
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
    terms = context.terms.find(sentence, context.source, kept)
    if links and missing_terms(mark_compounds(terms, links[1], context.target), text, context.target):
        return alternatives
    return (replace(alternatives[0], text=text, match=match.score), *alternatives[1:])
