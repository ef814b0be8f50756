"""Alternating rounds, medians, ratios with their spread, and whether the machine was quiet meanwhile."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

Who = TypeVar("Who")
What = TypeVar("What")

PAUSE = 0.3  # seconds between two contenders: threads that wait by spinning have gone to sleep by then
QUIET_LOAD = 0.5  # of the last minute, before the first contender starts
QUIET_CORES = 0.1  # kept busy by others, on average, while a contender is measured
QUIET_SPREAD = 0.15  # (largest - smallest) / median over the rounds of one contender


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, and the lowest and highest of the rounds' own ratios."""

    value: float
    low: float
    high: float


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """values / baseline; each has an entry a round, and round n of the one ran beside round n of the other."""
    each = [value / other for value, other in zip(values, baseline, strict=True)]
    return Ratio(median(values) / median(baseline), min(each), max(each))


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median."""
    return (max(values) - min(values)) / median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all values do not exceed: one that was measured, not a mean of two."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def alternate(
    contenders: Sequence[Who], rounds: int, measure: Callable[[Who], What], pause: float = PAUSE
) -> Iterator[tuple[int, int, What]]:
    """A B C A B C ...: the round, the contender's place, and what was measured, one contender at a time."""
    for number in range(rounds):
        for place, contender in enumerate(contenders):
            time.sleep(pause)
            yield number, place, measure(contender)


@dataclass
class Neighbours:
    """What others do with the machine while one contender is measured; `cores` is None where Linux is not there."""

    cores: float | None = None


@contextmanager
def watching(cpu_seconds: Callable[[], float]) -> Iterator[Neighbours]:
    """Over the block: processor time of the whole machine, less the contender's, a second of wall clock.

    `cpu_seconds` is asked at the end of the block for the processor time that the contender used in it.
    """
    found = Neighbours()
    busy, begun = busy_seconds(), time.perf_counter()
    yield found
    seconds, after = time.perf_counter() - begun, busy_seconds()
    if busy is not None and after is not None:
        found.cores = max(0.0, (after - busy - cpu_seconds()) / seconds)


def busy_seconds(stat: Path = Path("/proc/stat")) -> float | None:
    """Processor time that the machine's cores have spent on anything since it started, time stolen from it included."""
    if not stat.exists():
        return None
    user, nice, system, _idle, _waiting, *more = map(int, stat.read_text().split("\n", 1)[0].split()[1:])
    interrupts = sum(more[:3])  # interrupts, soft interrupts, stolen; guests are counted in user
    return (user + nice + system + interrupts) / float(os.sysconf("SC_CLK_TCK"))


def noise(load: float, neighbours: Sequence[float], spreads: dict[str, float]) -> list[str]:
    """What says that the machine was not quiet: warnings to print beside the figures."""
    found = []
    if load > QUIET_LOAD:
        found.append(f"the load average was {load:.2f} before the start; quiet is at most {QUIET_LOAD}")
    if neighbours and median(neighbours) > QUIET_CORES:
        found.append(
            f"other processes kept {median(neighbours):.2f} cores busy (median; at worst {max(neighbours):.2f}); "
            f"quiet is at most {QUIET_CORES}"
        )
    wide = {name: value for name, value in spreads.items() if value > QUIET_SPREAD}
    if wide:
        worst = max(wide, key=lambda name: wide[name])
        found.append(
            f"{len(wide)} of {len(spreads)} contenders' rounds spread by more than {QUIET_SPREAD:.0%} of their median; "
            f"the most: {worst}, {wide[worst]:.0%}"
        )
    return found
