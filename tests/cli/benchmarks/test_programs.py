"""Start of server programs."""

from pathlib import Path

import pytest

from mt.cli.benchmarks.programs import ServerProgram, started
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
    with started("a program", ServerProgram("listens", ("1234",)), tmp_path) as port:
        assert port == 1234
    assert (tmp_path / "a-program.log").exists()


def test_a_program_that_ends_has_not_started(tmp_path: Path) -> None:
    with (
        pytest.raises(MTError, match=r"-m fails did not start; .*fails.log ends with: no model"),
        started("fails", ServerProgram("fails", ()), tmp_path),
    ):
        pytest.fail("it is said to have started")
