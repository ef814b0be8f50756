"""The wrapper of all verbs, and `mt-service export` and `explain` as a user types them."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from mt.checkpoint import read_description
from mt.cli import explain, export
from mt.cli.command import command, report_error, stderr_console, tell, warn
from mt.cli.main import main
from mt.insight.example import describe_example
from tests.conftest import FROZEN
from tests.insight.test_page import EMPTY

SENTENCE = "My husband is very fast."
MISSING = ModuleNotFoundError(name="matplotlib")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (MISSING, 2, "error: matplotlib is not installed. Run pip install 'mt-service[training]'\n"),
    ],
    ids=["closed pipe", "Ctrl+C", "optional package"],
)
def test_errors(error: BaseException, status: int, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    @command
    def fail(argv: Sequence[str]) -> int:
        raise error

    assert (fail([]), capfd.readouterr().err) == (status, message)


def test_other_missing_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    @command
    def import_numpy(argv: Sequence[str]) -> int:
        raise ModuleNotFoundError(name="numpy")

    monkeypatch.setitem(sys.modules, "mt.cli.train", None)  # as if the import of the verb failed
    for verb, arguments in ((import_numpy, []), (main, ["train"])):
        with pytest.raises(ModuleNotFoundError):
            verb(arguments)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"mt-service \d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize(("tool", "package"), [("ctranslate2", "ctranslate2"), ("huggingface", "transformers")])
def test_a_model_is_exported(small_model: Path, tmp_path: Path, tool: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed (extra: interop)")
    assert export.main([str(small_model), str(tmp_path / "out"), "--to", tool]) == 0
    assert "# small for " in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_the_starter_model_is_exported_by_its_name(tmp_path: Path) -> None:
    assert export.main(["starter", str(tmp_path / "out"), "--to", "int8"]) == 0
    assert read_description(tmp_path / "out").name == "starter"


def test_the_example_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--example"]) == 0
    assert capsys.readouterr().out == describe_example() + "\n"


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "draw", lambda explanation: EMPTY)
    assert explain.main([str(FROZEN), SENTENCE, "--output", str(tmp_path)]) == 0
    assert f"{SENTENCE} -> Mein Mann ist sehr schnell." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert "Mein Mann ist sehr schnell." in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_tag_is_the_first_source_token(several_directions: Path, tmp_path: Path) -> None:
    arguments = [str(several_directions), "The dog sees the cat.", "--only", "tokens-source", "--output", str(tmp_path)]
    assert explain.main([*arguments, "--source", "en", "--target", "fr"]) == 0
    assert "fr&gt;</text>" in (tmp_path / "tokens-source.svg").read_text(encoding="utf-8")


def test_names_of_files_do_not_control_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    for show in (partial(tell, stderr_console()), partial(warn, stderr_console()), report_error):
        show("\x1b[31mred\x1b]0;p\x9b\x07.txt ->\nä")
        assert (
            capfd.readouterr().err.removeprefix("warning: ").removeprefix("error: ")
            == "\\x1b[31mred\\x1b]0;p\\x9b\\x07.txt ->\nä\n"
        )
