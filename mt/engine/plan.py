"""What becomes of a text: the sentences that the engine is asked for, and the translation that their results make."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

from mt.checkpoint import Confidence
from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.engine.attention import Weights
from mt.engine.confidence import expected_quality
from mt.engine.insight import Look, Sight
from mt.engine.messages import Request, Result
from mt.engine.results import Alternative, Failure, SentenceTranslation, Translation
from mt.engine.sentence import Asked, Looks, Means, Steps, joined, plainly, shared, translate, worthless
from mt.engine.spelling import Speller
from mt.errors import RequestError
from mt.text import protect, segment
from mt.text.linking import Range
from mt.text.segment import Piece
from mt.text.terms import Terms
from mt.tokenizer import EOS, Tokenizer

Choose = Callable[[tuple[Alternative, ...]], tuple[Alternative, ...]]
"""What becomes of a sentence's n-best list: at least one of it, the best first."""


@dataclass(eq=False)
class Sentence:
    """A sentence of a plan: the steps that it takes, and the requests that it waits for."""

    source: str
    steps: Steps
    waits: list[Request] = field(default_factory=list)
    results: dict[int, Result] = field(default_factory=dict)
    asked: int = 0  # times
    found: tuple[Alternative, ...] = ()
    seen: Sight = field(default_factory=Sight)


@dataclass(eq=False)
class Plan:
    """A text on its way through the engine: `requests` ask for its sentences, in order; `take` their results.

    A sentence whose translation will not do asks again: `take` returns what is to be submitted then, and `requests` has
    it, too. What sentences need to see of their translations is in `looks`, and to be handed to `see`.
    """

    text: str
    planner: "Planner"
    pieces: list[Piece]
    requests: list[Request]
    problem: str = ""  # why there will be no translation
    _sentences: list[Sentence] = field(default_factory=list)
    looks: deque[tuple[Sentence, Looks]] = field(default_factory=deque)
    _waiting: dict[int, Sentence] = field(default_factory=dict)  # by request
    _left: int = 0  # sentences without their translation

    @property
    def done(self) -> bool:
        return bool(self.problem) or not self._left

    def add(self, piece: Piece, kept: Sequence[Range] = ()) -> None:
        """One more piece at the end, before any result is taken; of a sentence, these characters stay as they are."""
        self.pieces.append(piece)
        if not piece.kept:
            steps = self.planner.steps(piece.text, kept)
            sentence = Sentence(piece.text, steps)
            self._sentences.append(sentence)
            self._left += 1
            self._ask(sentence, next(steps))

    def take(self, result: Result) -> list[Request]:
        """The result of one of the requests; what is to be asked now."""
        sentence = self._waiting.pop(result.id)
        sentence.results[result.id] = result
        if result.problem and sentence.asked == 1:
            self._fail(sentence, result.problem)
        if self.problem or len(sentence.results) < len(sentence.waits):
            return []
        return self._go_on(sentence, [sentence.results.pop(request.id) for request in sentence.waits])

    def see(self, sentence: Sentence, seen: Sequence[Weights] | Exception) -> list[Request]:
        """What one of the `looks` brought; what is to be asked now."""
        if isinstance(seen, Exception):
            self._fail(sentence, f"{type(seen).__name__}: {seen}")
        return self._go_on(sentence, seen) if not self.problem and not isinstance(seen, Exception) else []

    def translation(self) -> Translation:
        """What the results make. Raises RequestError if one of them is a problem."""
        assert self.done
        if self.problem:
            raise RequestError(self.problem)
        planner, best = self.planner, [each.found[0] for each in self._sentences]
        here = segment.places(self.pieces)
        there = segment.joined_places(self.pieces, [each.text for each in best], planner.source, planner.target)
        sentences = tuple(
            SentenceTranslation(
                each.source,
                first.text,
                first.score,
                each.found,
                source_range=source,
                target_range=target,
                confidence=planner.confidence_in(first),
                links=tuple((_moved(a, source[0]), _moved(b, target[0])) for a, b in each.seen.links),
                attention=each.seen.attention,
            )
            for each, first, source, target in zip(self._sentences, best, here, there, strict=True)
        )
        ranks = max((len(sentence.alternatives) for sentence in sentences), default=1)
        alternatives = tuple(self._joined(sentences, rank) for rank in range(ranks))
        return Translation(alternatives[0].text, alternatives[0].score, alternatives, sentences)

    def outcome(self) -> Translation | Failure:
        """The translation, or why there is none."""
        try:
            return self.translation()
        except RequestError as error:
            return Failure(self.text, str(error))

    def _go_on(self, sentence: Sentence, told: Sequence[Result] | Sequence[Weights]) -> list[Request]:
        """With what it asked for; what it asks the engine now."""
        try:
            asked = sentence.steps.send(told)
        except StopIteration as stop:
            sentence.found = self.planner.choose(stop.value)
            self._left -= 1
        except Exception as error:  # whatever a model can raise concerns this text alone
            self._fail(sentence, f"{type(error).__name__}: {error}")
        else:
            return self._ask(sentence, asked)
        if self.done and not self.problem:
            self._observe()
        return []

    def _ask(self, sentence: Sentence, asked: Asked) -> list[Request]:
        if isinstance(asked, Looks):
            self.looks.append((sentence, asked))
            return []
        sentence.asked += 1
        sentence.waits = asked
        self.requests.extend(asked)
        self._waiting.update((request.id, sentence) for request in asked)
        return asked

    def _observe(self) -> None:
        """What is to be seen of all sentences, in one go."""
        if self.planner.look is None or not self._sentences:
            return
        try:
            seen = self.planner.look([(each.source, each.found[0]) for each in self._sentences])
        except Exception as error:  # as in `take`
            self._fail(self._sentences[0], f"{type(error).__name__}: {error}")
            return
        for sentence, sight in zip(self._sentences, seen, strict=True):
            sentence.seen = sight

    def _fail(self, sentence: Sentence, problem: str) -> None:
        if not self.problem:
            self.problem = f"the text that begins {sentence.source[:40]!r} cannot be translated: {problem}"

    def _joined(self, sentences: tuple[SentenceTranslation, ...], rank: int) -> Alternative:
        chosen = [each.alternatives[min(rank, len(each.alternatives) - 1)] for each in sentences]
        planner = self.planner
        return joined(segment.join(self.pieces, [each.text for each in chosen], planner.source, planner.target), chosen)


@dataclass(frozen=True)
class Planner:
    """Plans texts of one direction and with one search: the edge where text becomes ids and ids become text."""

    tokenizer: Tokenizer
    ids: Iterator[int]  # of requests: no two in an engine are the same
    source: str  # language; empty where the model was not told it
    target: str
    tag: tuple[int, ...]  # what a source begins with
    longest: int  # tokens of a source, tag and EOS included
    options: SearchOptions
    sentences: bool  # whether each text is one sentence
    caller: int  # whose turn it is
    whole: bool  # whether spans and capitals are seen to, and translations that will not do asked for again
    terms: Terms = field(default_factory=Terms)
    spell: Callable[[Tokenizer], Speller] = Speller
    look: Look | None = None  # at translations, where somebody wants to know more of them
    confidence: Confidence | None = None
    choose: Choose = tuple

    def plan(self, text: str, kept: Sequence[Range] = ()) -> Plan:
        """A text cut into sentences that are short enough for the model, each of them encoded.

        The characters in the ranges `kept` come back as they are.
        """
        text = text if text.isascii() else text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        plan = Plan(text, self, [], [])
        pieces = list(_unparted(segment.whole(text) if self.sentences else segment.split(text, self.source), kept))
        for piece, own in zip(pieces, shared(kept, [each.text for each in pieces]), strict=True):
            for part, share in self._parts(piece, own):
                plan.add(part, share)
        return plan

    def attempt(self, text: str) -> Plan:
        """`plan`, where one text must not be the end of all: what it raises becomes the problem of this text."""
        try:
            return self.plan(text)
        except Exception as error:  # whatever a tokenizer can raise
            return Plan(text, self, [], [], f"{type(error).__name__}: {error}")

    def encode(self, sentence: str) -> tuple[int, ...]:
        """The ids of a sentence with its tag and EOS."""
        return (*self.tag, *self.tokenizer.encode(sentence), EOS)

    def alternative(self, hypothesis: Hypothesis) -> Alternative:
        """A hypothesis in text, which is one line."""
        return Alternative(
            text=" ".join(self.tokenizer.target.decode(hypothesis.tokens).splitlines()),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            pieces=tuple(self.tokenizer.target.pieces(hypothesis.tokens)),
            piece_log_probabilities=hypothesis.token_log_probabilities,
        )

    def confidence_in(self, alternative: Alternative) -> float | None:
        """How good it is likely to be; None if the model was not fitted to tell, or the model did not write it."""
        written = alternative.piece_log_probabilities
        return expected_quality(self.confidence, written) if self.confidence and written else None

    def steps(self, sentence: str, kept: Sequence[Range] = ()) -> Steps:
        """The way of a sentence that fits. To what a user decides on, it is always seen."""
        asked = self.whole or bool(self.terms) or bool(kept)
        return translate(sentence, self._means, kept) if asked else plainly(sentence, self._means)

    @cached_property
    def _means(self) -> Means:
        return Means(
            request=self._request,
            alternative=self.alternative,
            pieces=self.tokenizer.pieces,
            tagged=len(self.tag),
            source=self.source,
            target=self.target,
            options=self.options,
            terms=self.terms,
            speller=lambda: self.spell(self.tokenizer.target),
        )

    def _request(self, text: str, options: SearchOptions) -> Request:
        source = self._encode(text)
        return Request(next(self.ids), source, options.of(source), caller=self.caller)

    def _parts(self, piece: Piece, kept: Sequence[Range]) -> Iterator[tuple[Piece, Sequence[Range]]]:
        """A sentence without what leads a list; if it is too long for the model, in parts. With each, what of it is
        to be kept."""
        lead = protect.lead(piece.text, self.source) if self.whole and not piece.kept else 0
        text = piece.text[lead:]
        _, kept = shared(kept, [piece.text[:lead], text])
        if lead:
            yield Piece(piece.text[:lead], kept=True), ()
        if piece.kept or ((self.whole or kept) and worthless(text, kept)):
            yield Piece(text, kept=True), ()
        elif self._fits(text):
            yield Piece(text, kept=False), kept
        else:
            parts = protect.apart(text, kept) if self.whole or kept else [text]
            for part, own in zip(parts, shared(kept, parts), strict=True):
                cut = [Piece(part, True)] if worthless(part, own) else segment.split_long(part, self._fits)
                yield from zip(cut, shared(own, [each.text for each in cut]), strict=True)

    def _fits(self, text: str) -> bool:
        return len(self._encode(text)) <= self.longest

    @cached_property
    def _encode(self) -> Callable[[str], tuple[int, ...]]:
        """`encode`, which need not do again what was done to see whether a sentence fits."""
        return lru_cache(maxsize=1)(self.encode)


def _unparted(pieces: Sequence[Piece], kept: Sequence[Range]) -> Iterator[Piece]:
    """The pieces of a text, those of them made one that a range which is to be kept has a part in."""
    ends = list(accumulate(len(piece.text) for piece in pieces))
    begins = sorted(first for first, _ in kept)
    reached = [0, *accumulate((last for _, last in sorted(kept)), max)]  # by the ranges up to one
    group: list[Piece] = []
    for piece, end in zip(pieces, ends, strict=True):
        group.append(piece)
        if reached[bisect_left(begins, end)] <= end:
            yield group[0] if len(group) == 1 else Piece("".join(each.text for each in group), False)
            group = []


def _moved(place: Range, by: int) -> Range:
    return place[0] + by, place[1] + by
