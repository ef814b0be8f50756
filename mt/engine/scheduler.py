"""What runs next. Knows sentences only as numbers of rows and tokens: no torch."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from mt.engine.messages import Request


@dataclass(frozen=True)
class Limits:
    """How much runs at a time: decoder rows, and padded source tokens in one call of the encoder.

    New sentences join those that run when one row in `free_part` is free: a large part keeps the encoder from being
    called for each.
    """

    rows: int = 320
    source_tokens: int = 8192
    free_part: int = 4

    @classmethod
    def of(cls, device_type: str) -> "Limits":
        """For torch on a CPU, whose caches hold little more; or on a GPU, which only many rows keep busy."""
        return cls() if device_type == "cpu" else cls(rows=2560, source_tokens=65_536)

    @classmethod
    def compiled(cls, width: int) -> "Limits":
        """For the compiled kernels, of whose rows each keeps `width` numbers a token, decoder layers times d_model.

        They are as fast with few rows as with many, but 20 slow a large model down, and with a small one the steps of
        few are so short that threads get in each other's way (EXPERIMENTS.md).
        """
        return cls(rows=36 * min(max(768 // width, 1), 4), free_part=36)


@dataclass(frozen=True)
class Kind:
    """Requests of one kind can share a batch: equal rows a sentence, and the same search.

    `plain` ones ask for nothing that looks back at what was written; only some decoders tell them apart. `worded` ones
    must hold words of their own.
    """

    rows: int
    beams: bool
    plain: bool = False
    worded: bool = False

    @classmethod
    def of(cls, request: Request) -> "Kind":
        return cls(request.options.rows, request.options.beams, worded=request.wording is not None)


class Scheduler:
    """Fair between callers, among requests of one kind at a time.

    Each request has a tag: the work that its caller had waiting before it, and its own, counted from what is being
    served when it comes; the lowest goes first (Golestani 1994, "A self-clocked fair queueing scheme"). A caller is
    served in order, a long queue of one delays another by little, and a short sentence passes long ones that came just
    before it, but not for ever. A request of another kind waits until those before it have finished, and lets none
    overtake it. One that is `isolated` runs alone.
    """

    def __init__(self, limits: Limits, kind: Callable[[Request], Kind] = Kind.of) -> None:
        self.limits = limits
        self._kind = kind
        self._waiting: dict[int, tuple[Request, Kind]] = {}
        self._order: list[tuple[float, int, int]] = []  # a heap: tag, number of arrival, id; forgotten ones remain
        self._arrivals = count()
        self._now = 0.0  # the tag of what was admitted last
        self._tags: dict[int, float] = {}  # the last one of each caller
        self._isolated: OrderedDict[int, Request] = OrderedDict()
        self._alone = False  # whether what runs was isolated

    def __len__(self) -> int:
        return len(self._waiting) + len(self._isolated)

    def add(self, request: Request) -> None:
        if not self._waiting:
            self._order, self._tags, self._now = [], {}, 0.0
        kind = self._kind(request)
        tag = max(self._now, self._tags.get(request.caller, 0.0)) + len(request.source) * kind.rows
        self._tags[request.caller] = tag
        self._waiting[request.id] = (request, kind)
        heappush(self._order, (tag, next(self._arrivals), request.id))

    def isolate(self, requests: Iterable[Request]) -> None:
        """These ran together and one of them failed: each shall run alone."""
        self._isolated.update((request.id, request) for request in requests)

    def remove(self, request_id: int) -> bool:
        """Forget a request that has not begun; whether there was one."""
        return self._waiting.pop(request_id, None) is not None or self._isolated.pop(request_id, None) is not None

    def admit(self, running: Kind | None, running_rows: int) -> list[Request]:
        """Take the requests that shall join the `running_rows` rows of a kind, or begin if nothing runs."""
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
            request, own = self._first()
            longest = max(longest, len(request.source))
            grown = len(admitted) + 1
            fits = grown * kind.rows <= free and grown * longest <= self.limits.source_tokens
            alone = not admitted and running is None  # what is too large for any batch runs alone
            if own != kind or not (fits or alone):
                break
            self._now = heappop(self._order)[0]
            admitted.append(request)
            del self._waiting[request.id]
        return admitted

    def _first(self) -> tuple[Request, Kind]:
        """Who is next of those that wait, of whom there is at least one."""
        while self._order[0][2] not in self._waiting:
            heappop(self._order)
        return self._waiting[self._order[0][2]]
