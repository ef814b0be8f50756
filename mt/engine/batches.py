"""Sentences in flight that share a step: the seam behind which they run in plain torch, compiled, or as graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import torch

from mt.decoding.rows import Hypothesis, Search
from mt.decoding.scorer import Scorer, State
from mt.decoding.search import start_search, steps_between_looks
from mt.decoding.wording import WordedSearch
from mt.engine.messages import Request
from mt.engine.scheduler import Kind


class Batch(Protocol):
    """Sentences of one kind, each at its own step; closed under joining and leaving. A place is an index into it."""

    def advance(self) -> list[int]:
        """One token for every row; places of sentences that are finished, at the latest some steps after they are.

        A finished sentence may be named again; it stays where it is until `select` leaves it out.
        """

    def results(self, places: Sequence[int]) -> list[list[Hypothesis]]:
        """The hypotheses of these finished sentences, best first; none where scores were not numbers."""

    def select(self, places: Sequence[int]) -> None:
        """Keep these sentences, in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of another batch of the same kind, which is used up."""


AnyBatch = TypeVar("AnyBatch", bound=Batch, covariant=True)


class Decoder(Protocol[AnyBatch]):
    """Begins batches over one model."""

    def kind(self, request: Request) -> Kind:
        """Requests of one kind can share a batch."""

    def begin(self, requests: Sequence[Request]) -> AnyBatch:
        """A batch of requests of one kind, encoded. Raises RequestError for a prefix that cannot be used."""


@dataclass
class SearchBatch(Generic[State]):
    """A search over a scorer, on any device: the plain path, to which all others are equal."""

    scorer: Scorer[State]
    search: Search
    state: State
    steps: int = 0  # since the last look at who is finished

    @torch.inference_mode()
    def advance(self) -> list[int]:
        rows = self.search.advance(self.scorer.step(self.state, self.search.tokens))
        if rows is not None:
            self.state.reorder(rows)
        self.steps += 1
        if self.steps % steps_between_looks(self.scorer.device):
            return []
        return [place for place, finished in enumerate(self.search.finished.tolist()) if finished]

    def results(self, places: Sequence[int]) -> list[list[Hypothesis]]:
        return self.search.results(places)

    @torch.inference_mode()
    def select(self, places: Sequence[int]) -> None:
        keep = torch.tensor(places, dtype=torch.int64, device=self.scorer.device)
        self.search.select(keep)
        self.state.select(keep)

    @torch.inference_mode()
    def extend(self, other: Self) -> None:
        self.search.extend(other.search)
        self.state.extend(other.state)


@dataclass(frozen=True)
class SearchDecoder(Generic[State]):
    """Begins batches of the plain path."""

    scorer: Scorer[State]

    def kind(self, request: Request) -> Kind:
        return Kind.of(request)

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> SearchBatch[State]:
        sources = [request.source for request in requests]
        lengths, options = [len(source) for source in sources], [request.options for request in requests]
        wordings = [request.wording for request in requests if request.wording is not None]
        search: Search
        if wordings:
            search = WordedSearch.start(lengths, options, wordings, self.scorer.special, self.scorer.device)
        else:
            prefixes = [request.prefix for request in requests]
            search = start_search(lengths, options, prefixes, self.scorer.special, self.scorer.device)
        return SearchBatch(self.scorer, search, self.scorer.start(sources, requests[0].options.rows))
