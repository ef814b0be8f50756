"""Alternating measurements, medians, ratios with their spread, and the load of the machine by other processes."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

S = TypeVar("S")
M = TypeVar("M")

PAUSE = 0.3  # seconds between two contenders, so that the spinning threads of the first one stop
QUIET_LOAD = 0.5  # load average of the last minute, before the first contender starts
QUIET_CORES = 0.1  # cores that other processes use on average while a contender is measured
QUIET_SPREAD = 0.15  # (largest - smallest) / median over the rounds of one contender


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians, with the lowest and the highest ratio in a single round."""

    value: float
    low: float
    high: float


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Return the ratio of `values` to `baseline`. Element n of both sequences was measured in round n."""
    ratios = [value / other for value, other in zip(values, baseline, strict=True)]
    return Ratio(median(values) / median(baseline), min(ratios), max(ratios))


def spread(values: Sequence[float]) -> float:
    """Return (largest - smallest) / median."""
    return (max(values) - min(values)) / median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of `values` such that at least `percent` percent of all values are not above it."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def alternate(
    contenders: Sequence[S], rounds: int, measure: Callable[[S], M], pause: float = PAUSE
) -> Iterator[tuple[int, int, M]]:
    """Measure the contenders in turn (A B C A B C ...), with a pause of `pause` seconds before each measurement.

    Yield (number of the round, index of the contender, measurement).
    """
    for number in range(rounds):
        for place, contender in enumerate(contenders):
            time.sleep(pause)
            yield number, place, measure(contender)


@dataclass
class OtherLoad:
    """Mean number of cores that other processes used during a measurement. It is None on systems other than Linux."""

    cores: float | None = None


@contextmanager
def watching(cpu_seconds: Callable[[], float]) -> Iterator[OtherLoad]:
    """Measure how many cores other processes use during the context. `cores` is set at the end of the context.

    At the end, `cpu_seconds` is called. It must return the processor time that the contender used during the context.
    """
    other_load = OtherLoad()
    busy, begun = busy_seconds(), time.perf_counter()
    yield other_load
    seconds, after = time.perf_counter() - begun, busy_seconds()
    if busy is not None and after is not None:
        other_load.cores = max(0.0, (after - busy - cpu_seconds()) / seconds)


def busy_seconds(stat: Path = Path("/proc/stat")) -> float | None:
    """Return the busy seconds since the machine started, summed over all cores. Return None if `stat` does not exist.

    Stolen time, in which other virtual machines used the cores, is included.
    """
    if not stat.exists():
        return None
    user, nice, system, _idle, _waiting, *more = map(int, stat.read_text().split("\n", 1)[0].split()[1:])
    interrupts = sum(more[:3])  # interrupts, soft interrupts, stolen; guests are counted in user
    return (user + nice + system + interrupts) / float(os.sysconf("SC_CLK_TCK"))


def noise(load: float, other_cores: Sequence[float], spreads: dict[str, float]) -> list[str]:
    """Return warnings if other programs used the machine, or if measurements varied widely.

    `load` is the load average before the benchmark, `other_cores` the numbers of cores that other processes used, and
    `spreads` the result of `spread` for each contender.
    """
    warnings = []
    if load > QUIET_LOAD:
        warnings.append(f"the load average was {load:.2f} before the start; quiet is at most {QUIET_LOAD}")
    if other_cores and median(other_cores) > QUIET_CORES:
        warnings.append(
            f"other processes kept {median(other_cores):.2f} cores busy (median; at worst {max(other_cores):.2f}); "
            f"quiet is at most {QUIET_CORES}"
        )
    wide = {name: value for name, value in spreads.items() if value > QUIET_SPREAD}
    if wide:
        worst = max(wide, key=lambda name: wide[name])
        warnings.append(
            f"{len(wide)} of {len(spreads)} contenders' rounds spread by more than {QUIET_SPREAD:.0%} of their median; "
            f"the most: {worst}, {wide[worst]:.0%}"
        )
    return warnings
