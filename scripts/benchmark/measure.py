"""Ratios with their spread, warnings about a machine that is not quiet, and the files of the results."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mt.engine.devices import available_cores

from .processes import ROOT

PAUSE = 0.3  # seconds between two contenders, so that the spinning threads of the first one stop
QUIET_LOAD = 0.5  # load average of the last minute, before the first contender starts
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


def noise(load: float, costs: Mapping[str, Sequence[float]]) -> list[str]:
    """Return warnings if other programs used the machine, or if measurements varied widely.

    `load` is the load average before the benchmark. `costs` has a value of each round for each contender.
    """
    warnings = []
    if load > QUIET_LOAD:
        warnings.append(f"the load average was {load:.2f} before the start; quiet is at most {QUIET_LOAD}")
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
