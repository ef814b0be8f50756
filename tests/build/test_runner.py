"""Stages are run, skipped, resumed, repeated and reported. The programs are fakes that write files."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mt.build.execution import StageExecutor
from mt.build.report import teachers_table
from mt.build.runner import Record, Runner, RunningStage
from mt.build.stage import Candidate, Gate, Stage, folder_of
from mt.errors import BuildError
from tests.conftest import ROOT

FAKE = """
import json, os, sys, time
from pathlib import Path
verb, *argv = sys.argv[1:]
with open("calls.txt", "a") as calls:
    calls.write(f"{verb} {argv[0]}\\n")
if verb == "evaluate":
    print(json.dumps({"scores": [{"name": "BLEU", "value": float(Path(argv[0], "bleu").read_text())}]}))
elif verb == "distil":  # adds the lines 0 to 99 that are still missing, and waits after each while there is a file
    Path(argv[0]).touch()
    for number in range(len(Path(argv[0]).read_text().split()), 100):
        with open(argv[0], "a") as file:
            file.write(f"{number}\\n")
        while Path(argv[1]).exists():
            time.sleep(0.01)
elif verb == "train":
    Path(argv[0]).mkdir(parents=True, exist_ok=True)
    Path(argv[0], "bleu").write_text(argv[1])
elif verb == "prepare":  # waits for another program that runs at the same time
    Path(argv[0]).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    end = time.monotonic() + 30
    while not Path(argv[1]).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
elif verb == "shrink":
    sys.exit("no such teacher")
elif verb == "translate":
    Path(argv[0]).write_text("".join(Path(name).read_text() for name in argv[1:]))
    sys.exit(3)
"""


def lines(name: str, held: str = "-", inputs: tuple[str, ...] = ()) -> Stage:
    output = f"{folder_of(name)}/lines"
    return Stage(name, "distil", (output, held), output, inputs)


def model(name: str, bleu: float, gate: Gate | None = None) -> list[Stage]:
    folder = f"{folder_of(name)}/model"
    score = Stage(f"score-{name}", "evaluate", (folder,), f"{folder_of(f'score-{name}')}/output.json", (name,))
    return [Stage(name, "train", (folder, str(bleu)), folder, gate=gate), replace(score, gate=gate)]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "fake.py").write_text(FAKE)
    (tmp_path / "work").mkdir()
    (tmp_path / "corpora").mkdir()
    return Runner(tmp_path / "work", tmp_path / "corpora", (sys.executable, str(tmp_path / "fake.py")))


def calls(runner: Runner) -> list[str]:
    return (runner.work / "calls.txt").read_text().splitlines()


def test_finished_stages_are_skipped_and_changed_ones_repeated(runner: Runner) -> None:
    (runner.root / "text").write_text("ours\n")
    reads = Stage("b", "translate", ("stages/b/out", "{data}/text"), "stages/b/out", files=("text",))
    stages = [lines("a"), reads, lines("c", inputs=("b",))]
    assert runner.run(stages) == ["a", "b", "c"]
    assert (runner.work / "stages/b/out").read_text() == "ours\n"
    assert runner.run(stages) == []
    (runner.root / "text").write_text("theirs\n")
    assert [stage.name for stage in runner.pending(stages)] == ["b", "c"]
    assert runner.run(stages) == ["b", "c"]
    assert (runner.work / "stages/c/lines").read_text().split()[-1] == "99"  # begun anew, not continued
    (runner.work / "stages/a/lines").unlink()
    assert runner.run(stages) == ["a"]
    record = runner.record("a")
    assert record is not None
    assert record.state == "done"
    assert record.seconds > 0


def test_recipe_is_written_with_the_paths_of_the_corpora(runner: Runner) -> None:
    train = [{"path": "{data}/text"}, {"path": "{data}//elsewhere/text"}, {"path": "stages/a/corpus.{language}"}]
    recipe = {"name": "x", "data": {"language": "de", "train": train, "valid": [{"path": "{data}/valid"}]}}
    runner.run([replace(lines("a"), recipe=recipe)])
    written = tomllib.loads((runner.work / "stages/a/stage.toml").read_text())
    assert written["name"] == "x"
    assert written["data"] == {
        "language": "de",
        "root": ".",
        "train": [{"path": f"{runner.root}/text"}, {"path": "/elsewhere/text"}, {"path": "stages/a/corpus.{language}"}],
        "valid": [{"path": f"{runner.root}/valid"}],
    }


def test_a_failed_stage_is_reported_with_its_log(runner: Runner) -> None:
    stages = [Stage("student", "shrink", ("teacher",), "none"), lines("after")]
    with pytest.raises(BuildError) as error:
        runner.run(stages)
    assert "the stage student failed with status 1" in str(error.value)
    assert "no such teacher" in str(error.value)
    assert runner.record("after") is None


def meeting(name: str, other: str) -> Stage:
    """A stage whose program ends only if that of the stage `other` runs at the same time."""
    output = f"{folder_of(name)}/met"
    return Stage(name, "prepare", (output, f"{folder_of(other)}/met"), output)


def test_independent_stages_run_at_the_same_time(runner: Runner) -> None:
    stages = [meeting("a", "b"), meeting("b", "a"), lines("c", inputs=("a", "b"))]
    reports = []

    def observe(running: Sequence[RunningStage]) -> None:
        reports.append([entry.stage.name for entry in running])

    executed = runner.run(stages, observe, StageExecutor(gpus=("0,1", "2,3")))
    assert set(executed[:2]) == {"a", "b"}
    assert executed[2] == "c"
    assert ["a", "b"] in reports
    gpus = [(runner.work / f"stages/{name}/met").read_text() for name in "ab"]
    assert gpus == ["0,1", "2,3"]


@pytest.mark.parametrize("in_background", [False, True])
def test_a_failed_stage_stops_the_others(runner: Runner, in_background: bool) -> None:
    """In the background of a shell, processes ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if in_background else signal.default_int_handler)
    try:
        check_failed_stage(runner)
    finally:
        signal.signal(signal.SIGINT, before)


def check_failed_stage(runner: Runner) -> None:
    (runner.work / "held").touch()
    stages = [lines("slow", "held"), Stage("student", "shrink", ("teacher",), "none")]
    with pytest.raises(BuildError, match="the stage student failed"):
        runner.run(stages, executor=StageExecutor(slots=2))
    record = runner.record("slow")
    assert record is not None
    assert record.state == "started"
    written = runner.work / "stages/slow/lines"
    size = written.stat().st_size if written.exists() else 0
    (runner.work / "held").unlink()
    time.sleep(0.3)
    assert (written.stat().st_size if written.exists() else 0) == size
    assert runner.run([replace(stages[0])]) == ["slow"]


@pytest.mark.parametrize(
    ("scores", "states", "best"),
    [
        ((30.0, 31.0, 32.0), ["done", "done"], "third"),
        ((30.0, 31.0, 30.5), ["done", "done"], "second"),
        ((30.0, 29.0, 40.0), ["skipped", "skipped"], "first"),
    ],
)
def test_a_round_needs_an_improvement(runner: Runner, scores: tuple[float, ...], states: list[str], best: str) -> None:
    gate = Gate(("score-first",), ("score-second",))
    names = ("first", "second", "third")
    stages = [*model("first", scores[0]), *model("second", scores[1]), *model("third", scores[2], gate)]
    candidates = tuple(Candidate(f"stages/{name}/model", (f"score-{name}",)) for name in names)
    runner.run([*stages, Stage("best", "choose", ("models/best",), "models/best", candidates=candidates)])
    assert [record.state for name in ("third", "score-third") if (record := runner.record(name))] == states
    record = runner.record("best")
    assert record is not None
    assert record.metrics == {"model": f"stages/{best}/model", "BLEU": max(scores) if best != "first" else 30.0}
    assert (runner.work / "models/best/bleu").read_text() == str(record.metrics["BLEU"])


def test_a_killed_build_ends_its_program_and_resumes(runner: Runner, tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from tests.build.test_runner import Runner, lines\n"
    program += "runner = Runner(Path('work'), Path('corpora'), (sys.executable, sys.argv[1]))\n"
    program += "runner.run([lines('a'), lines('b', 'held')])"
    (runner.work / "held").touch()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(tmp_path / "fake.py")]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment)
    written = runner.work / "stages/b/lines"
    while not written.exists() or not written.read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    (runner.work / "held").unlink()
    if sys.platform == "linux":
        time.sleep(0.3)
        assert written.read_text() == "0\n"
    record = runner.record("b")
    assert record is not None and record.state == "started"
    assert runner.run([lines("a"), lines("b", "held")]) == ["b"]
    assert written.read_text() == "".join(f"{number}\n" for number in range(100))
    assert [calls(runner).count(f"distil stages/{name}/lines") for name in "ab"] == [1, 2]


NAMES = ("base", "round1", "round2")
BASE, ROUND1, ROUND2 = (Candidate(f"stages/{name}-en-de-1/model", (f"score-{name}",)) for name in NAMES)
CHOICE = Stage("model-en-de-teacher", "choose", (), "models/en-de-teacher", candidates=(BASE, ROUND1, ROUND2))
STUDENT = Stage("student1", "choose", (), "models/student1", candidates=(Candidate("stages/s/model"),))
RECORDS = {
    CHOICE.name: Record(digest="", state="done", metrics={"model": BASE.model, "BLEU": 9.44}),
    STUDENT.name: Record(digest="", state="done", metrics={"model": "stages/s/model", "BLEU": 0.0}),
}
BLEU = {BASE.scores: 9.44, ROUND1.scores: 6.45}
RUNNER: Any = SimpleNamespace(record=RECORDS.get, bleu=BLEU.get, work=Path())


def test_teachers_with_their_scores() -> None:
    assert teachers_table([CHOICE, STUDENT], RECORDS, RUNNER).splitlines()[4:7] == [
        "| stages/base-en-de-1/model | 9.44 | en-de-teacher |",
        "| stages/round1-en-de-1/model | 6.45 |  |",
        "| stages/round2-en-de-1/model | not trained |  |",
    ]
