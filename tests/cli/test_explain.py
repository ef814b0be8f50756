"""`mt-service explain` as a user types it."""

from pathlib import Path

import pytest

from mt.cli.explain import main
from mt.insight.example import describe_example
from tests.insight.test_page import EMPTY

FROZEN = Path(__file__).resolve().parent.parent / "frozen" / "model"
SENTENCE = "My husband is very fast."


def test_the_example_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--example"]) == 0
    assert capsys.readouterr().out == describe_example() + "\n"


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.cli.explain.draw", lambda explanation: EMPTY)
    assert main([str(FROZEN), SENTENCE, "--output", str(tmp_path)]) == 0
    assert f"{SENTENCE} -> Mein Mann ist sehr schnell." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert "Mein Mann ist sehr schnell." in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_several_directions(several_directions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tag of the target language is the first source token."""
    arguments = [str(several_directions), "The dog sees the cat.", "--only", "tokens-source", "--output", str(tmp_path)]
    assert main(arguments) == 2
    assert "the model has several directions: give source and target; accepted: en-de" in capsys.readouterr().err
    assert main([*arguments, "--source", "en", "--target", "fr"]) == 0
    assert "fr&gt;</text>" in (tmp_path / "tokens-source.svg").read_text(encoding="utf-8")
