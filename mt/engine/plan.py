"""What becomes of a text: the sentences that the engine is asked for, and the translation that their results make."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.engine.messages import Request, Result
from mt.errors import RequestError
from mt.text import segment
from mt.text.segment import Piece
from mt.tokenizer import EOS, Tokenizer


@dataclass(frozen=True)
class Alternative:
    """One translation of an n-best list; `score` is its log-probability divided by the length penalty.

    That of a text of several sentences puts theirs together: the sum of their log-probabilities, the mean of their
    scores weighted by tokens, and their pieces one after another.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[str, ...]
    piece_log_probabilities: tuple[float, ...]  # one a piece, and a last one for the end; of each sentence


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
class Plan:
    """A text on its way through the engine: `requests` ask for its sentences, in order; `take` their results."""

    text: str
    planner: "Planner"
    pieces: list[Piece]
    requests: list[Request]
    problem: str = ""  # why there will be no translation
    _results: dict[int, Result] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return bool(self.problem) or len(self._results) == len(self.requests)

    def take(self, result: Result) -> None:
        """The result of one of the requests."""
        self._results[result.id] = result
        if result.problem and not self.problem:
            place = [request.id for request in self.requests].index(result.id)
            sentence = [piece.text for piece in self.pieces if not piece.kept][place]
            self.problem = f"the text that begins {sentence[:40]!r} cannot be translated: {result.problem}"

    def translation(self) -> Translation:
        """What the results make. Raises RequestError if one of them is a problem."""
        assert self.done
        if self.problem:
            raise RequestError(self.problem)
        sources = (piece.text for piece in self.pieces if not piece.kept)
        sentences = tuple(
            self._sentence(source, self._results[request.id])
            for source, request in zip(sources, self.requests, strict=True)
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

    def _sentence(self, source: str, result: Result) -> SentenceTranslation:
        alternatives = tuple(map(self.planner.alternative, result.hypotheses))
        return SentenceTranslation(source, alternatives[0].text, alternatives[0].score, alternatives)

    def _joined(self, sentences: tuple[SentenceTranslation, ...], rank: int) -> Alternative:
        chosen = [each.alternatives[min(rank, len(each.alternatives) - 1)] for each in sentences]
        tokens = [len(each.piece_log_probabilities) for each in chosen]
        weighted = sum(each.score * count for each, count in zip(chosen, tokens, strict=True))
        planner = self.planner
        return Alternative(
            text=segment.join(self.pieces, [each.text for each in chosen], planner.source, planner.target),
            score=chosen[0].score if len(chosen) == 1 else weighted / max(1, sum(tokens)),
            log_probability=sum((each.log_probability for each in chosen), 0.0),
            pieces=tuple(chain.from_iterable(each.pieces for each in chosen)),
            piece_log_probabilities=tuple(chain.from_iterable(each.piece_log_probabilities for each in chosen)),
        )


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

    def plan(self, text: str) -> Plan:
        """A text cut into sentences that are short enough for the model, each of them encoded."""
        text = text if text.isascii() else text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        plan = Plan(text, self, [], [])
        for piece in segment.whole(text) if self.sentences else segment.split(text, self.source):
            ids = () if piece.kept else self.encode(piece.text)
            if len(ids) <= self.longest:
                self._add(plan, piece, ids)
                continue
            for part in segment.split_long(piece.text, lambda part: len(self.encode(part)) <= self.longest):
                self._add(plan, part, () if part.kept else self.encode(part.text))
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

    def _add(self, plan: Plan, piece: Piece, ids: tuple[int, ...]) -> None:
        plan.pieces.append(piece)
        if not piece.kept:
            plan.requests.append(Request(next(self.ids), ids, self.options, caller=self.caller))
