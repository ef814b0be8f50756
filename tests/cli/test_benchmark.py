"""The benchmark's own arithmetic, and its contenders' protocol with contenders that are made up."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from rich.console import Console

from mt.cli.benchmark import BENCHMARKS, main
from mt.cli.benchmarks import train, train_ours
from mt.cli.benchmarks.contender import Contender, ContenderError, Launch
from mt.cli.benchmarks.decode import COLUMNS, DecodeRow, cells, metric_of
from mt.cli.benchmarks.grid import best_variant
from mt.cli.benchmarks.harness import Batching, PeerJob, PeerResult, PeerSearch, PeerSetup, sorted_batches
from mt.cli.benchmarks.measure import Ratio, alternate, busy_seconds, noise, percentile, ratio, spread
from mt.cli.benchmarks.peers import Metric, PeerEntry, PeerModels, entries
from mt.cli.benchmarks.queueing import Bisection, poisson_arrivals
from mt.cli.benchmarks.report import show, table, write_json
from mt.cli.benchmarks.serve import sample
from mt.cli.benchmarks.train import list_entries
from mt.cli.benchmarks.train_contender import TrainResult, TrainSettings, TrainTask
from mt.cli.benchmarks.untrained import forced_length
from mt.distributed import World

# A peer that turns each word around, slowly if its dtype is "slow"; "bad" cannot be loaded, and a line "die"
# ends its process.
FAKE = """
import os, sys, time
from mt.cli.benchmarks.harness import run_contender

class Fake:
    def __init__(self, setup):
        print("chatter that is no answer")
        if setup.dtype == "bad":
            raise ValueError("no such dtype")
        self.pause = {"fast": 0.0, "slow": 0.2}[setup.dtype]

    def encode(self, line):
        return line.split()

    def translate(self, sources, search):
        time.sleep(self.pause)
        if ["die"] in sources:
            os._exit(3)
        if ["fail"] in sources:
            raise RuntimeError("cannot do this one")
        return [[word[::-1] for word in source] for source in sources]

    def translate_text(self, lines, search):
        return [self.decode(target) for target in self.translate([self.encode(line) for line in lines], search)]

    def decode(self, tokens):
        return " ".join(tokens)

def main():
    run_contender(Fake)
"""


@dataclass(frozen=True)
class Made:
    """Where the fake contender's module, lines and log are."""

    folder: Path

    def launch(self, dtype: str = "fast", lines: str = "ab cde\nfg\n", lengths: tuple[int, ...] = ()) -> Launch:
        (self.folder / "fake_peer.py").write_text(FAKE, encoding="utf-8")
        source = self.folder / "source.txt"
        source.write_text(lines, encoding="utf-8")
        return Launch("fake_peer", PeerSetup("no-model", str(source), dtype, lengths=lengths))

    @property
    def log(self) -> Path:
        return self.folder / "log"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Made(tmp_path)


def test_ratio_is_of_medians_and_its_range_that_of_the_rounds() -> None:
    assert ratio([2.0, 4.0, 9.0], [1.0, 4.0, 3.0]) == Ratio(4 / 3, 1.0, 3.0)
    assert spread([2.0, 4.0, 9.0]) == 7 / 4


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (25, 1), (50, 2), (75, 3), (76, 4), (95, 4), (100, 4)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: float) -> None:
    assert percentile([4, 2, 1, 3], percent) == expected


def test_contenders_take_turns() -> None:
    seen: list[str] = []

    def measure(contender: str) -> str:
        seen.append(contender)
        return contender.upper()

    found = list(alternate(["a", "b"], 2, measure, pause=0))
    assert seen == ["a", "b", "a", "b"]
    assert found == [(0, 0, "A"), (0, 1, "B"), (1, 0, "A"), (1, 1, "B")]


def test_busy_time_is_all_but_idling_and_waiting(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 8888 1 2 3 50 0\ncpu0 1 2 3 4\n")
    ticks = busy_seconds(stat)
    assert ticks is not None
    assert ticks * 100 == pytest.approx(156 * 100 / os.sysconf("SC_CLK_TCK"))
    assert busy_seconds(tmp_path / "none") is None


def test_a_quiet_machine_gets_no_warning_and_a_noisy_one_each() -> None:
    assert noise(0.1, [0.0, 0.05], {"a": 0.02}) == []
    load, neighbours, wide = noise(2.0, [0.4, 0.6], {"a": 0.02, "b": 0.5})
    assert "2.00" in load
    assert "0.50 cores" in neighbours
    assert "1 of 2" in wide and "b, 50%" in wide


def test_a_contender_answers_jobs(made: Made) -> None:
    with Contender("fake", made.launch(), made.log) as contender:
        bulk = contender.run(PeerJob(5, 2, keep_lines=True))
        assert bulk.lines == ("ba edc", "gf")
        assert bulk.tokens == 3 + 2  # with the ends
        assert bulk.latencies == ()
        single = contender.run(PeerJob(5, 2, single=True, text=True, keep_lines=True))
        assert single.lines == bulk.lines
        assert len(single.latencies) == 2 and sum(single.latencies) <= single.seconds
        assert single.peak_bytes > 1_000_000
        assert contender.startup_seconds > 0
    assert "chatter" in made.log.read_text()


def test_forced_lengths_are_the_tokens_that_are_counted(made: Made) -> None:
    with Contender("fake", made.launch(lengths=(8, 4)), made.log) as contender:
        assert contender.run(PeerJob(1, 2)).tokens == 12
        assert contender.run(PeerJob(1, 1)).tokens == 8


def test_a_contender_that_cannot_load_says_why(made: Made) -> None:
    with pytest.raises(ContenderError, match="fake: ValueError: no such dtype"):
        Contender("fake", made.launch("bad"), made.log)


def test_a_failed_job_is_not_the_end_of_a_contender_but_its_death_is(made: Made) -> None:
    with Contender("fake", made.launch(lines="ok\nfail\ndie\n"), made.log) as contender:
        with pytest.raises(ContenderError, match="RuntimeError: cannot do this one"):
            contender.run(PeerJob(1, 2))
        assert contender.run(PeerJob(1, 1, keep_lines=True)).lines == ("ko",)
        with pytest.raises(ContenderError, match="its process ended"):
            contender.run(PeerJob(1, 3, single=False))


def test_a_package_can_be_kept_from_a_contender(tmp_path: Path) -> None:
    launch = Launch("json", PeerSetup("", ""), without=("json",))
    with pytest.raises(ContenderError, match=r"import of json halted|None in sys\.modules"):
        Contender("fake", launch, tmp_path / "log")


def test_the_fastest_setting_is_chosen_and_one_that_does_not_run_passed_over(made: Made) -> None:
    batchings = (Batching(32), Batching(64))
    entry = PeerEntry("fake", (made.launch("slow"), made.launch("bad"), made.launch("fast")), batchings)
    best, trials = best_variant(entry, Metric(False, 5), 2, made.log)
    assert best.launch.setup.dtype == "fast"
    assert [trial.variant.split()[0] for trial in trials] == ["slow", "slow", "bad", "fast", "fast"]
    assert [trial.seconds is None for trial in trials] == [False, False, True, False, False]


def test_no_setting_that_runs_is_an_error(made: Made) -> None:
    entry = PeerEntry("fake", (made.launch("bad"),), (Batching(32), Batching(64)))
    with pytest.raises(ContenderError, match="every setting failed"):
        best_variant(entry, Metric(True, 1), 2, made.log)


def test_batches_are_sorted_and_within_their_size() -> None:
    sources = [["x"] * length for length in (3, 9, 5, 1, 4)]
    places = range(len(sources))
    assert list(sorted_batches(sources, places, Batching(2))) == [[1, 2], [4, 0], [3]]
    assert list(sorted_batches(sources, places, Batching(10, "tokens"))) == [[1], [2, 4], [0, 3]]


def test_forced_lengths_make_groups() -> None:
    assert list(PeerSearch(4, forced=(8, 4, 8)).groups(3)) == [(8, [0, 2]), (4, [1])]
    assert list(PeerSearch(4).groups(3)) == [(0, [0, 1, 2])]
    assert [forced_length(count) for count in (0, 1, 5, 12, 14)] == [4, 4, 8, 12, 16]


def test_ctranslate2_never_runs_int8_on_several_threads_of_one_worker(tmp_path: Path) -> None:
    models = PeerModels(tmp_path, tmp_path, {"float32": tmp_path, "int8": tmp_path}, cores=4)
    for single in (False, True):
        found = {entry.name: entry for entry in entries(models, Metric(single, 5), ["int8"])}
        assert found["ctranslate2 int8"].launches
        assert {launch.setup.threads for launch in found["ctranslate2 int8"].launches} == {1}
        assert {launch.setup.threads for launch in found["ctranslate2 float32"].launches} == {1, 4}


def test_another_model_of_ours_takes_part_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "teacher").mkdir()
    found = entries(
        PeerModels(tmp_path, tmp_path, second_model=tmp_path / "teacher"), Metric(False, 5), ["float32", "int8"]
    )
    ours = {entry.name: entry.launches[0].setup for entry in found if entry.name.startswith(("ours", "beside"))}
    assert {name: (setup.model, setup.dtype) for name, setup in ours.items()} == {
        "ours float32": (str(tmp_path), "float32"),
        "ours int8": (str(tmp_path), "int8"),
        "beside float32": (str(tmp_path / "teacher"), "float32"),
        "beside int8": (str(tmp_path / "teacher"), "int8"),
    }


@pytest.mark.parametrize(
    ("name", "beside", "expected"), [("ours int8", 5, 2), ("beside int8", 5, 5), ("beside int8", None, 2)]
)
def test_another_model_may_have_its_own_beam_size(name: str, beside: int | None, expected: int) -> None:
    assert metric_of(PeerEntry(name, ()), Metric(False, 2), beside) == Metric(False, expected)


def test_a_peer_that_is_not_installed_is_a_row(tmp_path: Path) -> None:
    found = entries(PeerModels(tmp_path, tmp_path), Metric(False, 5), ["float32"])
    row = next(
        DecodeRow(Metric(False, 5), entry.name, problem=entry.problem) for entry in found if "int8" in entry.name
    )
    console = Console(width=200, record=True)
    console.print(table("decode", COLUMNS, [cells(row)]))
    printed = console.export_text()
    assert "ctranslate2 int8" in printed and "not installed" in printed


def test_the_cells_of_a_row() -> None:
    ids = [PeerResult(seconds, 1.0, 300, 50_000_000) for seconds in (2.0, 1.0, 4.0)]
    text = [PeerResult(4.0, 1.0, 0, 60_000_000)]
    row = DecodeRow(Metric(False, 5), "ours int8", "int8 2x1", ids=ids, text=text, sentences=100)
    row.bleu, row.same, row.ratio, row.startup_seconds, row.size_bytes = (
        30.123,
        0.99,
        Ratio(1.5, 1.25, 1.75),
        2.5,
        31_000_000,
    )
    assert cells(row) == [
        *("bulk beam 5", "ours int8", "int8 2x1", "50", "150", "25", "", ""),
        *("1.50 (1.25-1.75)", "30.12", "99.0%", "60", "2.50", "31"),
    ]


def test_latencies_are_medians_over_rounds_of_each_rounds_percentiles() -> None:
    ids = [
        PeerResult(1.0, 1.0, 9, 1, tuple(fastest + 0.001 * n for n in range(20))) for fastest in (0.001, 0.003, 0.002)
    ]
    row = DecodeRow(Metric(True, 1), "ours", ids=ids, text=ids, sentences=20)
    assert cells(row)[6:8] == ["11.00", "20.00"]
    assert row.costs == pytest.approx([0.010, 0.012, 0.011])


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"ä": [1.5, None]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"ä": [1.5, None]}
    show([table("title", ["a", "b"], [["[x]", "1"], ["y"]]), "warning: [loud]"], tmp_path / "a.txt")
    text = (tmp_path / "a.txt").read_text()
    assert "[x]" in text and "warning: [loud]" in text


@pytest.mark.parametrize("guess", [1.0, 9.0, 10.0, 300.0])
def test_bisection_finds_the_highest_rate_that_passes(guess: float) -> None:
    bisection = Bisection(guess, precision=1.05)
    for _ in range(40):
        if bisection.done:
            break
        bisection.report(bisection.rate, bisection.rate <= 10)
    assert bisection.done and not bisection.unreachable
    assert 10 / 1.05 <= bisection.passed <= 10 < bisection.failed


def test_bisection_gives_up_where_nothing_passes() -> None:
    bisection = Bisection(100)
    tried = 0
    while not bisection.unreachable:
        bisection.report(bisection.rate, False)
        tried += 1
    assert tried < 15


def test_arrivals_of_a_seed_differ_by_their_scale_alone() -> None:
    slow, fast = poisson_arrivals(1.0, 50, 0, seed=3), poisson_arrivals(4.0, 50, 0, seed=3)
    assert fast[: len(slow)] == pytest.approx([time / 4 for time in slow])
    assert fast[-2] < 50 <= fast[-1]
    assert len(poisson_arrivals(1.0, 0, 20, seed=3)) == 20
    many = poisson_arrivals(10.0, 1000, 0, seed=1)
    assert 9_500 < len(many) < 10_500


def test_a_sample_takes_equal_shares_and_is_always_the_same(tmp_path: Path) -> None:
    plain, pairs = tmp_path / "a.en", tmp_path / "b.tsv"
    plain.write_text("".join(f"plain {n}\n" for n in range(50)))
    pairs.write_text("".join(f"pair {n}\tPaar {n}\n" for n in range(80)))
    found = sample([plain, pairs], 20)
    assert len(found) == 20 and found == sample([plain, pairs], 20)
    assert sum(line.startswith("plain") for line in found) == 10


def test_what_the_user_can_put_right_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.en"
    source.write_text("A man.\n\nA dog.\n")
    asked = ["decode", "--source", str(source), "--output", str(tmp_path / "out")]
    assert main(asked) == 2
    assert "MODEL directory or --random" in capsys.readouterr().err
    assert main([*asked, "--random", "tiny"]) == 2
    assert "line 2 is empty" in capsys.readouterr().err
    for beside in (["--beside-beam-size", "5"], ["--beside", "model", "--beside-beam-size", "0"]):
        assert main([*asked, "model", *beside]) == 2
        assert "accepted: a number from 1, together with --beside MODEL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "MODEL directory or --url"),
        (["model", "--url", "http://localhost:1"], "MODEL directory or --url"),
    ],
)
def test_what_serve_cannot_do(asked: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.en"
    source.write_text("A man.\n")
    assert main(["serve", *asked, "--source", str(source), "--output", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_benchmark_is_refused() -> None:
    assert set(BENCHMARKS) == {"decode", "train", "serve", "layers", "trainings", "gpu"}
    with pytest.raises(SystemExit):
        main(["dance"])


@dataclass(frozen=True)
class Data:
    """Prepared data of which only the tokenizer is read."""

    tokenizer: object = field(default_factory=lambda: type("Tokens", (), {})())


def test_trainings_on_a_gpu_run_on_the_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the places that choose the device: there is no GPU."""
    monkeypatch.setattr(train, "select_device", torch.device)
    monkeypatch.setattr(train, "choose_precision", lambda precision, device, world: f"auto on {device}")
    entries = list_entries("cuda")
    assert {entry.settings.device for entry in entries} == {"cuda"}
    assert [entry.label for entry in entries] == [
        "auto on cuda, cuda",
        "auto on cuda, cuda, eager attention",
        "auto on cuda, cuda, sdpa attention",
    ]
    made: list[torch.device] = []

    class Stopped(Exception):
        pass

    def trainer(recipe: object, data: object, folder: Path, device: torch.device, world: World) -> None:
        made.append(device)
        raise Stopped

    monkeypatch.setattr(train_ours, "select_device", torch.device)
    monkeypatch.setattr(train_ours, "load_recipe", lambda path, overrides: None)
    monkeypatch.setattr(train_ours, "load_prepared", lambda path: Data())
    monkeypatch.setattr(train_ours, "keep_freed_memory", lambda: True)
    monkeypatch.setattr(train_ours, "Trainer", trainer)
    task = TrainTask("", "", "", 9, 8, 8, 2, 1, 0.0, 0.1, 1.0, 1, 1.0)
    with pytest.raises(Stopped):
        train_ours.OurTrainer(task, TrainSettings("float32", threads=1, device="cuda"), World(), tmp_path)
    assert made == [torch.device("cuda")]


def test_a_row_of_the_training_table() -> None:
    """The first round, a warm-up, counts for the losses only."""
    row = train.TrainRow(train.TrainEntry("ours", "train_ours", TrainSettings("float32", threads=1)))
    row.results = [
        TrainResult(9.0, 9.0, 1_000_000, losses=(80.0, 60.0), tokens=(10, 10)),
        TrainResult(2.0, 4.0, 3_000_000, losses=(40.0, 30.0), tokens=(10, 20)),
    ]
    assert train.cells(row) == ["ours", "float32, 1x1", "15", "", "8", "8.000", "1.500", "3"]
