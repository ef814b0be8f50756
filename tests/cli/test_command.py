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


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["explian"], "unknown verb 'explian' (did you mean explain?)"),
        (["translate", "--modle", "m"], "unrecognized arguments: --modle (did you mean --model?)"),
        (["serve", "--prot=80"], "unrecognized arguments: --prot (did you mean --port?)=80"),
        (["keys", "list", "--databse", "x"], "unrecognized arguments: --databse (did you mean --database?) x"),
        (["train", "r.toml", "--quux"], "unrecognized arguments: --quux\n"),
    ],
)
def test_the_nearest_verb_or_option_is_suggested(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(argv)
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == 2 and message in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"mt-service \d+\.\d+\S*\n", capsys.readouterr().out)
