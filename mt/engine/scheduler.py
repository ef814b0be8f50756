"""What runs next. Knows sentences only as numbers of rows and tokens: no torch."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mt.engine.messages import Request


@dataclass(frozen=True)
class Limits:
    """How much runs at a time: decoder rows, and padded source tokens in one call of the encoder."""

    rows: int = 320
    source_tokens: int = 8192

    @classmethod
    def of(cls, device_type: str) -> "Limits":
        """For a CPU, whose caches hold little more; or for a GPU, which only many rows keep busy."""
        return cls() if device_type == "cpu" else cls(rows=2560, source_tokens=65_536)


@dataclass(frozen=True)
class Kind:
    """Requests of one kind can share a batch: equal rows a sentence, and the same search.

    `plain` ones ask for nothing that looks back at what was written; only some decoders tell them apart.
    """

    rows: int
    beams: bool
    plain: bool = False

    @classmethod
    def of(cls, request: Request) -> "Kind":
        return cls(request.options.rows, request.options.beams)


class Scheduler:
    """First come, first served, among requests of one kind at a time.

    New sentences join those that run as soon as a quarter of the rows is free: at low load at once, at high load a
    few at a time, so that the encoder is not called for each. A request of another kind waits until those before it
    have finished, and lets none overtake it. One that is `isolated` runs alone.
    """

    def __init__(self, limits: Limits, kind: Callable[[Request], Kind] = Kind.of) -> None:
        self.limits = limits
        self._kind = kind
        self._waiting: OrderedDict[int, Request] = OrderedDict()  # by id, so that one is forgotten at no cost
        self._isolated: OrderedDict[int, Request] = OrderedDict()
        self._alone = False  # whether what runs was isolated

    def __len__(self) -> int:
        return len(self._waiting) + len(self._isolated)

    def add(self, request: Request) -> None:
        self._waiting[request.id] = request

    def isolate(self, requests: Iterable[Request]) -> None:
        """These ran together and one of them failed: each shall run alone."""
        self._isolated.update((request.id, request) for request in requests)

    def remove(self, request_id: int) -> bool:
        """Forget a request that has not begun; whether there was one."""
        return any(queue.pop(request_id, None) is not None for queue in (self._waiting, self._isolated))

    def admit(self, running: Kind | None, running_rows: int) -> list[Request]:
        """Take the requests that shall join the `running_rows` rows of a kind, or begin if nothing runs."""
        if running is None:
            self._alone = bool(self._isolated)
            if self._alone:
                return [self._isolated.popitem(last=False)[1]]
        if self._alone or not self._waiting:
            return []
        kind = self._kind(next(iter(self._waiting.values())))
        free = self.limits.rows - running_rows
        if running is not None and (running != kind or 4 * free < self.limits.rows):
            return []
        admitted: list[Request] = []
        longest = 0
        for request in self._waiting.values():
            longest = max(longest, len(request.source))
            count = len(admitted) + 1
            fits = count * kind.rows <= free and count * longest <= self.limits.source_tokens
            alone = not admitted and running is None  # what is too large for any batch runs alone
            if self._kind(request) != kind or not (fits or alone):
                break
            admitted.append(request)
        for request in admitted:
            del self._waiting[request.id]
        return admitted
