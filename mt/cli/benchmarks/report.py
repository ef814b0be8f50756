"""Output files of a benchmark: a table as text, a JSON file with the results of all rounds, and a plot."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mt.engine.devices import available_cores

from .contender import ROOT

PACKAGES = ("torch", "ctranslate2", "transformers", "sentencepiece", "numpy")


@dataclass(frozen=True)
class Bar:
    """Bar of a contender in a plot. `value` is the median of all rounds, `low` and `high` the extremes."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One of the bar charts in a plot. `unit` is the label of its axis."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


def conditions() -> dict[str, Any]:
    """Return the conditions of a measurement as JSON values: machine, load, commit and versions of packages."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": _processor(),
        "cores": available_cores(),
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "commit": _commit(),
        "versions": {name: number for name in PACKAGES if (number := _version(name))},
    }


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", left: int = 2) -> Table:
    """Return a table. The first `left` columns are aligned to the left, all others to the right."""
    result = Table(title=escape(title), caption=escape(caption) or None, caption_justify="left")
    for place, column in enumerate(columns):
        result.add_column(escape(column), justify="left" if place < left else "right")
    for row in rows:
        result.add_row(*(escape(cell) for cell in row))
    return result


def write_table(path: Path, parts: Sequence[Table | str]) -> None:
    """Write tables and lines to a text file that is 220 columns wide."""
    with path.open("w", encoding="utf-8") as file:
        console = Console(file=file, width=220)
        for part in parts:
            console.print(part, markup=False, highlight=False)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def plot_bars(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Plot bar charts to the file `path`. A line on each bar shows the range of the rounds."""
    matplotlib.use("Agg")
    heights = [len(panel.bars) + 1 for panel in panels]
    figure = Figure(figsize=(9, 1.2 + 0.34 * sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for panel, axis in zip(panels, axes[:, 0], strict=True):
        values = [bar.value for bar in panel.bars]
        reach = [[bar.value - bar.low for bar in panel.bars], [bar.high - bar.value for bar in panel.bars]]
        axis.barh([bar.name for bar in panel.bars], values, xerr=reach, color="#4878a8", ecolor="#222222", capsize=2)
        axis.invert_yaxis()
        axis.set_title(panel.title, loc="left", fontsize=10)
        axis.set_xlabel(panel.unit)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _commit() -> str:
    """Return the id of the commit of this checkout, followed by "+" if files were changed. Return "" without git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return completed.stdout.strip()
