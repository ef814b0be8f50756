"""One sentence on its way: what the model is asked, and what it is asked again where its answer will not do."""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.engine.attention import Pair, Weights
from mt.engine.enforcement import displaced, doubled, needs, substituted
from mt.engine.messages import Request, Result
from mt.engine.results import Alternative
from mt.engine.spelling import Needed, Speller
from mt.text import casing, protect, repetition, segment
from mt.text.linking import Attention, Links, Range, begins_of
from mt.text.protect import Cut, Kind, Span
from mt.text.terms import Found, Terms, lacking
from mt.tokenizer import SPACE_MARK

NO_REPEAT = 3  # pieces in a row that must not come twice where a translation went in circles

ROUNDS = 2  # times that a sentence is asked for with terms, at most
BEAMS = 16
"""Of a search for terms, at least: they are shared out by how many terms a hypothesis has. One number for all, because
only searches with as many beams run together. With 12 the text is a little worse, with 24 hardly better."""

_LOOSE = frozenset({Kind.EMOJI})
_COPIED = frozenset({Kind.OPAQUE, Kind.TAG, Kind.KEPT})  # stay in the sentence only if the model copies them


def joined(text: str, chosen: Sequence[Alternative]) -> Alternative:
    """One alternative of several sentences, whose text has been put together."""
    tokens = [len(each.piece_log_probabilities) for each in chosen]
    weighted = sum(each.score * count for each, count in zip(chosen, tokens, strict=True))
    return Alternative(
        text=text,
        score=chosen[0].score if len(chosen) == 1 else weighted / max(1, sum(tokens)),
        log_probability=sum((each.log_probability for each in chosen), 0.0),
        pieces=tuple(chain.from_iterable(each.pieces for each in chosen)),
        piece_log_probabilities=tuple(chain.from_iterable(each.piece_log_probabilities for each in chosen)),
    )


@dataclass(frozen=True)
class Means:
    """What sentences are translated with: text to requests, hypotheses to text, and what a translation looks at."""

    request: Callable[[str, SearchOptions], Request]
    alternative: Callable[[Hypothesis], Alternative]
    pieces: Callable[[Sequence[int]], list[str]]
    tagged: int  # ids of a request's source before the sentence's own
    source: str  # language
    target: str
    options: SearchOptions
    terms: Terms
    speller: Callable[[], Speller]


@dataclass(frozen=True)
class Looks:
    """Asks what translations look at; the answer is the weights of each pair."""

    pairs: tuple[Pair, ...]


Asked = list[Request] | Looks
"""Sentences, any number at a time, for which results are sent, in order; or looks, for which weights are."""

Steps = Generator[Asked, Any, tuple[Alternative, ...]]
"""Asks, and is sent what was asked for; the n-best list is what it returns."""


@dataclass(frozen=True)
class Draft:
    """What is asked: a sentence in some case, and the ranges of it that are to be kept."""

    text: str
    kept: tuple[Range, ...]

    @classmethod
    def of(cls, text: str, sentence: str, kept: Sequence[Range]) -> "Draft":
        """The sentence as it is written in `text`, where only the case of what is not kept differs."""
        ranges: list[Range] = []
        for begin, end in sorted(kept):
            place = text.find(sentence[begin:end], min(begin, ranges[-1][1] if ranges else begin))
            if place >= 0:
                ranges.append((place, place + end - begin))
        return cls(text, tuple(kept) if len(text) == len(sentence) else tuple(ranges))


@dataclass(frozen=True)
class Answer:
    """What came of a question: `cut.text` is what was to be translated, `spans` are those of the whole sentence."""

    draft: Draft
    spans: tuple[Span, ...]
    cut: Cut
    request: Request
    written: tuple[Alternative, ...]  # as the model wrote them
    tokens: tuple[tuple[int, ...], ...]

    @property
    def best(self) -> Alternative:
        return self.written[0]


Asking = Generator[Asked, Any, list[Answer]]


def translate(sentence: str, means: Means, kept: Sequence[Range] = ()) -> Steps:
    """The n-best list of a sentence whose spans, and what is to be kept, come back whole, and which holds its terms.

    A sentence without spans, in ordinary letters, whose translation is sound, is asked for once, as it is. A headline
    is asked for in both cases, and what the model holds the more probable is taken: small letters would spoil names.
    """
    shouts = casing.lowered(sentence, means.source, kept) is not None
    stays = means.terms.find(sentence, means.source, kept, any_case=shouts)
    kept = (*kept, *((each.begin, each.end) for each in stays if each.translation is None))
    lowered = casing.lowered(sentence, means.source, kept)
    untitled = None if lowered else casing.untitled(sentence, means.source, kept)
    drafts = [Draft.of(text, sentence, kept) for text in (lowered or sentence, *([untitled] if untitled else []))]
    answers = yield from _ask(drafts, _LOOSE, means, means.options)
    answer = max(answers, key=lambda each: each.best.score)
    left_out = _LOOSE
    if protect.lost([span for span in answer.spans if span.kind in _COPIED], answer.best.text):
        left_out |= _COPIED
        answer = next(iter((yield from _ask([answer.draft], left_out, means, means.options))), answer)
    if not means.options.sample:
        answer = yield from _out_of_circles(answer, left_out, means)
    found = yield from _restored(answer, means)
    if not means.options.sample and repetition.too_short(answer.draft.text, found[0].text):
        found = yield from _in_halves(answer.draft, found, means)
    if means.terms.glossary:
        found = yield from _with_terms(answer, found, bool(lowered or untitled), means)
    if lowered:
        found = tuple(replace(each, text=casing.raised(each.text, sentence, means.target, kept)) for each in found)
    return found


def plainly(sentence: str, means: Means) -> Steps:
    """The n-best list of a sentence as the model gives it."""
    results: list[Result] = yield [means.request(sentence, means.options)]
    return tuple(map(means.alternative, results[0].hypotheses))


def worthless(sentence: str, kept: Sequence[Range] = ()) -> bool:
    """Whether a sentence is all numbers, addresses and the like: there is nothing to translate in it."""
    spans = protect.find(sentence, kept)
    return bool(spans) and not any(map(str.isalnum, protect.without(sentence, spans).text))


def _ask(drafts: Sequence[Draft], left_out: frozenset[Kind], means: Means, options: SearchOptions) -> Asking:
    """The answers; fewer than drafts where the model fails on one."""
    spans = [protect.find(draft.text, draft.kept) for draft in drafts]
    cuts = [
        protect.without(draft.text, [span for span in found if span.kind in left_out])
        for draft, found in zip(drafts, spans, strict=True)
    ]
    requests = [means.request(cut.text, options) for cut in cuts]
    results: list[Result] = yield requests
    return [
        _answer(draft, found, cut, request, result, means)
        for draft, found, cut, request, result in zip(drafts, spans, cuts, requests, results, strict=True)
        if result.hypotheses
    ]


def _answer(draft: Draft, spans: tuple[Span, ...], cut: Cut, request: Request, result: Result, means: Means) -> Answer:
    tokens = tuple(hypothesis.tokens for hypothesis in result.hypotheses)
    return Answer(draft, spans, cut, request, tuple(map(means.alternative, result.hypotheses)), tokens)


def _out_of_circles(answer: Answer, left_out: frozenset[Kind], means: Means) -> Generator[Asked, Any, Answer]:
    """Ask again, without repetition, for a translation that goes in circles or ran into its longest length."""
    options = answer.request.options
    if options.no_repeat_ngram or not _endless(answer, means):
        return answer
    again = yield from _ask([answer.draft], left_out, means, replace(options, no_repeat_ngram=NO_REPEAT))
    return min([*again, answer], key=lambda each: (_endless(each, means), len(each.best.text)))


def _endless(answer: Answer, means: Means) -> bool:
    options, length = answer.request.options, len(answer.request.source)
    longest = options.longest(length)
    ran_on = longest < options.max_length and len(answer.best.pieces) + 1 >= longest
    return ran_on or repetition.looping(means.pieces(answer.request.source), answer.best.pieces)


def _in_halves(draft: Draft, whole: tuple[Alternative, ...], means: Means) -> Steps:
    """A translation far too short once more, in parts; it stays if they do not make a longer one."""
    text = draft.text
    pieces = segment.split_long(text, lambda part: len(part) <= max(1, len(text) * 2 // 3))
    shares = shared(draft.kept, [piece.text for piece in pieces])
    parts = [Draft(piece.text, own) for piece, own in zip(pieces, shares, strict=True) if not piece.kept]
    answers = (yield from _ask(parts, _LOOSE | _COPIED, means, means.options)) if len(parts) > 1 else []
    if len(answers) < len(parts) or not answers:
        return whole
    lists = []
    for answer in answers:
        lists.append((yield from _restored(answer, means)))
    found = []
    for rank in range(max(map(len, lists))):
        chosen = [each[min(rank, len(each) - 1)] for each in lists]
        together = segment.join(pieces, [each.text for each in chosen], means.source, means.target)
        found.append(joined(protect.complete(together, protect.find(text, draft.kept)), chosen))
    return tuple(found) if repetition.width(found[0].text) > repetition.width(whole[0].text) else whole


def shared(ranges: Iterable[Range], parts: Sequence[str]) -> list[tuple[Range, ...]]:
    """What of these ranges of a text lies in each of its parts, counted from where the part begins."""
    shares: list[list[Range]] = [[] for _ in parts]
    ends = list(accumulate(map(len, parts)))
    for begin, end in ranges:
        for number in range(bisect_right(ends, begin), len(parts)):
            place = ends[number] - len(parts[number])
            if place >= end:
                break
            own = max(begin, place) - place, min(end, ends[number]) - place
            if own[0] < own[1]:
                shares[number].append(own)
    return list(map(tuple, shares))


def _with_terms(answer: Answer, found: tuple[Alternative, ...], any_case: bool, means: Means) -> Steps:
    """The n-best list with all terms in it: as it is, searched for once more, or with terms put in."""
    taken = [(span.begin, span.end) for span in protect.within(answer.cut.text, answer.spans)]
    terms = means.terms.find(answer.cut.text, means.source, taken, any_case)
    wanted = [term for term in terms if term.translation is not None]
    missing = lacking(wanted, found[0].text, means.target)
    if not missing:
        return _holding(wanted, found, means) if wanted else found
    links = yield from _links(answer, means)
    avoided = displaced(missing, links, means.target)
    better: list[tuple[int, float, tuple[Alternative, ...]]] = []
    for _ in range(ROUNDS):
        results: list[Result] = yield [_worded(answer, needs(wanted, avoided, links, means.target), avoided, means)]
        if not results[0].hypotheses:
            break
        again = _answer(answer.draft, answer.spans, answer.cut, answer.request, results[0], means)
        longer = len(again.best.text.split()) > len(answer.best.text.split())
        twice = doubled(missing, (yield from _links(again, means)), means.target) if longer else {}
        written = _holding(wanted, (yield from _restored(again, means)), means)
        if written and not _endless(again, means):
            better.append((sum(map(len, twice.values())), -again.best.score, written))
        if not twice:
            break
        avoided = {key: [*avoided.get(key, ()), *twice.get(key, ())] for key in {**avoided, **twice}}
    if better:
        return min(better, key=lambda each: each[:2])[2]
    return tuple(
        replace(each, text=substituted(wanted, each.text, links, means.target) if rank == 0 else each.text)
        for rank, each in enumerate(found)
        if rank == 0 or not lacking(wanted, each.text, means.target)
    )


def _worded(answer: Answer, needed: Sequence[Needed], avoided: Mapping[str, Sequence[str]], means: Means) -> Request:
    """The same sentence asked for with these terms and without the words that they displace."""
    speller, asked = means.speller(), means.options
    beams = max(BEAMS, 1 if asked.sample else asked.beam_size)
    length = sum(each.times * speller.length(each.translation) for each in needed)
    options = SearchOptions(
        beam_size=beams,
        n_best=min(asked.n_best, beams),
        length_penalty=asked.length_penalty,
        normalization=asked.normalization,
        max_length_factor=asked.max_length_factor,
        max_length_offset=asked.max_length_offset + length,
        max_length=asked.max_length,
        min_length_factor=asked.min_length_factor,
        min_length=asked.min_length,
        no_repeat_ngram=asked.no_repeat_ngram,
        repetition_penalty=asked.repetition_penalty,
    )
    words = dict.fromkeys(chain.from_iterable(avoided.values()))
    wording = speller.wording(needed, words, means.target, len(answer.best.pieces) + length)
    return replace(means.request(answer.cut.text, options), wording=wording)


def _holding(wanted: Sequence[Found], found: Iterable[Alternative], means: Means) -> tuple[Alternative, ...]:
    return tuple(each for each in found if not lacking(wanted, each.text, means.target))


def _links(answer: Answer, means: Means) -> Generator[Asked, Any, Links]:
    """How the words of the best translation match those that it was asked for."""
    (attention,) = yield from _attention(answer, [0], means)
    return Links(answer.cut.text, answer.best.text, attention)


def _restored(answer: Answer, means: Means) -> Steps:
    """The alternatives with everything in them that must come back whole."""
    cut, spans = answer.cut, answer.spans
    torn = [
        rank for rank, each in enumerate(answer.written) if spans and (cut.stretches or protect.lost(spans, each.text))
    ]
    found = list(answer.written)
    for rank, attention in zip(torn, (yield from _attention(answer, torn, means)), strict=True):
        found[rank] = replace(found[rank], text=protect.restore(cut, spans, found[rank].text, attention))
    return tuple(found)


def _attention(answer: Answer, ranks: Sequence[int], means: Means) -> Generator[Asked, Any, list[Attention]]:
    """What these of the alternatives look at, as the model wrote them."""
    if not ranks:
        return []
    source = answer.request.source
    weights: list[Weights] = yield Looks(tuple((source, answer.tokens[rank]) for rank in ranks))
    tagged = means.tagged
    own = begins_of(means.pieces(source)[tagged:-1], SPACE_MARK)
    return [
        Attention(own, begins_of(answer.written[rank].pieces, SPACE_MARK), [row[tagged:] for row in rows])
        for rank, rows in zip(ranks, weights, strict=True)
    ]
