"""The sentences in flight: encode new ones, one decoder step for all, hand out the finished, close the gaps."""

from collections.abc import Collection, Sequence
from typing import Generic

import torch

from mt.decoding.rows import Search
from mt.decoding.scorer import Scorer, State
from mt.decoding.search import start_search, steps_between_looks
from mt.engine.messages import Request, Result


class Runner(Generic[State]):
    """A batch of one kind of requests, at different steps; closed under joining and leaving."""

    def __init__(self, scorer: Scorer[State]) -> None:
        self.scorer = scorer
        self._requests: list[Request | None] = []  # by sentence; None once it has been answered
        self._search: Search | None = None
        self._state: State | None = None
        self._look_every = steps_between_looks(scorer.device)
        self._steps = 0  # since the last look at who is finished

    def clear(self) -> list[Request]:
        """Drop everything; returns the requests that were running."""
        dropped = self.requests
        self._requests, self._search, self._state = [], None, None
        return dropped

    @property
    def requests(self) -> list[Request]:
        """Those in flight."""
        return [request for request in self._requests if request is not None]

    @torch.inference_mode()
    def join(self, requests: Sequence[Request]) -> None:
        """Encode these and let them decode with those in flight, which must be of the same kind."""
        sources = [request.source for request in requests]
        search = start_search(
            [len(source) for source in sources],
            [request.options for request in requests],
            [request.prefix for request in requests],
            self.scorer.special,
            self.scorer.device,
        )
        state = self.scorer.start(sources, requests[0].options.rows)
        self._compact(least=1)
        if self._search is None or self._state is None:
            self._search, self._state = search, state
        else:
            self._search.extend(search)
            self._state.extend(state)
        self._requests.extend(requests)

    @torch.inference_mode()
    def step(self) -> list[Result]:
        """One token for every row; the results of the sentences that it finished."""
        assert self._search is not None and self._state is not None
        rows = self._search.advance(self.scorer.step(self._state, self._search.tokens))
        if rows is not None:
            self._state.reorder(rows)
        self._steps += 1
        if self._steps % self._look_every:
            return []
        done = [
            place
            for place, finished in enumerate(self._search.finished.tolist())
            if finished and self._requests[place] is not None
        ]
        if not done:
            return []
        results = []
        for place, hypotheses in zip(done, self._search.results(done), strict=True):
            request = self._requests[place]
            assert request is not None
            problem = "" if hypotheses else "the model's scores are not numbers, or the search left it no way on"
            results.append(Result(request.id, tuple(hypotheses), problem))
            self._requests[place] = None
        self._compact(least=len(self._requests) // 4)
        return results

    def drop(self, request_ids: Collection[int]) -> None:
        """Stop working on these requests, as far as they are in flight."""
        self._requests = [
            None if request is None or request.id in request_ids else request for request in self._requests
        ]
        self._compact(least=1)

    @torch.inference_mode()
    def _compact(self, least: int) -> None:
        """Close the gaps that answered sentences left, if there are at least so many."""
        left = [place for place, request in enumerate(self._requests) if request is not None]
        gaps = len(self._requests) - len(left)
        if not left:
            self.clear()
        elif gaps >= max(1, least):
            assert self._search is not None and self._state is not None
            keep = torch.tensor(left, device=self.scorer.device)
            self._search.select(keep)
            self._state.select(keep)
            self._requests = [self._requests[place] for place in left]
