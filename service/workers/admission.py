"""Admission control: limits the accepted work, and reserves a part of the queue for callers with little work in it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.errors import Overloaded

SMALL_CALLERS_SHARE = 4  # callers with little accepted work may exceed the limits by 1/SMALL_CALLERS_SHARE
SMALL = 8  # "little" is at most 1/SMALL of each limit
MAX_RETRY_SECONDS = 60
MEMORY_SECONDS = 30.0  # time constant of the decay of measured throughput


@dataclass
class RequestSize:
    """Size of one request, or the sum of the sizes of several requests."""

    requests: int = 0
    texts: int = 0
    characters: int = 0

    def __add__(self, other: "RequestSize") -> "RequestSize":
        return RequestSize(self.requests + other.requests, self.texts + other.texts, self.characters + other.characters)

    def __sub__(self, other: "RequestSize") -> "RequestSize":
        return RequestSize(self.requests - other.requests, self.texts - other.texts, self.characters - other.characters)

    def within(self, other: "RequestSize") -> bool:
        """Return whether this size has at most as many requests, texts and characters as `other`."""
        return self.requests <= other.requests and self.texts <= other.texts and self.characters <= other.characters

    def divided_by(self, divisor: int) -> "RequestSize":
        """Return this size divided by the number `divisor`, but at least one request and one text."""
        return RequestSize(max(1, self.requests // divisor), max(1, self.texts // divisor), self.characters // divisor)


NOTHING = RequestSize()


@dataclass
class Throughput:
    """Average of the characters translated per second of work; recent seconds count more."""

    _characters: float = 0.0
    _seconds: float = 0.0
    _last: float = 0.0
    _busy: bool = False

    def note(self, now: float, characters: int, busy: bool) -> None:
        """Record that `characters` have been translated since the last call.

        `now` is the present time in seconds. `busy` tells whether work is in progress from now on.
        """
        seconds = max(0.0, now - self._last) if self._busy else 0.0
        decay = math.exp(-seconds / MEMORY_SECONDS)
        self._characters = self._characters * decay + characters
        self._seconds = self._seconds * decay + seconds
        self._last, self._busy = now, busy

    def seconds_for(self, characters: int) -> float:
        """Return the estimated seconds for translating `characters` characters.

        If no character has been translated yet, return the seconds of work so far.
        """
        return characters / self._characters * self._seconds if self._characters else self._seconds


@dataclass
class Admission:
    """Count of the requests that are accepted and not yet answered. It refuses requests above the limits."""

    limits: RequestSize
    held: RequestSize = field(default_factory=RequestSize)
    refused: int = 0  # requests
    throughput: Throughput = field(default_factory=Throughput)
    _held_by: dict[str, RequestSize] = field(default_factory=dict)  # by caller with accepted requests

    @contextmanager
    def admitted(self, caller: str, size: RequestSize) -> Iterator[None]:
        """Count a request as accepted while the context is open.

        One caller can fill the queue to its limits. Callers with little work in the queue may exceed these limits by
        1/SMALL_CALLERS_SHARE.

        Raises: Overloaded if the queue is too full for the request.
        """
        self.check(caller, size)
        self.held, self._held_by[caller] = self.held + size, self._held_by.get(caller, NOTHING) + size
        try:
            yield
        finally:
            self.held, self._held_by[caller] = self.held - size, self._held_by[caller] - size
            if not self._held_by[caller].requests:
                del self._held_by[caller]

    def check(self, caller: str, size: RequestSize) -> None:
        """Raise Overloaded if the queue is too full for a request of this size."""
        held, limits = self._held_by.get(caller, NOTHING), self.limits
        small = not held.requests or (held + size).within(limits.divided_by(SMALL))
        if small and held != self.held:
            limits += limits.divided_by(SMALL_CALLERS_SHARE)
        if not (self.held + size).within(limits):
            self.refused += 1
            raise Overloaded(self.retry_after())

    def retry_after(self) -> int:
        """Return the estimated seconds until half of the queue has been translated."""
        return min(max(1, math.ceil(self.throughput.seconds_for(self.held.characters) / 2)), MAX_RETRY_SECONDS)
