"""What a run tells: a progress line, `metrics.jsonl`, TensorBoard events and `curves.png`."""

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import matplotlib
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch.utils.tensorboard.writer import SummaryWriter

WATCHED = "watch_loss:"  # begins the name of a figure, which ends with the path of the corpus
JUDGES = {"valid_bleu": "BLEU", "valid_perplexity": "perplexity"}  # one of which decides which model is the best
LINES = 20  # progress lines a run prints where there is no terminal to draw on


class Reporter:
    """A context manager that shows and records a run; a `quiet` one, of a process that does not lead, does neither."""

    def __init__(self, folder: Path, title: str, max_updates: int, done: int, quiet: bool = False) -> None:
        self.folder = folder
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet)
        self.max_updates = max_updates
        self._began, self._done = time.monotonic(), done
        self._next_line = done + max_updates / LINES
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("updates | {task.fields[figures]} |"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=max_updates, completed=done, figures="loss -")
        self._events: SummaryWriter | None = None
        if not quiet:
            _forget_after(self._metrics, done)
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

    def progress(self, update: int, figures: str) -> None:
        """Move the bar to `update`; without a terminal, print a line now and then."""
        self._bar.update(self._task, completed=update, figures=figures)
        if not self.console.is_terminal and update >= self._next_line:
            self._next_line = update + self.max_updates / LINES
            left = (time.monotonic() - self._began) / (update - self._done) * (self.max_updates - update) / 60
            self.say(f"update {update:,} of {self.max_updates:,} | {figures} | {left:.0f} min left")

    def say(self, message: str) -> None:
        """A line above the progress bar."""
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def record(self, update: int, values: dict[str, float]) -> None:
        """Write figures of an update to `metrics.jsonl` and TensorBoard."""
        if self._events is None:
            return
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"update": update, **values}) + "\n")
        for name, value in values.items():
            self._events.add_scalar(name.replace("_", "/", 1), value, update)

    def draw(self) -> None:
        """`curves.png`: losses, and what the model is judged by, over updates."""
        if self.quiet or not self._metrics.exists():
            return
        records = [json.loads(line) for line in self._metrics.read_text(encoding="utf-8").splitlines()]
        with matplotlib.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
            figure = Figure(figsize=(9, 3.5), layout="constrained")
            losses, scores = figure.subplots(1, 2)
            watched = dict.fromkeys(name for record in records for name in record if name.startswith(WATCHED))
            labels = {"train_loss": "training, smoothed", "valid_loss": "validation"}
            for name, label in (labels | {name: name.removeprefix(WATCHED) for name in watched}).items():
                losses.plot(*_curve(records, name), marker=".", markersize=2, label=label)
            judge = next((name for name in JUDGES if any(name in record for record in records)), "valid_bleu")
            scores.plot(*_curve(records, judge), marker=".", color="tab:green")
            losses.set(xlabel="updates", ylabel="nats a target token")
            losses.legend()
            scores.set(xlabel="updates", ylabel=f"{JUDGES[judge]} on the validation set")
            figure.savefig(self.folder / "curves.png", dpi=120)


def _curve(records: list[dict[str, float]], name: str) -> tuple[list[float], list[float]]:
    """Updates, and the figure `name` of each that has it."""
    having = [record for record in records if name in record]
    return [record["update"] for record in having], [record[name] for record in having]


def _forget_after(path: Path, update: int) -> None:
    """Drop records past the checkpoint that a run resumes from, all if there is none: they will be written again."""
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
    aside = path.with_suffix(".part")
    aside.write_text("".join(kept), encoding="utf-8")
    aside.replace(path)
