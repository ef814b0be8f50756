"""Options and texts for the models of a route: one model, or two with a bridge language between them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from mt.languages import Direction
from mt.pipeline.results import SentenceReport
from service.languages import TranslationRoute
from service.translation.answers import BridgedText, moved_ranges, reports_of
from service.translation.jobs import Answer, Job
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


def divide_by_sentences(
    texts: Sequence[SourceText], firsts: Sequence[Answer]
) -> tuple[list[list[SentenceReport]], list[SourceText]]:
    """Return the first model's reports on the sentences of each text, and the inputs of the second model for all."""
    reports = [list(reports_of(answer)) for answer in firsts]
    both = zip(texts, reports, strict=True)
    return reports, [bridge_sentence(text, report) for text, of_text in both for report in of_text]


def join_sentences(
    route: TranslationRoute,
    texts: Sequence[SourceText],
    firsts: Sequence[Answer],
    reports: Sequence[Sequence[SentenceReport]],
    seconds: Iterable[Answer],
) -> list[Answer]:
    """Return the answers for whole texts, given the second model's answers for all of their sentences."""
    answers, left = list[Answer](), iter(seconds)
    for text, first, of_text in zip(texts, firsts, reports, strict=True):
        bridged = BridgedText(text.text, Direction(route[0].source, route[1].target))
        for report in of_text:
            bridged.add(report, next(left))
        answers.append(bridged.finish(replace(first, bridge=route[0].target)))
    return answers


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
