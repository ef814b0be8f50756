"""Load tests with Poisson arrivals: latencies, and bisection for the highest rate that is served in time."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from .measure import percentile

Item = TypeVar("Item", contravariant=True)
ItemType = TypeVar("ItemType")

PATIENCE = 4.0  # multiple of the bound: if a request waits longer, the rate is too high and the probe ends


@dataclass(frozen=True)
class Probe:
    """Latencies in seconds at one rate in requests per second. They are infinite if a request was not served."""

    rate: float
    requests: int
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, rate: float, latencies: Sequence[float]) -> "Probe":
        return cls(rate, len(latencies), *(percentile(latencies, percent) for percent in (50, 95, 99)))


@dataclass
class Bisection:
    """Search for the highest rate that passes.

    From a first guess, the rate changes by a factor of 1.5 until one rate has passed and one has failed. Then each next
    rate is the geometric mean of the two. The search ends when the lowest rate that failed is at most `precision` times
    the highest rate that passed.
    """

    guess: float
    precision: float = 1.05
    passed: float = 0.0
    failed: float = math.inf

    @property
    def done(self) -> bool:
        return self.failed <= self.passed * self.precision

    @property
    def rate(self) -> float:
        """Return the rate to try next."""
        if self.passed == 0:
            return self.guess if self.failed == math.inf else self.failed / 1.5
        return self.passed * 1.5 if self.failed == math.inf else math.sqrt(self.passed * self.failed)

    @property
    def unreachable(self) -> bool:
        """True if a fiftieth of the first guess fails as well."""
        return self.passed == 0 and self.failed < self.guess / 50

    def report(self, rate: float, passed: bool) -> None:
        if passed:
            self.passed = max(self.passed, rate)
        else:
            self.failed = min(self.failed, rate)


def poisson_arrivals(rate: float, seconds: float, at_least: int, seed: int) -> list[float]:
    """Return arrival times in seconds with exponentially distributed gaps.

    With equal seeds, the gaps at two rates differ only by a factor (common random numbers).
    """
    random = Random(seed)
    times: list[float] = []
    now = 0.0
    while len(times) < at_least or now < seconds:
        now += random.expovariate(1.0) / rate
        times.append(now)
    return times


class LoadTarget(Protocol[Item]):
    """A server to test: it accepts requests at any time and answers each request once."""

    @property
    def busy(self) -> bool:
        """True if a request has no answer yet."""

    def submit(self, place: int, item: Item) -> None:
        """Queue a request; `place` identifies its answer."""

    def step(self) -> list[int]:
        """Decode for a step, or wait briefly if no request runs. Return the indices of the requests that finished."""


@dataclass
class Drive(Generic[ItemType]):
    """Open-loop load: each request is sent at its time, whether or not earlier ones are finished."""

    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep

    def run(
        self, server: LoadTarget[ItemType], items: Sequence[ItemType], arrivals: Sequence[float], bound: float
    ) -> list[float]:
        """Return the seconds from the arrival of each item to its result; infinite if there is no result."""
        latencies = [math.inf] * len(arrivals)
        begun = self.clock()
        sent = first_open = 0
        while first_open < len(arrivals):
            now = self.clock() - begun
            while sent < len(arrivals) and arrivals[sent] <= now:
                server.submit(sent, items[sent % len(items)])
                sent += 1
            if server.busy:
                for place in server.step():
                    latencies[place] = self.clock() - begun - arrivals[place]
            else:
                self.sleep(max(0.0, arrivals[sent] - now))
            while first_open < len(arrivals) and latencies[first_open] < math.inf:
                first_open += 1
            if first_open < sent and self.clock() - begun - arrivals[first_open] > PATIENCE * bound:
                break
        while server.busy:
            server.step()
        return latencies
