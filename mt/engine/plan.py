"""What becomes of a text: the sentences that the engine is asked for, and the translation that their results make."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.engine.messages import Request, Result
from mt.engine.sentence import Alternative, Attend, Means, Steps, joined, plainly, translate, worthless
from mt.errors import RequestError
from mt.text import protect, segment
from mt.text.segment import Piece
from mt.tokenizer import EOS, Tokenizer


@dataclass(frozen=True)
class SentenceTranslation:
    """A sentence of a text, or a part of one that was too long, without the white space around it."""

    source: str
    text: str
    score: float
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class Translation:
    """The best translation of a text, and the whole n-best list, of which it is the first.

    The n-th alternative of a text of several sentences puts together their n-th ones, or the last that one has.
    `sentences` leaves out those that hold nothing to translate.
    """

    text: str
    score: float
    alternatives: tuple[Alternative, ...]
    sentences: tuple[SentenceTranslation, ...]


@dataclass(frozen=True)
class Failure:
    """Stands in a stream for the translation of a text that the model fails on."""

    source: str
    problem: str


@dataclass(eq=False)
class _Sentence:
    """A sentence of a plan: the steps that it takes, and the requests that it waits for."""

    source: str
    steps: Steps
    waits: list[Request]
    results: dict[int, Result] = field(default_factory=dict)
    asked: int = 1  # times
    found: tuple[Alternative, ...] = ()


@dataclass(eq=False)
class Plan:
    """A text on its way through the engine: `requests` ask for its sentences, in order; `take` their results.

    A sentence whose translation will not do asks again: `take` returns what is to be submitted then, and `requests` has
    it, too.
    """

    text: str
    planner: "Planner"
    pieces: list[Piece]
    requests: list[Request]
    problem: str = ""  # why there will be no translation
    _sentences: list[_Sentence] = field(default_factory=list)
    _waiting: dict[int, _Sentence] = field(default_factory=dict)  # by request

    @property
    def done(self) -> bool:
        return bool(self.problem) or not self._waiting

    def add(self, piece: Piece) -> None:
        """One more piece at the end, before any result is taken."""
        self.pieces.append(piece)
        if not piece.kept:
            steps = self.planner.steps(piece.text)
            sentence = _Sentence(piece.text, steps, next(steps))
            self._sentences.append(sentence)
            self._wait(sentence)

    def take(self, result: Result) -> list[Request]:
        """The result of one of the requests; what is to be asked now."""
        sentence = self._waiting.pop(result.id)
        sentence.results[result.id] = result
        if result.problem and sentence.asked == 1:
            self._fail(sentence, result.problem)
        if self.problem or len(sentence.results) < len(sentence.waits):
            return []
        results = [sentence.results.pop(request.id) for request in sentence.waits]
        try:
            sentence.waits = sentence.steps.send(results)
        except StopIteration as stop:
            sentence.found = stop.value
            return []
        except Exception as error:  # whatever a model can raise concerns this text alone
            self._fail(sentence, f"{type(error).__name__}: {error}")
            return []
        sentence.asked += 1
        self._wait(sentence)
        return sentence.waits

    def translation(self) -> Translation:
        """What the results make. Raises RequestError if one of them is a problem."""
        assert self.done
        if self.problem:
            raise RequestError(self.problem)
        sentences = tuple(
            SentenceTranslation(each.source, each.found[0].text, each.found[0].score, each.found)
            for each in self._sentences
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

    def _wait(self, sentence: _Sentence) -> None:
        self.requests.extend(sentence.waits)
        self._waiting.update((request.id, sentence) for request in sentence.waits)

    def _fail(self, sentence: _Sentence, problem: str) -> None:
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
    attend: Attend
    whole: bool  # whether spans and capitals are seen to, and translations that will not do asked for again

    def plan(self, text: str) -> Plan:
        """A text cut into sentences that are short enough for the model, each of them encoded."""
        text = text if text.isascii() else text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        plan = Plan(text, self, [], [])
        for piece in segment.whole(text) if self.sentences else segment.split(text, self.source):
            for part in self._parts(piece):
                plan.add(part)
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
            text=" ".join(self.tokenizer.decode(hypothesis.tokens).splitlines()),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            pieces=tuple(self.tokenizer.pieces(hypothesis.tokens)),
            piece_log_probabilities=hypothesis.token_log_probabilities,
        )

    def steps(self, sentence: str) -> Steps:
        """The way of a sentence that fits."""
        return translate(sentence, self._means) if self.whole else plainly(sentence, self._means)

    @cached_property
    def _means(self) -> Means:
        return Means(
            request=lambda text, options: Request(next(self.ids), self._encode(text), options, caller=self.caller),
            alternative=self.alternative,
            pieces=self.tokenizer.pieces,
            attend=self.attend,
            tagged=len(self.tag),
            source=self.source,
            target=self.target,
            options=self.options,
        )

    def _parts(self, piece: Piece) -> Iterator[Piece]:
        """A sentence without what leads a list; if it is too long for the model, in parts."""
        lead = protect.lead(piece.text, self.source) if self.whole and not piece.kept else 0
        text = piece.text[lead:]
        if lead:
            yield Piece(piece.text[:lead], kept=True)
        if piece.kept or (self.whole and worthless(text)):
            yield Piece(text, kept=True)
        elif self._fits(text):
            yield Piece(text, kept=False)
        else:
            for part in protect.apart(text) if self.whole else [text]:
                yield from [Piece(part, True)] if worthless(part) else segment.split_long(part, self._fits)

    def _fits(self, text: str) -> bool:
        return len(self._encode(text)) <= self.longest

    @cached_property
    def _encode(self) -> Callable[[str], tuple[int, ...]]:
        """`encode`, which need not do again what was done to see whether a sentence fits."""
        return lru_cache(maxsize=1)(self.encode)
