"""Rates of the requests of callers."""

import math
from collections import Counter
from collections.abc import Callable


class RequestRates:
    """Counts of requests by caller within a time that slides, estimated from the counts of two fixed windows.

    Of the requests in the window before the current one, the share counts that the sliding time covers, rounded down
    (the "sliding window counter"). Only the counts of two windows are in memory.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        """`seconds` is the length of a window. `clock` returns seconds."""
        self._seconds, self._clock = seconds, clock
        self._window = 0
        self._counts, self._previous = Counter[str](), Counter[str]()

    def count(self, caller: str, limit: int) -> int:
        """Count a request and return 0. If the caller has reached the limit, return after how many seconds to retry."""
        window, elapsed = divmod(self._clock(), self._seconds)
        if window != self._window:
            self._previous = self._counts if window == self._window + 1 else Counter()
            self._counts, self._window = Counter(), int(window)
        previous, count = self._previous[caller], self._counts[caller]
        if count < limit and previous * (1 - elapsed / self._seconds) < limit - count:
            self._counts[caller] += 1
            return 0
        if count < limit:
            refused = self._seconds * (1 - (limit - count) / previous)
        else:  # until a time in the next window
            refused = self._seconds * (2 - limit / count)
        return math.floor(refused - elapsed) + 1
