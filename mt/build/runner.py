"""Runs stages in order. Each is a program of its own; a finished stage is skipped, an interrupted one is resumed.

The folder of a stage holds `stage.toml` (its recipe, if it has one), `log.txt`, and `stage.json`, the record of its
digest, state, time and figures. The record says `done` only when all output of the stage is on the disk.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import tomli_w
from pydantic import Field, ValidationError

from mt.build.stage import Candidate, Gate, Stage, stage_digests
from mt.errors import BuildError
from mt.files import atomic_file, atomic_folder
from mt.processes import end_with_parent
from mt.section import Section

POLL_SECONDS = 0.2
LOG_LINES = 15  # number of last lines of a log that an error message contains
ACCEPTED_STATUS = {"translate": (0, 3)}  # 3: some lines could not be translated; `distil` drops them
DATA_PLACEHOLDER = "{data}"


class Record(Section):
    """The record of a stage. `seconds` is the time of all attempts, and `figures` are the scores of a model."""

    digest: str
    state: Literal["started", "done", "skipped"] = "started"
    seconds: float = 0.0
    figures: dict[str, Any] = Field(default_factory=dict)


OnProgress = Callable[[Stage, float, float], None]
"""Function that is called with a running stage, its seconds so far, and the share of its work that is done (0 to 1)."""


class Runner:
    """Runs the stages of one build in the folder `work`; `root` is the folder of the corpora."""

    def __init__(self, work: Path, root: Path, command: Sequence[str] = (sys.executable, "-m", "mt")) -> None:
        self.work = work.resolve()
        self.root = root.resolve()
        self.command = tuple(command)

    def record(self, name: str) -> Record | None:
        """Return the record of a stage, or None if the stage has not been started."""
        try:
            return Record.model_validate_json((self.work / "stages" / name / "stage.json").read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None

    def is_done(self, stage: Stage, digest: str) -> bool:
        """Return whether the stage has finished with this digest and its output exists, or the stage was skipped."""
        record = self.record(stage.name)
        if record is None or record.digest != digest:
            return False
        return record.state == "skipped" or (record.state == "done" and (self.work / stage.output).exists())

    def pending(self, stages: Sequence[Stage]) -> list[Stage]:
        """Return the stages that have not finished. Raises: BuildError if files are missing."""
        digests = stage_digests(stages, self.root)
        return [stage for stage in stages if not self.is_done(stage, digests[stage.name])]

    def run(self, stages: Sequence[Stage], progress: OnProgress = lambda stage, seconds, share: None) -> list[str]:
        """Run all stages that have not finished, and return their names. Raises: BuildError if a stage fails."""
        digests = stage_digests(stages, self.root)
        executed = []
        for stage in stages:
            digest = digests[stage.name]
            if self.is_done(stage, digest):
                continue
            folder = self.work / stage.folder
            record = self.record(stage.name)
            if record is None or record.digest != digest:
                shutil.rmtree(folder, ignore_errors=True)
                record = Record(digest=digest)
            folder.mkdir(parents=True, exist_ok=True)
            if stage.gate and not self._improved(stage.gate):
                self._write(stage, record.model_copy(update={"state": "skipped"}))
                continue
            self._write(stage, record.model_copy(update={"state": "started"}))
            if stage.kind == "choose":
                figures = self._choose(stage)
                seconds = record.seconds
            else:
                seconds = self._execute(stage, record, progress)
                figures = self._figures(stage)
            self._write(stage, Record(digest=digest, state="done", seconds=seconds, figures=figures))
            executed.append(stage.name)
        return executed

    def _write(self, stage: Stage, record: Record) -> None:
        with atomic_file(self.work / stage.folder / "stage.json") as file:
            file.write_text(record.model_dump_json(indent=2), encoding="utf-8")

    def _execute(self, stage: Stage, record: Record, progress: OnProgress) -> float:
        """Run the program of a stage, and return the seconds of this and earlier attempts."""
        folder = self.work / stage.folder
        if stage.recipe is not None:
            root = str(self.root) if stage.files else "."
            values = {**stage.recipe, "data": {**stage.recipe["data"], "root": root}}
            (folder / "stage.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
        argv = [argument.replace(DATA_PLACEHOLDER, str(self.root)) for argument in stage.argv]
        began, saved, parent = time.monotonic(), 0.0, os.getpid()
        with (folder / "log.txt").open("ab") as log, (folder / "output.part").open("wb") as output:
            process = subprocess.Popen(
                [*self.command, stage.kind, *argv],
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                preexec_fn=lambda: end_with_parent(parent),
            )
            try:
                while (status := wait(process, POLL_SECONDS)) is None:
                    seconds = time.monotonic() - began
                    if seconds - saved > 5:
                        saved = seconds
                        self._write(stage, record.model_copy(update={"seconds": record.seconds + seconds}))
                    progress(stage, record.seconds + seconds, share_done(stage, self.work))
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
        if status not in ACCEPTED_STATUS.get(stage.kind, (0,)):
            lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
            raise BuildError(
                f"the stage {stage.name} failed with status {status}; its log is {folder / 'log.txt'}. The same "
                "command runs the stage again. Last lines of the log:\n  " + "\n  ".join(lines)
            )
        if stage.output == f"{stage.folder}/output.json":
            (folder / "output.part").replace(folder / "output.json")
        else:
            (folder / "output.part").unlink()
        return record.seconds + time.monotonic() - began

    def _figures(self, stage: Stage) -> dict[str, Any]:
        """Return the scores and conditions that `mt-service evaluate` printed; empty for other verbs."""
        if stage.kind != "evaluate":
            return {}
        figures: dict[str, Any] = json.loads((self.work / stage.output).read_text(encoding="utf-8"))
        return figures

    def bleu(self, names: Iterable[str]) -> float | None:
        """Return the mean BLEU of evaluations, or None if one of them was skipped."""
        values = []
        for name in names:
            record = self.record(name)
            if record is None or record.state != "done":
                return None
            values.append(score(record.figures, "BLEU"))
        return mean(values) if values else None

    def _improved(self, gate: Gate) -> bool:
        before, after = self.bleu(gate.before), self.bleu(gate.after)
        return before is not None and after is not None and after > before

    def _choose(self, stage: Stage) -> dict[str, Any]:
        """Copy the candidate with the best BLEU on the validation set, and return its name and BLEU."""
        scored: list[tuple[float, Candidate]] = []
        for candidate in stage.candidates:
            if not candidate.scores:
                scored.append((0.0, candidate))
            elif (value := self.bleu(candidate.scores)) is not None:
                scored.append((value, candidate))
        value, best = max(scored, key=lambda pair: pair[0])
        with atomic_folder(self.work / stage.output) as folder:
            shutil.copytree(self.work / best.model, folder, dirs_exist_ok=True)
        return {"model": best.model, "BLEU": value}


def score(figures: Mapping[str, Any], name: str) -> float:
    """Return a score of an evaluation by its name, such as BLEU."""
    return next(float(entry["value"]) for entry in figures["scores"] if entry["name"] == name)


def wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status of a process, or None if it still runs after `seconds`."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def share_done(stage: Stage, work: Path) -> float:
    """Return the share of a training that is done, from its last record of metrics; 0 for other stages."""
    if stage.kind != "train" or stage.recipe is None:
        return 0.0
    try:
        last = (work / stage.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
        return float(json.loads(last)["update"]) / float(stage.recipe["training"]["max_updates"])
    except (OSError, ValueError, IndexError):
        return 0.0
