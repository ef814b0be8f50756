"""The arithmetic of the benchmarks, and the protocol of contenders with a peer that is made up."""

import json
from pathlib import Path

import pytest

from mt.bundled import STARTER_MODEL
from scripts.benchmark.contenders import Metric, PeerEntry, Setting, fastest
from scripts.benchmark.decode import DecodeRow, add_quality, main
from scripts.benchmark.measure import Ratio, ratio
from scripts.benchmark.peer import PeerResult, PeerSetup
from scripts.benchmark.processes import Contender, ContenderError, Launch

BULK, SINGLE = Metric(False, 5), Metric(True, 5)

# A peer that reverses each word, slowly if its dtype is "slow". The dtype "bad" cannot be loaded, and the source "die"
# ends the process.
REVERSING_PEER = """
import os, time
from mt import VERSION
from scripts.benchmark.peer import run_peer

def load(setup):
    print("a line that is no answer, of", VERSION)
    if setup.dtype == "bad":
        raise ValueError("no such dtype")

    def translate(sources, job, lengths):
        time.sleep({"fast": 0.0, "slow": 0.2}[setup.dtype])
        if ["die"] in sources:
            os._exit(3)
        if ["fail"] in sources:
            raise RuntimeError("cannot translate this line")
        return [[word[::-1] for word in source] for source in sources]

    return translate

def main():
    run_peer(load)
"""


class Peers:
    """A checkout whose package `mt` has a version and the reversing peer."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.log, self.sources = folder / "checkout", folder / "log", folder / "sources.json"
        (self.checkout / "mt").mkdir(parents=True)
        (self.checkout / "mt" / "__init__.py").write_text("VERSION = 'another checkout'\n", encoding="utf-8")
        (self.checkout / "mt" / "reversing.py").write_text(REVERSING_PEER, encoding="utf-8")

    def setting(
        self, dtype: str = "fast", sources: str = "ab cde\nfg", lengths: tuple[int, ...] = (), batch: int = 0
    ) -> Setting:
        self.sources.write_text(json.dumps([line.split() for line in sources.splitlines()]), encoding="utf-8")
        setup = PeerSetup("no-model", str(self.sources), dtype, lengths=lengths)
        return Setting(Launch("mt.reversing", setup, self.checkout), batch)

    def start(self, setting: Setting) -> Contender:
        return Contender("reversing", setting.launch, self.log)


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path)


def test_a_ratio_of_medians_and_the_range_of_its_rounds() -> None:
    assert ratio([2.0, 4.0, 9.0], [1.0, 4.0, 3.0]) == Ratio(4 / 3, 1.0, 3.0)
    assert str(Ratio(4 / 3, 1.0, 3.0)) == "1.33 (1.00-3.00)"


def test_a_contender_answers_jobs(peers: Peers) -> None:
    setting, forced = peers.setting(), peers.setting(lengths=(8, 4))
    with peers.start(setting) as contender:
        bulk = setting.ask(contender, BULK, 2, keep=True)
        assert bulk.targets == [["ba", "edc"], ["gf"]]
        assert bulk.tokens == 3 + 2  # with EOS
        assert bulk.latencies == []
        single = setting.ask(contender, SINGLE, 2, keep=True)
        assert single.targets == bulk.targets
        assert len(single.latencies) == 2 and sum(single.latencies) <= single.seconds
        assert single.peak_bytes > 1_000_000
    assert "of another checkout" in peers.log.read_text()
    with peers.start(forced) as contender:
        assert [forced.ask(contender, BULK, count).tokens for count in (2, 1)] == [12, 8]


def test_a_contender_survives_a_failed_job_but_not_its_death(peers: Peers) -> None:
    with pytest.raises(ContenderError, match="reversing: ValueError: no such dtype"):
        peers.start(peers.setting("bad"))
    setting = peers.setting(sources="ok\nfail\ndie")
    with peers.start(setting) as contender:
        with pytest.raises(ContenderError, match="RuntimeError: cannot translate this line"):
            setting.ask(contender, SINGLE, 2)
        assert setting.ask(contender, BULK, 1, keep=True).targets == [["ko"]]
        with pytest.raises(ContenderError, match="its process ended"):
            setting.ask(contender, BULK, 3)


def test_the_fastest_setting_is_chosen(peers: Peers) -> None:
    settings = [peers.setting(dtype, batch=size) for dtype in ("slow", "bad", "fast") for size in (32, 64)]
    best, tried = fastest(PeerEntry("reversing", settings), BULK, 2, peers.log)
    assert best.launch.setup.dtype == "fast"
    assert {name: isinstance(result, float) for name, result in tried.items()} == {
        "slow 1x1 32 examples": True,
        "slow 1x1 64 examples": True,
        "bad 1x1 32 examples": False,
        "fast 1x1 32 examples": True,
        "fast 1x1 64 examples": True,
    }
    with pytest.raises(ContenderError, match=r"every setting failed; .*no such dtype"):
        fastest(PeerEntry("reversing", settings[2:4]), SINGLE, 2, peers.log)


def measured(name: str, *seconds: float, metric: Metric = BULK) -> DecodeRow:
    results = [PeerResult(value, 50_000_000, 300, (value, value)) for value in seconds]
    return DecodeRow(metric, name, results=results, lines=["a b", "c"])


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


@pytest.mark.parametrize("only", ["ours", pytest.param("", marks=pytest.mark.slow)])
def test_all_libraries_translate_alike(tmp_path: Path, only: str) -> None:
    source = tmp_path / "a.en"
    source.write_text("Good morning!\nThank you.\n")
    few = ["--rounds", "1", "--beam-size", "4", "--kinds", "single", "--cores", "1", "--dtype", "float32"]
    languages = ["--source", "en", "--target", "fr", "--source-file", str(source)]
    assert main([str(STARTER_MODEL), *languages, "--output", str(tmp_path), *few, "--only", only]) == 0
    rows = {row["name"]: row for row in json.loads((tmp_path / "results.json").read_text())["rows"]}
    assert rows["ours float32"]["lines"][0] == "Bonjour !"
    assert len(rows) == (1 if only else 4)
    assert all(row["same"] == 1 for row in rows.values() if not row["problem"] and "int8" not in row["name"])
