"""Scheduling of requests by their numbers of rows and tokens."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from mt.engine.requests import Request


@dataclass(frozen=True)
class Limits:
    """Limits of the work that runs together.

    `rows` limits the decoder rows of a batch, `source_tokens` the padded source tokens of one encoder call. Waiting
    requests join a running batch when at least 1 / `free_part` of the rows are free. A smaller `free_part` calls the
    encoder less often.
    """

    rows: int = 320
    source_tokens: int = 8192
    free_part: int = 4

    @classmethod
    def of(cls, device_type: str) -> "Limits":
        """Return limits for torch. The caches of a CPU have space for few rows; a GPU needs many rows to be busy."""
        return cls() if device_type == "cpu" else cls(rows=2560, source_tokens=65_536)

    @classmethod
    def compiled(cls, width: int) -> "Limits":
        """Return limits for the compiled CPU kernels. `width` is decoder layers times d_model.

        36 rows suffice for a large model; 20 rows are slower, and more are not faster. A small model has more rows,
        because steps with few rows would be so short that threads wait for each other.
        """
        return cls(rows=36 * min(max(768 // width, 1), 4), free_part=36)


@dataclass(frozen=True)
class BatchKind:
    """Properties that are equal for all requests of a batch: the rows per sentence and the search.

    `compiled` is true if the compiled kernels run the search; they support no sampling, prefixes, constraints or
    repetition penalties. `constrained` is true for requests with TermConstraints.
    """

    rows: int
    beams: bool
    compiled: bool = False
    constrained: bool = False

    @classmethod
    def of(cls, request: Request) -> "BatchKind":
        """Return the kind of a request for decoders without compiled search."""
        return cls(request.options.rows, request.options.beams, constrained=request.constraints is not None)


class Scheduler:
    """Queue that is fair between callers and admits requests of one kind at a time.

    The method is self-clocked fair queueing (Golestani 1994). The tag of a request is
    max(tag of its caller's previous request, tag of the last admitted request) + len(source) * rows. The request with
    the lowest tag runs first. Requests of one caller therefore run in order, a long queue of one caller delays other
    callers little, and a short sentence may overtake a limited number of longer sentences. If the first request and the
    running batch have different kinds, the request waits until the batch is finished, and no later request overtakes
    it. An isolated request runs alone.
    """

    def __init__(self, limits: Limits, kind: Callable[[Request], BatchKind] = BatchKind.of) -> None:
        self.limits = limits
        self._kind = kind
        self._waiting: dict[int, tuple[Request, BatchKind]] = {}
        self._order: list[tuple[float, int, int]] = []  # heap of (tag, arrival number, id); removed requests stay in it
        self._arrivals = count()
        self._now = 0.0  # tag of the last admitted request
        self._tags: dict[int, float] = {}  # tag of each caller's last request
        self._isolated: OrderedDict[int, Request] = OrderedDict()
        self._alone = False  # whether the running request was isolated

    def __len__(self) -> int:
        return len(self._waiting) + len(self._isolated)

    def add(self, request: Request) -> None:
        """Queue a request."""
        if not self._waiting:
            self._order, self._tags, self._now = [], {}, 0.0
        kind = self._kind(request)
        tag = max(self._now, self._tags.get(request.caller, 0.0)) + len(request.source) * kind.rows
        self._tags[request.caller] = tag
        self._waiting[request.id] = (request, kind)
        heappush(self._order, (tag, next(self._arrivals), request.id))

    def isolate(self, requests: Iterable[Request]) -> None:
        """Queue requests that failed in one batch. Each request then runs alone."""
        self._isolated.update((request.id, request) for request in requests)

    def remove(self, request_id: int) -> bool:
        """Remove a waiting request. Return False if no request with this id waits."""
        return self._waiting.pop(request_id, None) is not None or self._isolated.pop(request_id, None) is not None

    def admit(self, running: BatchKind | None, running_rows: int) -> list[Request]:
        """Remove and return the requests that join the running batch, or a new batch if `running` is None."""
        if running is None:
            self._alone = bool(self._isolated)
            if self._alone:
                return [self._isolated.popitem(last=False)[1]]
        if self._alone or not self._waiting:
            return []
        _, kind = self._first()
        free = self.limits.rows - running_rows
        if running is not None and (running != kind or self.limits.free_part * free < self.limits.rows):
            return []
        admitted: list[Request] = []
        longest = 0
        while self._waiting:
            request, next_kind = self._first()
            longest = max(longest, len(request.source))
            count = len(admitted) + 1
            fits = count * kind.rows <= free and count * longest <= self.limits.source_tokens
            alone = not admitted and running is None  # a request that is too large for any batch runs alone
            if next_kind != kind or not (fits or alone):
                break
            self._now = heappop(self._order)[0]
            admitted.append(request)
            del self._waiting[request.id]
        return admitted

    def _first(self) -> tuple[Request, BatchKind]:
        """Return the waiting request with the lowest tag. At least one request must wait."""
        while self._order[0][2] not in self._waiting:
            heappop(self._order)
        return self._waiting[self._order[0][2]]
