"""Options and texts for the models of a route: one model, or two with a bridge language between them."""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import lru_cache

from mt.pipeline.results import SentenceReport
from service.languages import TranslationRoute
from service.translation.answers import moved_ranges
from service.translation.jobs import Job
from service.workers.messages import SourceText, TranslateOptions

plain_options = lru_cache(256)(TranslateOptions)  # without terms; they keep their digest, which takes long


def bridge_sentence(text: SourceText, first: SentenceReport) -> SourceText:
    """Return the input of the second model for one sentence: the first model's translation of this sentence.

    `text` is the whole source text, and `first` is the first model's report on the sentence. Protected ranges stay
    protected. An exact match of the sentence in the translation memory is passed on to the second model, because the
    match's translation is in the target language. Other matches are dropped, because the second model does not read
    their language.
    """
    begin, end = first.source_range
    places = text.protected  # sorted, and none overlaps another
    overlapping = places[
        bisect_right(places, begin, key=lambda place: place[1]) : bisect_left(places, end, key=lambda place: place[0])
    ]
    protected = [(max(a, begin) - begin, min(b, end) - begin) for a, b in overlapping]
    matches = tuple(
        replace(match, sentence=first.text.strip())
        for match in text.matches
        if match.exact and match.sentence == text.text[begin:end]
    )
    return SourceText(first.text, moved_ranges(protected, text.text[begin:end], first.text), text.aligned, matches)


def first_options(job: Job, route: TranslationRoute) -> TranslateOptions:
    """Return the options for the first of two models.

    The first model leaves the source terms of the glossary untranslated, because the second model replaces them by
    their translations.
    """
    terms = job.terms_from(route[0].source).names
    options = plain_options(
        route[0], beam_size=job.beam_size, n_best=1, split_sentences=job.split_sentences, model=job.model
    )
    return replace(options, terms=terms) if terms else options


def last_options(job: Job, route: TranslationRoute) -> TranslateOptions:
    """Return the options for the last model of a route, the only one that returns alternatives and attention.

    The second of two models does not split its input into sentences, because the first model has done so.
    """
    count, terms = 1 + job.alternatives, job.terms_from(route[0].source)
    options = plain_options(
        route[-1],
        beam_size=None if job.beam_size is None else max(job.beam_size, count),
        n_best=count,
        split_sentences=job.split_sentences and len(route) == 1,
        attention=job.attention,
        formality=job.formality,
        model=job.model,
    )
    return replace(options, terms=terms) if terms else options
