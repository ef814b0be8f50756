"""`mt-service explain` as a user types it."""

from pathlib import Path

import pytest

from mt.cli.explain import main
from mt.insight.example import describe_example

FROZEN = Path(__file__).resolve().parent.parent / "frozen" / "model"
SENTENCE = "My husband is very fast."


def test_the_example_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--example"]) == 0
    assert capsys.readouterr().out == describe_example() + "\n"


@pytest.mark.slow
def test_every_picture_in_light_and_dark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main([str(FROZEN), SENTENCE, "--output", str(tmp_path)]) == 0
    assert f"{SENTENCE} -> Mein Mann ist sehr schnell." in capsys.readouterr().err
    names = {theme: {path.name for path in (tmp_path / theme).iterdir()} for theme in ("light", "dark")}
    assert names["light"] == names["dark"] and len(names["light"]) == 36
    assert {f"{Path(name).stem}.png" for name in names["light"]} < names["light"]
    for path in tmp_path.rglob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert (
            path.read_bytes()
            != (tmp_path / ("dark" if path.parent.name == "light" else "light") / path.name).read_bytes()
        )
    assert "Mein Mann ist sehr schnell." in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_without_matplotlib(
    small_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mt.cli.explain.MISSING_PACKAGE", "matplotlib")
    assert main([str(small_model), "The dog sees the cat.", "--output", str(tmp_path), "--beam-size", "2"]) == 0
    assert "no PNG pictures: matplotlib is missing; install mt-service[training]" in capsys.readouterr().err
    assert (tmp_path / "index.html").exists() and {path.suffix for path in tmp_path.rglob("*.*")} == {".html", ".svg"}
    assert len(list(tmp_path.rglob("*.svg"))) == 2 * 15


def test_one_of_several_directions(
    several_directions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag of the target language is the first source token."""
    monkeypatch.setattr("mt.cli.explain.MISSING_PACKAGE", "matplotlib")
    arguments = [str(several_directions), "The dog sees the cat.", "--output", str(tmp_path)]
    assert main(arguments) == 2
    assert "name the source and target languages; accepted: en-de" in capsys.readouterr().err
    assert main([*arguments, "--source-language", "en", "--target-language", "fr"]) == 0
    assert "fr&gt;</text>" in (tmp_path / "light" / "tokens-source.svg").read_text(encoding="utf-8")


def test_no_sentence(small_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(small_model)]) == 2
    assert "small has no calibration sentence; accepted: SENTENCE after MODEL" in capsys.readouterr().err


def test_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "MODEL is missing; accepted: a model directory, or --example" in capsys.readouterr().err
