"""Test that the CPU time of a function is proportional to the size of its input."""

import gc
import math
import time
from collections.abc import Callable

RUNS = 5
FACTOR = 3  # largest accepted ratio of the times at twice the size and at the size; 4 is quadratic
NOISE = 0.001  # seconds; a shorter time says nothing

Prepare = Callable[[int], Callable[[], object]]
"""A function from a size to the call that is measured."""


def assert_linear(prepare: Prepare, size: int) -> None:
    """Measure at two sizes, and at larger ones if that fails: caches and other processes disturb a measurement."""
    for begin in (1, 1, 2, 4):
        once, twice = measure(prepare(begin * size), prepare(2 * begin * size))
        if is_linear(once, twice):
            break
    print(f"{1000 * once:.1f} ms, {1000 * twice:.1f} ms")
    assert is_linear(once, twice)


def is_linear(once: float, twice: float) -> bool:
    return twice <= FACTOR * max(once, NOISE)


def measure(small: Callable[[], object], large: Callable[[], object]) -> tuple[float, float]:
    """Return the least CPU time of some runs of each call, in seconds.

    The first run of a call compiles expressions and fills caches, so the small one, whose time must not be overrated,
    runs once more.
    """
    once, twice = cpu_time(small), math.inf
    for _ in range(RUNS):
        once, twice = min(once, cpu_time(small)), min(twice, cpu_time(large))
        if is_linear(once, twice):
            break
    return once, twice


def cpu_time(call: Callable[[], object]) -> float:
    """Return the CPU time of one call without garbage collections: their moments differ from run to run."""
    gc.disable()
    try:
        begin = time.process_time()
        call()
        return time.process_time() - begin
    finally:
        gc.enable()
