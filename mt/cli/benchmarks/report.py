"""Output files of a benchmark: a table as text, and a JSON file with the results of all rounds."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mt.engine.devices import available_cores

from .contender import ROOT

WIDTH = 220  # columns
PACKAGES = ("torch", "ctranslate2", "transformers", "sentencepiece", "numpy")


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


def show(parts: Sequence[Table | str], path: Path) -> None:
    """Print tables and lines, and write them to the text file `path`."""
    with path.open("w", encoding="utf-8") as file:
        for console in (Console(width=WIDTH), Console(file=file, width=WIDTH)):
            for part in parts:
                console.print(part, markup=False, highlight=False)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


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
