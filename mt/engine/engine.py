"""Continuous batching of requests over one decoder."""

from collections.abc import Collection, Iterator, Sequence

from mt.engine.backends.protocol import Batch, BatchDecoder
from mt.engine.requests import Request, Result
from mt.engine.scheduler import BatchKind, Limits, Scheduler

NO_HYPOTHESES = "the model's scores are not finite, or no hypothesis meets the search options"


class Engine:
    """Decodes many requests together. Requests join and leave the running batch between decoder steps.

    One thread owns an engine and calls `step` while the engine is `busy`. If a batch raises an exception, each of its
    requests runs again alone, so that only the request that causes the exception fails.
    """

    def __init__(self, decoder: BatchDecoder, limits: Limits | None = None) -> None:
        self.decoder = decoder
        self.scheduler = Scheduler(limits or Limits(), decoder.kind)
        self.steps = 0  # decoder steps so far
        self.rows = 0  # sum of the decoder rows of all steps
        self._batch: Batch | None = None
        self._kind: BatchKind | None = None  # kind of the running batch
        self._requests: list[Request | None] = []  # by place in the running batch; None if finished or cancelled
        self._running = 0  # requests of the batch that are neither finished nor cancelled

    @property
    def busy(self) -> bool:
        """True if a request waits or runs."""
        return self._running > 0 or len(self.scheduler) > 0

    @property
    def max_rows(self) -> int:
        """Maximum number of decoder rows that run together."""
        return self.scheduler.limits.rows

    @property
    def progress(self) -> tuple[int, ...]:
        """Decoder steps of each thread so far, or -1 for an idle thread. A number that never changes shows a hang."""
        return (self.steps if self.busy else -1,)

    def submit(self, request: Request) -> None:
        """Queue a request. A later `step` returns its result."""
        self.scheduler.add(request)

    def cancel(self, request_ids: Collection[int]) -> None:
        """Drop waiting and running requests. Dropped requests get no result."""
        running = {request_id for request_id in request_ids if not self.scheduler.remove(request_id)}
        for place, request in enumerate(self._requests):
            if request is not None and request.id in running:
                self._requests[place] = None
                self._running -= 1
        self._compact(min_gaps=1)

    def step(self) -> list[Result]:
        """Admit waiting requests and decode one token for every row. Return the results of finished requests."""
        admitted = self.scheduler.admit(self._kind, self._running_rows)
        try:
            if admitted:
                self._join(admitted)
            return self._advance() if self._batch is not None else []
        except Exception as error:  # a model can raise any exception, such as out of memory
            involved = {request.id: request for request in (*self._requests, *admitted) if request is not None}
            self._clear()
            if len(involved) > 1:
                self.scheduler.isolate(involved.values())
                return []
            return [Result(request_id, (), f"{type(error).__name__}: {error}") for request_id in involved]

    def drain(self) -> Iterator[Result]:
        """Yield results until the engine is idle."""
        while self.busy:
            yield from self.step()

    @property
    def _running_rows(self) -> int:
        return self._running * self._kind.rows if self._kind else 0

    def _join(self, requests: Sequence[Request]) -> None:
        batch = self.decoder.begin(requests)
        self._compact(min_gaps=1)
        if self._batch is None:
            self._batch, self._kind = batch, self.decoder.kind(requests[0])
        else:
            self._batch.extend(batch)
        self._requests.extend(requests)
        self._running += len(requests)

    def _advance(self) -> list[Result]:
        assert self._batch is not None
        self.steps += 1
        self.rows += self._running_rows
        finished = [(place, request) for place in self._batch.advance() if (request := self._requests[place])]
        if not finished:
            return []
        results = []
        hypotheses_of = self._batch.results([place for place, _ in finished])
        for (place, request), hypotheses in zip(finished, hypotheses_of, strict=True):
            results.append(Result(request.id, tuple(hypotheses), "" if hypotheses else NO_HYPOTHESES))
            self._requests[place] = None
        self._running -= len(finished)
        self._compact(min_gaps=max(1, len(self._requests) // 4))
        return results

    def _compact(self, min_gaps: int) -> None:
        """Remove finished requests from the batch if there are at least `min_gaps` of them."""
        if not self._running:
            self._clear()
        elif len(self._requests) - self._running >= min_gaps:
            assert self._batch is not None
            places = [place for place, request in enumerate(self._requests) if request is not None]
            self._batch.select(places)
            self._requests = [self._requests[place] for place in places]

    def _clear(self) -> None:
        self._batch, self._kind, self._requests, self._running = None, None, [], 0
