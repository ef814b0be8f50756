"""Rates of the requests of callers."""

import math
from array import array
from bisect import bisect
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice


class RequestRates:
    """Times of the requests of callers within a time that slides."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        """`seconds` is the length of the time that slides. `clock` returns seconds and never goes back."""
        self._seconds, self._clock = seconds, clock
        self._times: OrderedDict[str, array[float]] = OrderedDict()  # the callers counted longest ago come first

    def count(self, caller: str, limit: int) -> int:
        """Count a request and return 0. If the caller has reached the limit, return after how many seconds to retry."""
        now = self._clock()
        begin = now - self._seconds
        times = self._times.setdefault(caller, array("d"))
        del times[: bisect(times, begin)]
        if len(times) >= limit:
            return math.floor(times[-limit] - begin) + 1
        times.append(now)
        self._times.move_to_end(caller)
        for other in list(islice(self._times, 2)):  # forget more callers than come
            if self._times[other][-1] <= begin:
                del self._times[other]
        return 0
