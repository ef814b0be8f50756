"""Continuous batching of requests: they join and leave batches between decoder steps."""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import ceil

from mt.engine.backends.protocol import Batch, BatchDecoder, device_failed
from mt.engine.requests import Request, Result
from mt.engine.scheduler import BatchKey, Limits, RequestClass, Scheduler

NO_HYPOTHESES = "the model's scores are not finite, or no hypothesis meets the search options"


class RunningBatch:
    """Batch that is being decoded, with the request of each of its sentences."""

    def __init__(self, batch: Batch, requests: Sequence[Request], cost: Callable[[Request], int]) -> None:
        """Create a batch. `cost` is that of the BatchDecoder."""
        self._batch = batch
        self._cost = cost
        self._by_index: list[Request | None] = list(requests)  # None if finished or cancelled
        # Of the requests that are neither finished nor cancelled: their number, their rows, the sum of rows x cost
        self.size = self.rows = self._weight = 0
        self._count(requests, 1)

    @property
    def requests(self) -> list[Request]:
        """Requests that are neither finished nor cancelled."""
        return [request for request in self._by_index if request is not None]

    def join(self, batch: Batch, requests: Sequence[Request]) -> None:
        """Append the sentences of `batch`, which must not be used afterwards, and their requests."""
        self._compact(min_gaps=1)
        self._batch.extend(batch)
        self._by_index += requests
        self._count(requests, 1)

    @property
    def cost(self) -> float:
        """Mean time of one step of one row, relative to the fastest search of the backend."""
        return self._weight / self.rows

    @property
    def steps(self) -> int:
        """Number of decoder steps that the batch has taken."""
        return self._batch.steps

    def advance(self, steps: int) -> list[Result]:
        """Take at most `steps` steps, but stop when a request finishes. Return the results of the finished requests."""
        indices = self._batch.advance(steps)
        finished = [(index, request) for index in indices if (request := self._by_index[index])] if indices else []
        if not finished:
            return []
        results = []
        hypotheses_of = self._batch.results([index for index, _ in finished])
        for (index, request), hypotheses in zip(finished, hypotheses_of, strict=True):
            results.append(Result(request.id, tuple(hypotheses), "" if hypotheses else NO_HYPOTHESES))
            self._by_index[index] = None
        self._count([request for _, request in finished], -1)
        self._compact(min_gaps=max(1, len(self._by_index) // 4))
        return results

    def cancel(self, request_ids: Collection[int]) -> list[int]:
        """Drop the requests with these ids. Return the ids that were in this batch."""
        dropped = []
        for index, request in enumerate(self._by_index):
            if request is not None and request.id in request_ids:
                self._by_index[index] = None
                dropped.append(request)
        self._count(dropped, -1)
        self._compact(min_gaps=1)
        return [request.id for request in dropped]

    def _count(self, requests: Sequence[Request], sign: int) -> None:
        self.size += sign * len(requests)
        for request in requests:
            rows = sign * request.options.rows
            self.rows += rows
            self._weight += rows * self._cost(request)

    def _compact(self, min_gaps: int) -> None:
        """Remove finished and cancelled requests from the batch if there are at least `min_gaps` of them.

        If no other request is left, do nothing: the caller drops the whole batch.
        """
        if self.size and len(self._by_index) - self.size >= min_gaps:
            indices = [index for index, request in enumerate(self._by_index) if request is not None]
            self._batch.select(indices)
            self._by_index = [self._by_index[index] for index in indices]


class Engine:
    """Engine that decodes requests together. Requests join and leave running batches between decoder steps.

    Requests of the same kind form a batch, and the batches take turns. A backend may decode all kinds in one batch.
    Interactive batches together get as much work as all other batches together. One thread owns an engine and calls
    `step` while the engine is `busy`. If a batch raises an exception, each of its requests runs again alone, so that
    only the request that causes the exception fails.
    """

    def __init__(self, decoder: BatchDecoder, limits: Limits | None = None) -> None:
        self.decoder = decoder
        self.scheduler = Scheduler(limits or Limits(), decoder.kind)
        self.steps = 0  # decoder steps so far
        self.rows = 0  # sum of the decoder rows of all steps
        self._batches: dict[BatchKey, RunningBatch] = {}  # the batch with the latest turn is last
        self._balance = 0.0  # work that interactive batches may do before the next step of another batch

    @property
    def busy(self) -> bool:
        """True if a request waits or runs."""
        return bool(self._batches) or len(self.scheduler) > 0

    @property
    def max_rows(self) -> int:
        """Maximum number of decoder rows of all bulk batches together."""
        return self.scheduler.limits.rows

    @property
    def progress(self) -> tuple[int, ...]:
        """Number of decoder steps of each engine thread, or -1 for an idle thread.

        A number that does not change shows a hang.
        """
        return (self.steps if self.busy else -1,)

    def submit(self, request: Request) -> None:
        """Queue a request. A later `step` returns its result."""
        self.scheduler.add(request)

    def cancel(self, request_ids: Collection[int]) -> None:
        """Drop requests, waiting or running. Dropped requests get no result."""
        running = {request_id for request_id in request_ids if not self.scheduler.remove(request_id)}
        for key in list(self._batches) if running else []:
            self._release(key, self._batches[key].cancel(running))

    def step(self) -> list[Result]:
        """Admit waiting requests, then take one step of one batch, or several steps of an interactive batch.

        Returns the results of the requests that finished.
        """
        results: list[Result] = []
        for key, requests in self.scheduler.admit().items():
            try:
                self._join(key, requests)
            except Exception as error:  # a model can raise any exception, for example when memory runs out
                results += self._fail(key, requests, error)
        if self._batches:
            key, running = self._next_turn()
            try:
                if finished := self._advance(key, running):
                    self._release(key, [result.id for result in finished])
                    results += finished
            except Exception as error:
                results += self._fail(key, (), error)
        return results

    def drain(self) -> Iterator[Result]:
        """Call `step` and yield results until no request is left."""
        while self.busy:
            yield from self.step()

    def _join(self, key: BatchKey, requests: Sequence[Request]) -> None:
        batch = self.decoder.begin(requests)
        if running := self._batches.get(key):
            running.join(batch, requests)
        else:
            self._batches[key] = RunningBatch(batch, requests, self.decoder.cost)

    def _next_turn(self) -> tuple[BatchKey, RunningBatch]:
        """Return the key and the batch whose turn it is. The batch becomes the last one in the order of turns."""
        if len(self._batches) == 1:  # the usual case; hashing the key would take most of the time
            return next(iter(self._batches.items()))
        interactive = [key for key in self._batches if key[0] is RequestClass.INTERACTIVE]
        others = [key for key in self._batches if key[0] is not RequestClass.INTERACTIVE]
        key = interactive[0] if interactive and (self._balance > 0 or not others) else others[0]
        running = self._batches[key] = self._batches.pop(key)
        return key, running

    def _advance(self, key: BatchKey, running: RunningBatch) -> list[Result]:
        """Take the steps of one turn of a batch. Return the results of the finished requests.

        A turn of a batch that is not interactive is one step. After it, interactive batches may do as much work as this
        step. Their last step may exceed this amount; the excess is deducted from their next turn. A step of a small
        batch (see `Limits`) counts as a step of the largest small batch, because it is hardly faster. An interactive
        batch takes all its steps in one call of the backend: between two calls, its thread may wait for the interpreter
        lock, which takes longer than a step with few rows.
        """
        limits, rows, before = self.scheduler.limits, running.rows, running.steps
        small = limits.rows // limits.small_divisor
        alone, interactive = len(self._batches) == 1, key[0] is RequestClass.INTERACTIVE
        if alone:
            work, steps = 0.0, limits.small_steps if rows <= small else 1
        else:
            work = running.cost * max(rows, small)
            steps = max(1, ceil(self._balance / work)) if interactive else 1
        finished = running.advance(steps)
        steps = running.steps - before
        self.steps += steps
        self.rows += steps * rows
        if alone:
            self._balance = rows
        elif interactive:
            self._balance = max(-work, self._balance - steps * work)
        else:
            self._balance = min(self._balance, 0) + work
        return finished

    def _fail(self, key: BatchKey, joining: Sequence[Request], error: Exception) -> list[Result]:
        """Drop a batch that raised `error`.

        If it has one request, return its failure; if it has more, let each run alone. `joining` are requests that were
        about to join the batch. Raises `error` if the GPU has failed, because the process must then be replaced.
        """
        if device_failed(error):
            raise error
        running = self._batches.pop(key, None)
        involved = {request.id: request for request in (*(running.requests if running else ()), *joining)}
        for request_id in involved:
            self.scheduler.release(request_id)
        if len(involved) > 1:
            self.scheduler.isolate(involved.values())
            return []
        return [Result(request_id, (), f"{type(error).__name__}: {error}") for request_id in involved]

    def _release(self, key: BatchKey, request_ids: Collection[int]) -> None:
        for request_id in request_ids:
            self.scheduler.release(request_id)
        if not self._batches[key].size:
            del self._batches[key]
