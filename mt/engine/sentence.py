"""One sentence on its way: what the model is asked, and what it is asked again where its answer will not do."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.engine.messages import Request, Result
from mt.text import casing, protect, repetition, segment
from mt.text.linking import Attention, begins_of
from mt.text.protect import Cut, Kind, Span
from mt.tokenizer import SPACE_MARK

NO_REPEAT = 3  # pieces in a row that must not come twice where a translation went in circles

_LOOSE = frozenset({Kind.EMOJI})
_COPIED = frozenset({Kind.OPAQUE, Kind.TAG})  # stay in the sentence only if the model copies them


@dataclass(frozen=True)
class Alternative:
    """One translation of an n-best list; `score` is its log-probability divided by the length penalty.

    That of a text of several sentences puts theirs together: the sum of their log-probabilities, the mean of their
    scores weighted by tokens, and their pieces one after another. The pieces are those that the model wrote: `text` may
    also hold what was left out of its source, and be in capitals.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[str, ...]
    piece_log_probabilities: tuple[float, ...]  # one a piece, and a last one for the end; of each sentence


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


Attend = Callable[[Sequence[int], Sequence[int]], list[list[float]]]
"""Of a source with tag and EOS, and a bare translation: weights [T][S] on the source without these."""


@dataclass(frozen=True)
class Means:
    """What sentences are translated with: text to requests, hypotheses to text, and what a translation looks at."""

    request: Callable[[str, SearchOptions], Request]
    alternative: Callable[[Hypothesis], Alternative]
    pieces: Callable[[Sequence[int]], list[str]]
    attend: Attend
    tagged: int  # ids of a request's source before the sentence's own
    source: str  # language
    target: str
    options: SearchOptions


Steps = Generator[list[Request], list[Result], tuple[Alternative, ...]]
"""Asks for sentences, any number at a time, and is sent their results, in order; the n-best list is what it returns."""


@dataclass(frozen=True)
class Answer:
    """What came of a question: `cut.text` is what was to be translated, `spans` are those of the whole sentence."""

    spans: tuple[Span, ...]
    cut: Cut
    request: Request
    written: tuple[Alternative, ...]  # as the model wrote them
    tokens: tuple[tuple[int, ...], ...]

    @property
    def best(self) -> Alternative:
        return self.written[0]


Asking = Generator[list[Request], list[Result], list[Answer]]


def translate(sentence: str, means: Means) -> Steps:
    """The n-best list of a sentence whose spans come back whole.

    A sentence without spans, in ordinary letters, whose translation is sound, is asked for once, as it is. A headline
    is asked for in both cases, and what the model holds the more probable is taken: small letters would spoil names.
    """
    lowered = casing.lowered(sentence, means.source)
    untitled = None if lowered else casing.untitled(sentence, means.source)
    texts = [lowered or sentence, *([untitled] if untitled else [])]
    answers = yield from _ask(texts, _LOOSE, means, means.options)
    best = max(range(len(answers)), key=lambda number: answers[number].best.score)
    text, answer = texts[best], answers[best]
    left_out = _LOOSE
    if protect.lost([span for span in answer.spans if span.kind in _COPIED], answer.best.text):
        left_out |= _COPIED
        answer = next(iter((yield from _ask([text], left_out, means, means.options))), answer)
    if not means.options.sample:
        answer = yield from _out_of_circles(text, answer, left_out, means)
    found = _restored(answer, means)
    if not means.options.sample and repetition.too_short(text, found[0].text):
        found = yield from _in_halves(text, found, means)
    if lowered:
        found = tuple(replace(each, text=casing.raised(each.text, sentence, means.target)) for each in found)
    return found


def plainly(sentence: str, means: Means) -> Steps:
    """The n-best list of a sentence as the model gives it."""
    (result,) = yield [means.request(sentence, means.options)]
    return tuple(map(means.alternative, result.hypotheses))


def worthless(sentence: str) -> bool:
    """Whether a sentence is all numbers, addresses and the like: there is nothing to translate in it."""
    spans = protect.find(sentence)
    return bool(spans) and not any(map(str.isalnum, protect.without(sentence, spans).text))


def _ask(texts: Sequence[str], left_out: frozenset[Kind], means: Means, options: SearchOptions) -> Asking:
    """The answers; fewer than texts where the model fails on one."""
    spans = [protect.find(text) for text in texts]
    cuts = [
        protect.without(text, [span for span in found if span.kind in left_out])
        for text, found in zip(texts, spans, strict=True)
    ]
    requests = [means.request(cut.text, options) for cut in cuts]
    results = yield requests
    return [
        Answer(
            found,
            cut,
            request,
            tuple(map(means.alternative, result.hypotheses)),
            tuple(hypothesis.tokens for hypothesis in result.hypotheses),
        )
        for found, cut, request, result in zip(spans, cuts, requests, results, strict=True)
        if result.hypotheses
    ]


def _out_of_circles(
    text: str, answer: Answer, left_out: frozenset[Kind], means: Means
) -> Generator[list[Request], list[Result], Answer]:
    """Ask again, without repetition, for a translation that goes in circles or ran into its longest length."""
    options = answer.request.options
    if options.no_repeat_ngram or not _endless(answer, means):
        return answer
    again = yield from _ask([text], left_out, means, replace(options, no_repeat_ngram=NO_REPEAT))
    return min([*again, answer], key=lambda each: (_endless(each, means), len(each.best.text)))


def _endless(answer: Answer, means: Means) -> bool:
    options, length = answer.request.options, len(answer.request.source)
    longest = options.longest(length)
    ran_on = longest < options.max_length and len(answer.best.pieces) + 1 >= longest
    return ran_on or repetition.looping(means.pieces(answer.request.source), answer.best.pieces)


def _in_halves(text: str, whole: tuple[Alternative, ...], means: Means) -> Steps:
    """A translation far too short once more, in parts; it stays if they do not make a longer one."""
    pieces = segment.split_long(text, lambda part: len(part) <= max(1, len(text) * 2 // 3))
    parts = [piece.text for piece in pieces if not piece.kept]
    answers = (yield from _ask(parts, _LOOSE | _COPIED, means, means.options)) if len(parts) > 1 else []
    if len(answers) < len(parts) or not answers:
        return whole
    lists = [_restored(answer, means) for answer in answers]
    found = []
    for rank in range(max(map(len, lists))):
        chosen = [each[min(rank, len(each) - 1)] for each in lists]
        together = segment.join(pieces, [each.text for each in chosen], means.source, means.target)
        found.append(joined(protect.complete(together, protect.find(text)), chosen))
    return tuple(found) if repetition.width(found[0].text) > repetition.width(whole[0].text) else whole


def _restored(answer: Answer, means: Means) -> tuple[Alternative, ...]:
    """The alternatives with everything in them that must come back whole."""
    if not answer.spans:
        return answer.written
    return tuple(
        replace(each, text=_restored_text(answer, each, tokens, means))
        for each, tokens in zip(answer.written, answer.tokens, strict=True)
    )


def _restored_text(answer: Answer, alternative: Alternative, tokens: tuple[int, ...], means: Means) -> str:
    if not answer.cut.stretches and not protect.lost(answer.spans, alternative.text):
        return alternative.text
    own = means.pieces(answer.request.source)[means.tagged : -1]
    weights = means.attend(answer.request.source, tokens)
    attention = Attention(begins_of(own, SPACE_MARK), begins_of(alternative.pieces, SPACE_MARK), weights)
    return protect.restore(answer.cut, answer.spans, alternative.text, attention)
