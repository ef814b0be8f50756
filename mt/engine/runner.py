"""The sentences in flight: let new ones join, one decoder step for all, hand out the finished, close the gaps."""

from collections.abc import Collection, Sequence

from mt.engine.batches import Batch, Decoder
from mt.engine.messages import Request, Result
from mt.engine.scheduler import Kind

NO_RESULT = "the model's scores are not numbers, or the search left it no way on"


class Runner:
    """A batch of one kind of requests, at different steps."""

    def __init__(self, decoder: Decoder[Batch]) -> None:
        self.decoder = decoder
        self.kind: Kind | None = None  # of those in flight
        self.count = 0  # of those in flight
        self._requests: list[Request | None] = []  # by place; None once it has been answered
        self._batch: Batch | None = None

    def clear(self) -> list[Request]:
        """Drop everything; returns the requests that were running."""
        dropped = self.requests
        self._requests, self._batch, self.kind, self.count = [], None, None, 0
        return dropped

    @property
    def rows(self) -> int:
        """Decoder rows of those in flight."""
        return self.count * self.kind.rows if self.kind else 0

    @property
    def requests(self) -> list[Request]:
        """Those in flight."""
        return [request for request in self._requests if request is not None]

    def join(self, requests: Sequence[Request]) -> None:
        """Let these decode with those in flight, which must be of the same kind."""
        batch = self.decoder.begin(requests)
        self._compact(least=1)
        if self._batch is None:
            self._batch, self.kind = batch, self.decoder.kind(requests[0])
        else:
            self._batch.extend(batch)
        self._requests.extend(requests)
        self.count += len(requests)

    def step(self) -> list[Result]:
        """One token for every row; the results of the sentences that it finished."""
        assert self._batch is not None
        done = [place for place in self._batch.advance() if self._requests[place] is not None]
        if not done:
            return []
        results = []
        for place, hypotheses in zip(done, self._batch.results(done), strict=True):
            request = self._requests[place]
            assert request is not None
            results.append(Result(request.id, tuple(hypotheses), "" if hypotheses else NO_RESULT))
            self._requests[place] = None
        self.count -= len(done)
        self._compact(least=len(self._requests) // 4)
        return results

    def drop(self, request_ids: Collection[int]) -> None:
        """Stop working on these requests, as far as they are in flight."""
        self._requests = [
            None if request is None or request.id in request_ids else request for request in self._requests
        ]
        self.count = len(self.requests)
        self._compact(least=1)

    def _compact(self, least: int) -> None:
        """Close the gaps that answered sentences left, if there are at least so many."""
        if not self.count:
            self.clear()
        elif len(self._requests) - self.count >= max(1, least):
            assert self._batch is not None
            left = [place for place, request in enumerate(self._requests) if request is not None]
            self._batch.select(left)
            self._requests = [self._requests[place] for place in left]
