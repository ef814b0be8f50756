"""Scheduling of requests: which requests run, and in which batch."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, auto
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

from mt.engine.memory import MemoryUse
from mt.engine.requests import Request


@dataclass(frozen=True)
class Limits:
    """Limits of the work that runs together.

    - `rows` limits the decoder rows of all bulk batches together.
    - `source_tokens` limits the padded source tokens that are encoded between two decoder steps. A longer source is
      encoded alone, and the next ones wait one step for each further multiple of this number that it begins.
    - `join_divisor`: waiting requests join when at least rows / join_divisor rows are free. With a smaller number, the
      encoder runs less often.
    - `small_divisor`: a batch with at most rows / small_divisor rows is small. Its step takes about as long as a step
      with that number of rows.
    - `small_steps` is the number of steps that a small batch takes at a time if it is the only batch. New requests wait
      meanwhile.
    - `cells` limits the memory of all batches together, as MemoryUse counts it; None means no limit.
    """

    rows: int = 320
    source_tokens: int = 8192
    join_divisor: int = 4
    small_divisor: int = 4
    small_steps: int = 1
    cells: int | None = None

    @classmethod
    def of(cls, device_type: str) -> "Limits":
        """Return the limits for torch. A CPU's caches have space for few rows; a GPU needs many rows to be busy.

        1,024 rows suffice for a GPU (see docs/experiments/gpu.md). More take longer to fill.
        """
        return cls() if device_type == "cpu" else cls(rows=1024, source_tokens=16_384, join_divisor=8)

    @classmethod
    def compiled(cls, width: int) -> "Limits":
        """Return the limits for the compiled CPU kernels. `width` is the number of decoder layers times d_model.

        A large model is slower with 20 rows than with 36, and not faster with more. A small model gets more rows,
        because steps with few rows would be so short that threads wait for each other. A step with one row takes about
        as long as a step with nine rows. The encoder of a large model reaches its full speed with 256 tokens; more
        tokens would delay the running rows. Four steps of few rows take less time than two steps of all rows.
        """
        scale = min(max(768 // width, 1), 4)
        return cls(rows=36 * scale, source_tokens=256 * scale, join_divisor=36, small_divisor=4 * scale, small_steps=4)


class BatchKind(NamedTuple):
    """Properties that all requests of a batch have in common: the rows per sentence and the kind of search.

    `beams` is True for beam search, and `sample` for sampling; if both are False, the search is greedy. `constrained`
    is True for requests with TermConstraints.
    """

    rows: int
    beams: bool
    sample: bool = False
    constrained: bool = False

    @classmethod
    def of(cls, request: Request) -> "BatchKind":
        """Return the kind of batch for `request`."""
        options = request.options
        return cls(options.rows, options.beams, options.sample, request.constraints is not None)


class RequestClass(IntEnum):
    """Class of requests that has its own limit of decoder rows and its own turns."""

    BULK = auto()
    INTERACTIVE = auto()  # a few sentences of callers with little work, while another caller is busy
    ISOLATED = auto()  # one request that failed in a batch with other requests


BatchKey = tuple[RequestClass, BatchKind | None]
"""Requests with equal keys form a batch. The kind is None if requests of all kinds can share a batch."""

INTERACTIVE_DIVISOR = 4
"""A caller with more than `Limits.rows` / INTERACTIVE_DIVISOR running rows is busy.

All interactive requests together may have `Limits.rows` / INTERACTIVE_DIVISOR rows, in addition to the rows of bulk
requests.
"""

ROW_DIVISORS = {RequestClass.BULK: 1, RequestClass.INTERACTIVE: INTERACTIVE_DIVISOR}
"""All requests of a class together may have `Limits.rows` / ROW_DIVISORS[class] rows.

Isolated requests are not listed, because they run one at a time.
"""

LIGHT_DIVISOR = 8
"""A caller with at most rows / LIGHT_DIVISOR running rows, or with one sentence, has little work."""


class WaitingRequest(NamedTuple):
    """Request that waits in the queue of its caller. Requests are ordered by tag (see Scheduler), then by arrival."""

    tag: float
    number: int  # by arrival
    request: Request


class Scheduler:
    """Fair queue of requests: callers take turns, and a request is admitted when enough rows are free.

    The method is self-clocked fair queueing (Golestani 1994). The tag of a request is max(tag of the previous request
    of the same caller, tag of the last admitted request) + len(source) * rows. The request with the lowest tag is
    admitted first. Requests of one caller therefore run in order, a long queue of one caller delays other callers
    little, and a short sentence may overtake a limited number of longer sentences. Requests of all kinds share the
    rows. If the first request does not fit, it waits, and no later request joins the bulk batches.

    While a caller is busy, other callers with little work need not wait: a few of their requests run in interactive
    batches, whose steps do not include the rows of the busy caller. Isolated requests run one at a time.
    """

    def __init__(self, limits: Limits, kind: Callable[[Request], BatchKind | None] = BatchKind.of) -> None:
        self.limits = limits
        self._kind = kind
        self._queues: dict[int, OrderedDict[int, WaitingRequest]] = {}  # waiting requests, by caller and request id
        self._callers: dict[int, int] = {}  # caller of each request in a queue, by request id
        self._arrivals = count()
        self._now = 0.0  # highest tag of the admitted requests
        self._excess = 0  # source tokens above the limit that were encoded, less the limit for each step since
        self._isolated: OrderedDict[int, Request] = OrderedDict()
        self._running: dict[int, tuple[RequestClass, Request]] = {}  # by request id
        self._rows: Counter[RequestClass] = Counter()  # running rows
        self._caller_rows: Counter[int] = Counter()  # number of running rows of each caller
        self._memory = MemoryUse()

    def __len__(self) -> int:
        return len(self._callers) + len(self._isolated)

    def add(self, request: Request) -> None:
        """Queue a request."""
        if not self._callers:
            self._now = 0.0
        queue = self._queues.setdefault(request.caller, OrderedDict())
        start = queue[next(reversed(queue))].tag if queue else self._now
        tag = max(self._now, start) + len(request.source) * request.options.rows
        queue[request.id] = WaitingRequest(tag, next(self._arrivals), request)
        self._callers[request.id] = request.caller

    def isolate(self, requests: Iterable[Request]) -> None:
        """Queue requests whose batch failed. Each of them will run in a batch of its own."""
        self._isolated.update((request.id, request) for request in requests)

    def remove(self, request_id: int) -> bool:
        """Remove a waiting request. Return False if no waiting request has this id."""
        caller = self._callers.pop(request_id, None)
        if caller is None:
            return self._isolated.pop(request_id, None) is not None
        queue = self._queues[caller]
        del queue[request_id]
        if not queue:
            del self._queues[caller]
        return True

    def release(self, request_id: int) -> None:
        """Free the rows of an admitted request that has finished, failed or been cancelled."""
        request_class, request = self._running.pop(request_id)
        caller, rows = request.caller, request.options.rows
        self._rows[request_class] -= rows
        self._caller_rows[caller] -= rows
        if not self._caller_rows[caller]:
            del self._caller_rows[caller]
        if self.limits.cells is not None:
            self._memory.remove(request)

    def admit(self) -> dict[BatchKey, list[Request]]:
        """Choose the waiting requests that are to run now, and remove them from the queue. Return them by batch."""
        groups: dict[BatchKey, list[Request]] = {}
        if self._isolated and self._has_room(RequestClass.ISOLATED, 0):
            _, request = self._isolated.popitem(last=False)
            self._start(request, RequestClass.ISOLATED, groups)
        if self._excess > 0 and self._running:
            self._excess -= self.limits.source_tokens
            return groups
        if not self._callers:
            return groups
        free = self.limits.rows - self._rows[RequestClass.BULK]
        joins = self._rows[RequestClass.BULK] == 0 or self.limits.join_divisor * free >= self.limits.rows
        busy = {caller for caller, rows in self._caller_rows.items() if INTERACTIVE_DIVISOR * rows > self.limits.rows}
        if not joins and (not busy or busy >= self._queues.keys()):  # busy callers wait for free rows
            return groups
        heads = [next(iter(queue.values())) for queue in self._queues.values()]
        heapify(heads)
        number = longest = 0
        while heads and (joins or (busy and self._has_room(RequestClass.INTERACTIVE, 1))):
            tag, _, request = heappop(heads)
            caller, rows = request.caller, request.options.rows
            light = len(busy) > (caller in busy) and self._is_light(caller, rows)
            fits = self._fits(request)
            if fits and light and self._has_room(RequestClass.INTERACTIVE, rows):
                request_class = RequestClass.INTERACTIVE
            elif fits and joins and self._has_room(RequestClass.BULK, rows):
                request_class = RequestClass.BULK
            else:
                joins = False
                continue
            padded = max(longest, len(request.source))
            if number and (number + 1) * padded > self.limits.source_tokens:
                break
            number, longest = number + 1, padded
            self._now = max(self._now, tag)
            self.remove(request.id)
            self._start(request, request_class, groups)
            if queue := self._queues.get(caller):
                heappush(heads, next(iter(queue.values())))
        self._excess = number * longest - self.limits.source_tokens
        return groups

    def _start(self, request: Request, request_class: RequestClass, groups: dict[BatchKey, list[Request]]) -> None:
        rows = request.options.rows
        groups.setdefault((request_class, self._kind(request)), []).append(request)
        self._running[request.id] = request_class, request
        if self.limits.cells is not None:
            self._memory.add(request)
        self._rows[request_class] += rows
        self._caller_rows[request.caller] += rows

    def _has_room(self, request_class: RequestClass, rows: int) -> bool:
        """Return whether `request_class` has no running rows, or can have `rows` more rows within its limit.

        Thus a request above the limit runs alone.
        """
        running = self._rows[request_class]
        return running == 0 or (
            request_class in ROW_DIVISORS and running + rows <= self.limits.rows // ROW_DIVISORS[request_class]
        )

    def _fits(self, request: Request) -> bool:
        """Return whether the memory limit allows another request.

        A request above the limit runs alone.
        """
        cells = self.limits.cells
        return cells is None or not self._running or self._memory.cells_with(request) <= cells

    def _is_light(self, caller: int, rows: int) -> bool:
        """Return whether `caller` still has little work if another request with `rows` rows runs."""
        running = self._caller_rows[caller]
        return not running or LIGHT_DIVISOR * (running + rows) <= self.limits.rows
