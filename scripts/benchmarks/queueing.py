"""Traffic that arrives at random, how long each request waits, and the highest rate that is still served in time."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from .measure import percentile

Item = TypeVar("Item", contravariant=True)
Work = TypeVar("Work")

PATIENCE = 4.0  # a probe ends as soon as a request has waited so many times the bound: the rate is too high


@dataclass(frozen=True)
class Probe:
    """What one rate, in requests a second, led to: latencies in seconds, infinite where not all were served."""

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
    """Looks for the highest rate that passes, from a first guess: up or down by half, then the geometric middle.

    Ends when the lowest rate that failed is at most `precision` times the highest that passed.
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
        """The next to try."""
        if self.passed == 0:
            return self.guess if self.failed == math.inf else self.failed / 1.5
        return self.passed * 1.5 if self.failed == math.inf else math.sqrt(self.passed * self.failed)

    @property
    def hopeless(self) -> bool:
        """Whether a fiftieth of the guess still fails."""
        return self.passed == 0 and self.failed < self.guess / 50

    def tell(self, rate: float, passed: bool) -> None:
        if passed:
            self.passed = max(self.passed, rate)
        else:
            self.failed = min(self.failed, rate)


def poisson_arrivals(rate: float, seconds: float, at_least: int, seed: int) -> list[float]:
    """Times of arrival from 0: exponential gaps, the same for a seed but for their scale (common random numbers)."""
    random = Random(seed)
    times: list[float] = []
    now = 0.0
    while len(times) < at_least or now < seconds:
        now += random.expovariate(1.0) / rate
        times.append(now)
    return times


class Server(Protocol[Item]):
    """Something that takes requests at any time and answers each once."""

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""

    def submit(self, place: int, item: Item) -> None:
        """Take a request; `place` names its answer."""

    def step(self) -> list[int]:
        """Work or wait for a moment; the places that have been answered."""


@dataclass
class Drive(Generic[Work]):
    """Requests sent at given times, whatever has become of those before (an open loop)."""

    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep

    def run(self, server: Server[Work], items: Sequence[Work], arrivals: Sequence[float], bound: float) -> list[float]:
        """The latency of each, from when it should have arrived to its answer; infinite where it was given up."""
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
