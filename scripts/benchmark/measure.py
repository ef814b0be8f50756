"""Alternating measurements, ratios with their spread, the load by other processes, and the files of the results."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mt.engine.devices import available_cores

from .processes import ROOT

S = TypeVar("S")
M = TypeVar("M")

PAUSE = 0.3  # seconds between two contenders, so that the spinning threads of the first one stop
QUIET_LOAD = 0.5  # load average of the last minute, before the first contender starts
QUIET_CORES = 0.1  # cores that other processes use on average while a contender is measured
QUIET_SPREAD = 0.15  # (largest - smallest) / median over the rounds of one contender
WIDTH = 200  # columns of a table
PACKAGES = ("torch", "ctranslate2", "transformers", "sentencepiece", "numpy")


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians, with the lowest and the highest ratio in a single round."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Return the ratio of `values` to `baseline`. Element n of both sequences was measured in round n."""
    ratios = [value / other for value, other in zip(values, baseline, strict=True)]
    return Ratio(median(values) / median(baseline), min(ratios), max(ratios))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of `values` such that at least `percent` percent of all values are not above it."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def alternate(
    contenders: Sequence[S], rounds: int, measure: Callable[[S], M], pause: float = PAUSE
) -> Iterator[tuple[S, M]]:
    """Measure the contenders in turn (A B C A B C ...), with a pause of `pause` seconds before each measurement."""
    for _ in range(rounds):
        for contender in contenders:
            time.sleep(pause)
            yield contender, measure(contender)


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


def noise(load: float, other_cores: Sequence[float], costs: Mapping[str, Sequence[float]]) -> list[str]:
    """Return warnings if other programs used the machine, or if measurements varied widely.

    `load` is the load average before the benchmark, `other_cores` the numbers of cores that other processes used, and
    `costs` has a value of each round for each contender.
    """
    warnings = []
    if load > QUIET_LOAD:
        warnings.append(f"the load average was {load:.2f} before the start; quiet is at most {QUIET_LOAD}")
    if other_cores and median(other_cores) > QUIET_CORES:
        warnings.append(
            f"other processes kept {median(other_cores):.2f} cores busy (median; at worst {max(other_cores):.2f}); "
            f"quiet is at most {QUIET_CORES}"
        )
    spreads = {name: (max(values) - min(values)) / median(values) for name, values in costs.items()}
    if wide := {name: spread for name, spread in spreads.items() if spread > QUIET_SPREAD}:
        worst = max(wide, key=lambda name: wide[name])
        warnings.append(
            f"{len(wide)} of {len(spreads)} contenders' rounds spread by more than {QUIET_SPREAD:.0%} of their median; "
            f"the most: {worst}, {wide[worst]:.0%}"
        )
    return [f"warning: {warning}" for warning in warnings]


def conditions() -> dict[str, Any]:
    """Return the conditions of a measurement as JSON values: machine, load, commit and versions of packages."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": _processor(),
        "cores": available_cores(),
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "commit": commit(ROOT),
        "versions": {name: number for name in PACKAGES if (number := _version(name))},
    }


def commit(checkout: Path) -> str:
    """Return the id of the commit of a checkout, followed by "+" if files were changed. Return "" without git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    completed = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return completed.stdout.strip()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", left: int = 2) -> Table:
    """Return a table. The first `left` columns are aligned to the left, all others to the right."""
    result = Table(title=escape(title), caption=escape(caption) or None, caption_justify="left")
    for place, column in enumerate(columns):
        result.add_column(escape(column), justify="left" if place < left else "right")
    for row in rows:
        result.add_row(*(escape(cell) for cell in row))
    return result


def write_results(folder: Path, parts: Sequence[Table | str], values: Mapping[str, Any]) -> None:
    """Print tables and lines, and write them to `table.txt`; write `values` to `results.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "table.txt").open("w", encoding="utf-8") as file:
        for console in (Console(width=WIDTH), Console(file=file, width=WIDTH)):
            for part in parts:
                console.print(part, markup=False, highlight=False)
    text = json.dumps(values, ensure_ascii=False, indent=1, default=str)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
