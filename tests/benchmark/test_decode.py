"""The arithmetic of the benchmarks, and the protocol of contenders with a peer that is made up."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from mt.bundled import STARTER_MODEL
from mt.vocabulary import load_tokenizer
from scripts.benchmark.contenders import Metric, Models, PeerEntry, Setting, entries, fastest
from scripts.benchmark.decode import COLUMNS, DecodeRow, add_quality, main
from scripts.benchmark.measure import Ratio, alternate, busy_seconds, noise, percentile, ratio, table, write_results
from scripts.benchmark.peer import PeerJob, PeerResult, PeerSearch, PeerSetup
from scripts.benchmark.peer_ours import OurPeer
from scripts.benchmark.processes import ROOT, Contender, ContenderError, Launch
from scripts.benchmark.untrained import forced_length

# A peer that reverses each word, slowly if its dtype is "slow". The dtype "bad" cannot be loaded, and the line "die"
# ends the process.
REVERSING_PEER = """
import os, time
from mt import VERSION
from scripts.benchmark.peer import run_peer

class Reversing:
    def __init__(self, setup):
        print("a line that is no answer, of", VERSION)
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
            raise RuntimeError("cannot translate this line")
        return [[word[::-1] for word in source] for source in sources]

    def decode(self, tokens):
        return " ".join(tokens)

def main():
    run_peer(Reversing)
"""


class Peers:
    """A checkout whose package `mt` has a version and the reversing peer."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.log, self.source = folder / "checkout", folder / "log", folder / "source.txt"
        (self.checkout / "mt").mkdir(parents=True)
        (self.checkout / "mt" / "__init__.py").write_text("VERSION = 'another checkout'\n", encoding="utf-8")
        (self.checkout / "mt" / "reversing.py").write_text(REVERSING_PEER, encoding="utf-8")

    def launch(self, dtype: str = "fast", lines: str = "ab cde\nfg\n", lengths: tuple[int, ...] = ()) -> Launch:
        self.source.write_text(lines, encoding="utf-8")
        setup = PeerSetup("no-model", str(self.source), dtype, lengths=lengths)
        return Launch("mt.reversing", setup, self.checkout)

    def start(self, *arguments: Any, **named: Any) -> Contender:
        return Contender("reversing", self.launch(*arguments, **named), self.log)


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path)


def run(contender: Contender, job: PeerJob) -> PeerResult:
    return PeerResult(**contender.ask(asdict(job)))


def test_a_ratio_of_medians_and_the_range_of_its_rounds() -> None:
    assert ratio([2.0, 4.0, 9.0], [1.0, 4.0, 3.0]) == Ratio(4 / 3, 1.0, 3.0)
    assert str(Ratio(4 / 3, 1.0, 3.0)) == "1.33 (1.00-3.00)"


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (25, 1), (50, 2), (75, 3), (76, 4), (95, 4), (100, 4)])
def test_a_percentile_is_a_measured_value(percent: float, expected: float) -> None:
    assert percentile([4, 2, 1, 3], percent) == expected


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def measure(contender: str) -> str:
        order.append(contender)
        return contender.upper()

    measured = list(alternate(["a", "b"], 2, measure, pause=0))
    assert order == ["a", "b", "a", "b"]
    assert measured == [("a", "A"), ("b", "B"), ("a", "A"), ("b", "B")]


def test_busy_time_is_without_idling_and_waiting(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 8888 1 2 3 50 0\ncpu0 1 2 3 4\n")
    assert busy_seconds(stat) == pytest.approx(156 / os.sysconf("SC_CLK_TCK"))
    assert busy_seconds(tmp_path / "none") is None


def test_warnings_of_a_noisy_machine() -> None:
    assert noise(0.1, [0.0, 0.05], {"a": [1.0, 1.02]}) == []
    load, others, wide = noise(2.0, [0.4, 0.6], {"a": [1.0, 1.02], "b": [2.0, 2.0, 3.0]})
    assert "2.00" in load and "0.50 cores" in others
    assert "1 of 2" in wide and "b, 50%" in wide


def test_a_contender_answers_jobs(peers: Peers) -> None:
    with peers.start() as contender:
        bulk = run(contender, PeerJob(5, 2, keep_lines=True))
        assert bulk.lines == ["ba edc", "gf"]
        assert bulk.tokens == 3 + 2  # with EOS
        assert bulk.latencies == []
        single = run(contender, PeerJob(5, 2, single=True, keep_lines=True))
        assert single.lines == bulk.lines
        assert len(single.latencies) == 2 and sum(single.latencies) <= single.seconds
        assert single.peak_bytes > 1_000_000
    assert "of another checkout" in peers.log.read_text()


def test_forced_lengths_are_the_counted_tokens(peers: Peers) -> None:
    with peers.start(lengths=(8, 4)) as contender:
        assert run(contender, PeerJob(1, 2)).tokens == 12
        assert run(contender, PeerJob(1, 1)).tokens == 8


def test_a_contender_that_cannot_load(peers: Peers) -> None:
    with pytest.raises(ContenderError, match="reversing: ValueError: no such dtype"):
        peers.start("bad")


def test_a_contender_survives_a_failed_job_but_not_its_death(peers: Peers) -> None:
    with peers.start(lines="ok\nfail\ndie\n") as contender:
        with pytest.raises(ContenderError, match="RuntimeError: cannot translate this line"):
            run(contender, PeerJob(1, 2, single=True))
        assert run(contender, PeerJob(1, 1, keep_lines=True)).lines == ["ko"]
        with pytest.raises(ContenderError, match="its process ended"):
            run(contender, PeerJob(1, 3))


def test_a_package_that_a_contender_cannot_import(tmp_path: Path) -> None:
    launch = Launch("scripts.benchmark.peer_ours", PeerSetup("", ""), without=("torch", "numpy"))
    with pytest.raises(ContenderError, match="import of numpy halted"):
        Contender("ours", launch, tmp_path / "log")


def test_the_fastest_setting_is_chosen(peers: Peers) -> None:
    settings = [Setting(peers.launch(dtype), size) for dtype in ("slow", "bad", "fast") for size in (32, 64)]
    best, tried = fastest(PeerEntry("reversing", settings), Metric(False, 5), 2, peers.log)
    assert best.launch.setup.dtype == "fast"
    assert {name: isinstance(result, float) for name, result in tried.items()} == {
        "slow 1x1 32 examples": True,
        "slow 1x1 64 examples": True,
        "bad 1x1 32 examples": False,
        "fast 1x1 32 examples": True,
        "fast 1x1 64 examples": True,
    }


def test_no_setting_that_runs(peers: Peers) -> None:
    entry = PeerEntry("reversing", [Setting(peers.launch("bad"), size) for size in (32, 64)])
    with pytest.raises(ContenderError, match=r"every setting failed; .*no such dtype"):
        fastest(entry, Metric(True, 1), 2, peers.log)


def test_batches_are_sorted_and_within_their_size() -> None:
    sources = [["x"] * length for length in (3, 9, 5, 1, 4)]
    assert list(PeerSearch(1, 2).batches(sources, range(5))) == [[1, 2], [4, 0], [3]]
    assert list(PeerSearch(1, 10, "tokens").batches(sources, range(5))) == [[1], [2, 4], [0, 3]]


def test_forced_lengths_make_groups() -> None:
    assert list(PeerSearch(4, forced=(8, 4, 8)).groups(3)) == [(8, [0, 2]), (4, [1])]
    assert list(PeerSearch(4).groups(3)) == [(0, [0, 1, 2])]
    assert [forced_length(count) for count in (0, 1, 5, 12, 14)] == [4, 4, 8, 12, 16]


def test_ctranslate2_never_runs_int8_on_several_threads_of_one_worker(tmp_path: Path) -> None:
    models = Models(tmp_path, tmp_path, {"float32": tmp_path, "int8": tmp_path}, cores=4)
    for single in (False, True):
        by_name = {entry.name: entry for entry in entries(models, Metric(single, 5), ["int8"])}
        threads = {
            dtype: {setting.launch.setup.threads for setting in by_name[f"ctranslate2 {dtype}"].settings}
            for dtype in ("int8", "float32")
        }
        assert threads == {"int8": {1}, "float32": {1, 4}}


def test_another_checkout_is_measured_twice(tmp_path: Path) -> None:
    listed = entries(Models(tmp_path, tmp_path, against=tmp_path), Metric(False, 5), ["float32", "int8"])
    checkouts = {entry.name: entry.settings[0].launch.checkout for entry in listed if entry.settings}
    assert checkouts == {
        f"{name} {dtype}": checkout
        for dtype in ("float32", "int8")
        for name, checkout in (("ours", ROOT), ("against", tmp_path), ("control", tmp_path))
    }


def measured(name: str, *seconds: float) -> DecodeRow:
    results = [PeerResult(value, 1.0, 50_000_000, 300, (value, value)) for value in seconds]
    return DecodeRow(Metric(False, 5), name, results=results, lines=["a b", "c"])


def test_baselines_of_ratios() -> None:
    rows = [measured(name, 2.0) for name in ("ours int8", "against int8", "control int8", "ours float32")]
    rows += [measured("against float32", 8.0), measured("ctranslate2 int8", 4.0), measured("ctranslate2 float32", 5.0)]
    add_quality(rows, [], "de")
    assert [row.ratio and row.ratio.value for row in rows] == [1, 1, 1, 4, 1, 0.5, 1.6]
    rows = [measured("ours int8", 2.0), measured("ctranslate2 int8", 4.0), measured("ctranslate2 float32", 5.0)]
    rows[1].lines = ["a b", "d"]
    add_quality(rows, [], "de")
    assert [row.ratio and row.ratio.value for row in rows] == [2, 1, 0.8]
    assert [row.same for row in rows] == [1, 0.5, 1]


def test_a_peer_that_is_not_installed_is_a_row(tmp_path: Path) -> None:
    listed = entries(Models(tmp_path, tmp_path), Metric(False, 5), ["float32"])
    (row,) = [
        DecodeRow(Metric(False, 5), entry.name, problem=entry.problem) for entry in listed if "int8" in entry.name
    ]
    console = Console(width=200, record=True)
    console.print(table("decode", COLUMNS, [row.cells()]))
    printed = console.export_text()
    assert "ctranslate2 int8" in printed and "not installed" in printed


def test_the_cells_of_a_row() -> None:
    row = measured("ours int8", 2.0, 1.0, 4.0)
    row.settings, row.bleu, row.same, row.ratio = "int8 2x1", 30.123, 0.99, Ratio(1.5, 1.25, 1.75)
    shown = ("bulk beam 5", "ours int8", "int8 2x1", "1", "150", "", "", "1.50 (1.25-1.75)", "30.12", "99.0%", "50")
    assert tuple(row.cells()) == shown


def test_latencies_are_medians_over_rounds_of_each_rounds_percentiles() -> None:
    row = DecodeRow(Metric(True, 1), "ours", lines=["a"])
    for shortest in (0.001, 0.003, 0.002):
        row.results.append(PeerResult(1.0, 1.0, 1, 9, [shortest + 0.001 * n for n in range(20)]))
    assert row.cells()[5:7] == ["11.00", "20.00"]
    assert row.costs == pytest.approx([0.010, 0.012, 0.011])


def test_files_of_the_results(tmp_path: Path) -> None:
    parts: list[Table | str] = [table("title", ["a", "b"], [["[x]", "1"], ["y"]]), "warning: [loud]"]
    write_results(tmp_path, parts, {"ä": [1.5, None], "path": tmp_path})
    assert json.loads((tmp_path / "results.json").read_text()) == {"ä": [1.5, None], "path": str(tmp_path)}
    text = (tmp_path / "table.txt").read_text()
    assert "[x]" in text and "warning: [loud]" in text


def test_mistakes_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.en"
    source.write_text("A man.\n\nA dog.\n")
    arguments = ["--source-file", str(source), "--output", str(tmp_path / "out")]
    for more, message in (
        ([], "MODEL directory or --random"),
        (["--random", "tiny"], "line 2 is empty"),
        (["model", "--against", str(tmp_path)], "accepted: a checkout, a folder that contains mt"),
    ):
        assert main([*arguments, *more]) == 2
        assert message in capsys.readouterr().err


def test_sources_begin_with_the_tag_of_the_target_language() -> None:
    peer = OurPeer(PeerSetup(str(STARTER_MODEL), "", direction="en-fr"))
    source = peer.encode("Good morning!")
    assert load_tokenizer(STARTER_MODEL).pieces(source)[0] == "<2fr>"
    (tokens,) = peer.translate([source], PeerSearch(4))
    assert peer.decode(tokens) == "Bonjour !"
