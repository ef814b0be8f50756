"""Runs the stages of a build, each in its own process. Finished stages are skipped, interrupted ones resumed.

A stage starts when all stages that it needs have finished and a slot is free. The folder of a stage holds
`stage.toml` (the recipe of the stage, if it has one), `log.txt`, and `stage.json` with the digest, state, seconds and
metrics of the stage. The state is `done` only when all output of the stage is on the disk.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import tomli_w
from pydantic import Field, ValidationError

from mt.build.execution import StageExecutor, interrupt
from mt.build.stage import DATA, ORIGINAL_FOLDER, Candidate, Gate, Stage, stage_digests
from mt.errors import BuildError
from mt.files import atomic_file, atomic_folder
from mt.section import Section

POLL_SECONDS = 0.2
SAVE_SECONDS = 5  # interval at which the seconds of a running stage are saved
LOG_LINES = 15  # number of last lines of a log that an error message contains
ACCEPTED_STATUS = {"translate": (0, 3)}  # 3: some lines could not be translated; `distil` drops them


class Record(Section):
    """Content of `stage.json`. `seconds` is the duration of all attempts to run the stage.

    `metrics` are the scores of a stage `evaluate` or `choose`, and empty for all other stages.
    """

    digest: str
    state: Literal["started", "done", "skipped"] = "started"
    seconds: float = 0.0
    metrics: dict[str, Any] = Field(default_factory=dict)


@dataclass
class RunningStage:
    """A stage whose program is running. `earlier_seconds` is the duration of all earlier attempts."""

    stage: Stage
    process: "subprocess.Popen[bytes]"
    earlier_seconds: float
    folder: Path
    began: float = field(default_factory=time.monotonic)
    saved: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds of this attempt and all earlier ones."""
        return self.earlier_seconds + time.monotonic() - self.began


OnProgress = Callable[[Sequence[RunningStage]], None]
"""Callback for progress: called with the running stages."""


class Runner:
    """Runner of the stages of one build in the folder `work`.

    `root` is the folder of the corpora, and `original` is the directory of the model to tune, if there is one.
    """

    def __init__(
        self,
        work: Path,
        root: Path,
        command: Sequence[str] = (sys.executable, "-m", "mt"),
        original: Path | None = None,
    ) -> None:
        self.work = work.resolve()
        self.root = root.resolve()
        self.original = original and original.resolve()
        self.command = tuple(command)

    def record(self, name: str) -> Record | None:
        """Return the record of a stage, or None if the stage has not been started."""
        try:
            return Record.model_validate_json((self.work / "stages" / name / "stage.json").read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None

    def is_done(self, stage: Stage, digest: str) -> bool:
        """Return whether the stage was skipped, or has finished and its output exists.

        `digest` is the current digest of the stage. Return False if it differs from the digest in `stage.json`.
        """
        record = self.record(stage.name)
        if record is None or record.digest != digest:
            return False
        return record.state == "skipped" or (record.state == "done" and (self.work / stage.output).exists())

    def pending(self, stages: Sequence[Stage]) -> list[Stage]:
        """Return the stages that have not finished. Raises: BuildError if corpora of the stages are missing."""
        digests = stage_digests(stages, self.root, self.original)
        return [stage for stage in stages if not self.is_done(stage, digests[stage.name])]

    def run(
        self,
        stages: Sequence[Stage],
        progress: OnProgress = lambda running: None,
        executor: StageExecutor | None = None,
    ) -> list[str]:
        """Run all stages that have not finished, and return their names without the skipped ones.

        Independent stages run at the same time, as far as `executor` has slots. Without `executor`, one stage at a
        time runs on this machine.

        Raises: BuildError if a stage fails or corpora of the stages are missing. Other running stages are stopped.
        """
        executor = executor or StageExecutor()
        digests = stage_digests(stages, self.root, self.original)
        waiting = [stage for stage in stages if not self.is_done(stage, digests[stage.name])]
        running: list[RunningStage] = []
        executed: list[str] = []
        try:
            while waiting or running:
                unfinished = {stage.name for stage in (*waiting, *(entry.stage for entry in running))}
                ready = next((stage for stage in waiting if not unfinished & {*stage.sources}), None)
                if ready and len(running) < executor.slots:
                    waiting.remove(ready)
                    started = self._start(ready, digests[ready.name], executor, executed)
                    running += [started] if started else []
                    continue
                if running:
                    progress(running)
                    time.sleep(POLL_SECONDS)
                for entry in list(running):
                    if (status := entry.process.poll()) is not None:
                        running.remove(entry)
                        self._finish(entry, status, digests[entry.stage.name])
                        executed.append(entry.stage.name)
                    elif entry.seconds - entry.earlier_seconds > entry.saved + SAVE_SECONDS:
                        entry.saved = entry.seconds - entry.earlier_seconds
                        self._write(entry.stage, Record(digest=digests[entry.stage.name], seconds=entry.seconds))
        finally:
            for entry in running:
                interrupt(entry.process)
        return executed

    def _start(self, stage: Stage, digest: str, executor: StageExecutor, executed: list[str]) -> RunningStage | None:
        """Start the program of a stage. Return None if the stage has no program or is skipped.

        The name of a stage without a program is appended to `executed`.
        """
        record = self.record(stage.name)
        if record is None or record.digest != digest:
            shutil.rmtree(self.work / stage.folder, ignore_errors=True)
            record = Record(digest=digest)
        (self.work / stage.folder).mkdir(parents=True, exist_ok=True)
        if stage.gate and not self._improved(stage.gate):
            self._write(stage, record.model_copy(update={"state": "skipped"}))
            return None
        self._write(stage, record.model_copy(update={"state": "started"}))
        if stage.kind != "choose":
            return RunningStage(stage, self._start_program(stage, executor), record.seconds, self.work / stage.folder)
        self._write(stage, Record(digest=digest, state="done", seconds=record.seconds, metrics=self._choose(stage)))
        executed.append(stage.name)
        return None

    def _write(self, stage: Stage, record: Record) -> None:
        with atomic_file(self.work / stage.folder / "stage.json") as file:
            file.write_text(record.model_dump_json(indent=2), encoding="utf-8")

    def _start_program(self, stage: Stage, executor: StageExecutor) -> "subprocess.Popen[bytes]":
        """Write `stage.toml`, and start the program of a stage."""
        folder = self.work / stage.folder
        if stage.recipe is not None:
            (folder / "stage.toml").write_text(tomli_w.dumps(self._recipe(stage.recipe)), encoding="utf-8")
        argv = [*self.command, stage.kind, *map(self._resolved, stage.argv)]
        return executor.start(argv, self.work, folder / "log.txt", folder / "output.part")

    def _recipe(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recipe `values` with the folder of the corpora in place of `{data}` in the paths of corpora."""
        data = dict(values["data"])
        for part in {"train", "valid"} & {*data}:
            data[part] = [{**corpus, "path": self._resolved(corpus["path"])} for corpus in data[part]]
        return {**values, "data": {**data, "root": "."}}

    def _resolved(self, path: str) -> str:
        """Return a path or other argument of a stage, with the folders that `{data}` and `{original}` stand for."""
        if path.startswith(DATA):
            return str(self.root / path.removeprefix(DATA))
        return path.replace(ORIGINAL_FOLDER, str(self.original))

    def _finish(self, entry: RunningStage, status: int, digest: str) -> None:
        """Record a stage whose program has ended.

        Raises: BuildError with the last lines of the log if the program failed.
        """
        stage, folder = entry.stage, self.work / entry.stage.folder
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
        evaluates = stage.kind == "evaluate"
        scores = json.loads((self.work / stage.output).read_text(encoding="utf-8")) if evaluates else {}
        self._write(stage, Record(digest=digest, state="done", seconds=entry.seconds, metrics=scores))

    def bleu(self, names: Iterable[str]) -> float | None:
        """Return the mean BLEU of the stages `names`, or None if one of them is not done or `names` is empty."""
        values = []
        for name in names:
            record = self.record(name)
            if record is None or record.state != "done":
                return None
            values.append(score(record.metrics, "BLEU"))
        return mean(values) if values else None

    def _improved(self, gate: Gate) -> bool:
        before, after = self.bleu(gate.before), self.bleu(gate.after)
        return before is not None and after is not None and after > before

    def _choose(self, stage: Stage) -> dict[str, Any]:
        """Copy the model of rank `stage.rank` by BLEU to the output of `stage`, and return its path and BLEU.

        Models whose evaluation was skipped are ignored. The BLEU of a model without evaluation is 0.
        """
        scored: list[tuple[float, Candidate]] = []
        for candidate in stage.candidates:
            if not candidate.scores:
                scored.append((0.0, candidate))
            elif (value := self.bleu(candidate.scores)) is not None:
                scored.append((value, candidate))
        value, best = sorted(scored, key=lambda pair: -pair[0])[stage.rank - 1]
        with atomic_folder(self.work / stage.output) as folder:
            shutil.copytree(self.work / best.model, folder, dirs_exist_ok=True)
        return {"model": best.model, "BLEU": value}


def score(evaluation: Mapping[str, Any], name: str) -> float:
    """Return the score `name`, such as BLEU, from the output of an evaluation."""
    return next(float(entry["value"]) for entry in evaluation["scores"] if entry["name"] == name)
