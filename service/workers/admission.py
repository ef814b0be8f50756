"""What is accepted: bounded in all, and so that no caller can shut the others out."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.errors import Overloaded

RESERVE = 4  # the limits are those of one caller; the others have a part more of this size
SMALL = 8  # and who holds less than this part may use it
LONGEST_RETRY = 60  # seconds
MEMORY = 30.0  # seconds for which a measured rate counts


@dataclass(frozen=True)
class Size:
    """Of a request, or of several."""

    requests: int = 0
    texts: int = 0
    characters: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.requests + other.requests, self.texts + other.texts, self.characters + other.characters)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.requests - other.requests, self.texts - other.texts, self.characters - other.characters)

    def within(self, other: "Size") -> bool:
        return self.requests <= other.requests and self.texts <= other.texts and self.characters <= other.characters

    def part(self, parts: int) -> "Size":
        """One of so many, but not less than a request of one text."""
        return Size(max(1, self.requests // parts), max(1, self.texts // parts), self.characters // parts)


@dataclass
class Pace:
    """Characters translated in a second of work, measured over the last time."""

    _characters: float = 0.0
    _seconds: float = 0.0
    _last: float = 0.0
    _busy: bool = False

    def note(self, now: float, characters: int, busy: bool) -> None:
        """So many have been translated since the last note; whether there is anything to do from now on."""
        gone = max(0.0, now - self._last) if self._busy else 0.0
        kept = math.exp(-gone / MEMORY)
        self._characters = self._characters * kept + characters
        self._seconds = self._seconds * kept + gone
        self._last, self._busy = now, busy

    def seconds_for(self, characters: int) -> float:
        """As far as can be told: who has seen nothing finished yet takes the time since the beginning."""
        return characters / self._characters * self._seconds if self._characters else self._seconds


@dataclass
class Admission:
    """Counts what is accepted and not yet answered."""

    limits: Size
    held: Size = field(default_factory=Size)
    shed: int = 0  # requests
    pace: Pace = field(default_factory=Pace)
    _callers: dict[str, Size] = field(default_factory=dict)  # those who hold something

    @contextmanager
    def admitted(self, caller: str, size: Size) -> Iterator[None]:
        """For as long as the request is in the house. Raises Overloaded.

        One caller can fill the queue to its limits. There is a reserve beyond them for callers who hold little, so
        that those are not refused because of him.
        """
        own = self._callers.get(caller, Size())
        if not (self.held + size).within(self._limits_for(own, size)):
            self.shed += 1
            raise Overloaded(self.retry_after())
        self.held, self._callers[caller] = self.held + size, own + size
        try:
            yield
        finally:
            self.held, self._callers[caller] = self.held - size, self._callers[caller] - size
            if not self._callers[caller].requests:
                del self._callers[caller]

    def retry_after(self) -> int:
        """Seconds until about a half of what is queued has been translated."""
        return min(max(1, math.ceil(self.pace.seconds_for(self.held.characters) / 2)), LONGEST_RETRY)

    def _limits_for(self, own: Size, more: Size) -> Size:
        """For a caller who holds `own` and asks for more."""
        alone = own == self.held
        small = not own.requests or (own + more).within(self.limits.part(SMALL))
        return self.limits + self.limits.part(RESERVE) if small and not alone else self.limits
