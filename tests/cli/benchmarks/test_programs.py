"""Start of server programs."""

from pathlib import Path

import pytest

from mt.cli.benchmarks.programs import started
from mt.errors import MTError

LISTENS = """
import sys, time
print('{"event": "listening", "port": %s}' % sys.argv[1], flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listens.py").write_text(LISTENS, encoding="utf-8")
    (tmp_path / "fails.py").write_text("raise SystemExit('no model')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_a_program_tells_its_port(tmp_path: Path) -> None:
    with started("listens", ["1234"], tmp_path / "listens.log") as port:
        assert port == 1234


def test_a_program_that_ends_has_not_started(tmp_path: Path) -> None:
    with (
        pytest.raises(MTError, match=r"fails did not start; .*fails.log ends with: no model"),
        started("fails", [], tmp_path / "fails.log"),
    ):
        pytest.fail("it is said to have started")
