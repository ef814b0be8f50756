"""The wrapper of all verbs."""

import re
import sys
from collections.abc import Sequence

import pytest

from mt.cli.command import command
from mt.cli.main import main


@command
def print_to_closed_pipe(argv: Sequence[str]) -> int:
    raise BrokenPipeError


def test_a_closed_pipe_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert print_to_closed_pipe([]) == 141
    assert capfd.readouterr().err == ""


@command
def interrupt(argv: Sequence[str]) -> int:
    raise KeyboardInterrupt


def test_ctrl_c_is_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    assert interrupt([]) == 130
    assert capfd.readouterr().err == "stopped\n"


@command
def import_a_missing_package(argv: Sequence[str]) -> int:
    raise ModuleNotFoundError(name=argv[0])


def test_a_missing_optional_package(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert import_a_missing_package(["matplotlib"]) == 2
    assert capfd.readouterr().err == "error: matplotlib is not installed. Run pip install 'mt-service[training]'\n"
    with pytest.raises(ModuleNotFoundError):
        import_a_missing_package(["numpy"])
    monkeypatch.setitem(sys.modules, "mt.cli.train", None)  # as if the import of the verb failed
    with pytest.raises(ModuleNotFoundError):
        main(["train"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"mt-service \d+\.\d+\S*\n", capsys.readouterr().out)
