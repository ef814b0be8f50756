"""Load tests with Poisson arrivals: latencies at a rate, and bisection for the highest rate with low latencies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .measure import percentile

PATIENCE = 4.0  # multiple of the bound: if a request waits longer, the rate is too high and the probe ends


@dataclass(frozen=True)
class Probe:
    """Percentiles of the latency in seconds, at `rate` requests per second.

    The latency of a request without an answer is infinite.
    """

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
    """Search for the highest rate that passes a test.

    The caller tests `rate` and calls `report` with the result, until `done`. The first rate is `guess`. The rate is
    changed by a factor of 1.5 until one rate has passed and one has failed. From then on, the next rate is the
    geometric mean of the highest rate that passed and the lowest rate that failed. The search ends when they differ by
    at most the factor `precision`.
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
        if self.passed == 0:
            return self.guess if self.failed == math.inf else self.failed / 1.5
        return self.passed * 1.5 if self.failed == math.inf else math.sqrt(self.passed * self.failed)

    @property
    def unreachable(self) -> bool:
        """True if no rate has passed, and a rate of less than a fiftieth of `guess` has failed."""
        return self.passed == 0 and self.failed < self.guess / 50

    def report(self, rate: float, passed: bool) -> None:
        if passed:
            self.passed = max(self.passed, rate)
        else:
            self.failed = min(self.failed, rate)


def poisson_arrivals(rate: float, seconds: float, at_least: int, seed: int) -> list[float]:
    """Return arrival times in seconds, for at least `at_least` requests and at least `seconds` seconds.

    The times between arrivals are exponentially distributed. For equal seeds and different rates, they differ only by a
    constant factor (common random numbers).
    """
    random = Random(seed)
    times: list[float] = []
    now = 0.0
    while len(times) < at_least or now < seconds:
        now += random.expovariate(1.0) / rate
        times.append(now)
    return times
