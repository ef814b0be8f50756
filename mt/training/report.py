"""Report of a training run: progress bar or log lines, `metrics.jsonl`, TensorBoard events and `curves.png`."""

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mt.config import TrainingConfig
from mt.files import atomic_file

try:  # the extra `training` installs both packages
    import matplotlib
    from matplotlib.figure import Figure
    from torch.utils.tensorboard.writer import SummaryWriter
except ImportError as error:
    MISSING_PACKAGE = str(error.name)
else:
    MISSING_PACKAGE = ""

BLEU = "valid_bleu"  # name of the metric that selects the best checkpoint
MONITORED = "monitor_loss:"  # prefix of the metric of a monitored corpus, before its path
LOG_INTERVAL = 30  # seconds between progress lines if the output is not a terminal


class Reporter:
    """Context manager that shows the progress of a run and records the metrics. If `quiet`, it does nothing."""

    def __init__(self, folder: Path, title: str, config: TrainingConfig, done: int, quiet: bool = False) -> None:
        """Prepare the files in `folder`.

        `title` is the label of the progress bar. `done` is the number of updates that an earlier process has done, if
        the run is resumed. Metrics of later updates are deleted.
        """
        self.folder = folder
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet)
        self.config = config
        self._began, self._done = time.monotonic(), done
        self._last_line = self._began
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]} |"),
            TimeElapsedColumn(),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=1.0, status="loss -")
        self._events: SummaryWriter | None = None
        if not quiet:
            _truncate_metrics(self._metrics, done)
        if MISSING_PACKAGE:
            self.print(f"no TensorBoard, no curves.png: {MISSING_PACKAGE} is missing; install mt-service[training]")
        elif not quiet:
            self._events = SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)

    @property
    def _metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._events is not None:
            self._events.close()

    def show_progress(self, update: int, seconds: float, metrics: str) -> None:
        """Move the progress bar; if the output is not a terminal, print a line every `LOG_INTERVAL` seconds.

        `seconds` is the duration of the run so far, including earlier processes if the run was resumed. `metrics` is a
        text with the current metrics.
        """
        now, config = time.monotonic(), self.config
        share = update / config.max_updates
        left = (now - self._began) / max(update - self._done, 1) * (config.max_updates - update)
        if config.max_minutes is not None:
            share, left = max(share, seconds / 60 / config.max_minutes), min(left, 60 * config.max_minutes - seconds)
        # Under a time limit, `max_updates` is not shown: its default is far more than a few minutes allow.
        limit = "" if config.max_minutes is not None else f" of {config.max_updates:,}"
        status = f"update {update:,}{limit} | {metrics} | {_duration(left)} left"
        self._bar.update(self._task, completed=share, status=status)
        if not self.console.is_terminal and now - self._last_line >= LOG_INTERVAL:
            self._last_line = now
            self.print(status)

    def print(self, message: str) -> None:
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def record(self, update: int, values: dict[str, float]) -> None:
        """Write the metrics `values` of an update to `metrics.jsonl` and TensorBoard."""
        if self.quiet:
            return
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"update": update, **values}) + "\n")
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name.replace("_", "/", 1), value, update)

    def plot(self) -> None:
        """Write `curves.png`, which plots the losses and the BLEU over the number of updates."""
        if self.quiet or MISSING_PACKAGE or not self._metrics.exists():
            return
        records = [json.loads(line) for line in self._metrics.read_text(encoding="utf-8").splitlines()]
        with matplotlib.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
            figure = Figure(figsize=(9, 3.5), layout="constrained")
            losses, scores = figure.subplots(1, 2)
            monitored = dict.fromkeys(name for record in records for name in record if name.startswith(MONITORED))
            labels = {"train_loss": "training, smoothed", "valid_loss": "validation"}
            for name, label in (labels | {name: name.removeprefix(MONITORED) for name in monitored}).items():
                losses.plot(*_curve(records, name), marker=".", markersize=2, label=label)
            scores.plot(*_curve(records, BLEU), marker=".", color="tab:green")
            losses.set(xlabel="updates", ylabel="nats per target token")
            losses.legend()
            scores.set(xlabel="updates", ylabel="BLEU on the validation set")
            figure.savefig(self.folder / "curves.png", dpi=120)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _curve(records: list[dict[str, float]], name: str) -> tuple[list[float], list[float]]:
    """Return (updates, values) of the metric `name`, from the records that contain it."""
    points = [record for record in records if name in record]
    return [point["update"] for point in points], [point[name] for point in points]


def _truncate_metrics(path: Path, update: int) -> None:
    """Delete the records of all updates after `update` from the file `path`. Delete all records if `update` is 0."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # a line cut short by a kill
            continue
        if update and record["update"] <= update:
            kept.append(line + "\n")
    with atomic_file(path) as file:
        file.write_text("".join(kept), encoding="utf-8")
