"""`scripts/select_data.py` as a user types it, and its parts by hand."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from mt.cli import select_data
from mt.cli.select_data import differences, main
from mt.scoring.language_model import LanguageModelScorer
from tests.conftest import sentences, write_language_model

LINES = [*sentences(30), "", "The dog " * 300]


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("models") / "general", "de", seed=3)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Text, compressed, and beside it the numbers of its lines."""
    text, beside = tmp_path / "web.de.gz", tmp_path / "web.en"
    text.write_bytes(gzip.compress("".join(f"{line}\n" for line in LINES).encode()))
    beside.write_text("".join(f"{number}\n" for number in range(len(LINES))))
    return [text, beside]


def select(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_a_difference_is_a_token_of_the_general_model(small_language_model: Path, general: Path) -> None:
    like, unlike = (LanguageModelScorer.load(path, "cpu") for path in (small_language_model, general))
    found = differences(like, unlike, LINES)
    assert found[-2:] == [-np.inf, -np.inf]
    for text, difference in zip(LINES[:5], found, strict=False):
        (first,), (second,) = like.score([text]), unlike.score([text])
        expected = (first.log_probability - second.log_probability) / (len(unlike.tokenizer.encode(text)) + 1)
        assert difference == pytest.approx(expected, abs=1e-4)


def test_pairs_are_chosen_together_and_keep_their_order(
    small_language_model: Path,
    general: Path,
    files: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    like, unlike = (LanguageModelScorer.load(path, "cpu") for path in (small_language_model, general))
    scores = differences(like, unlike, LINES)
    expected = sorted(sorted(range(len(LINES)), key=lambda number: -scores[number])[:7])
    monkeypatch.setattr(select_data, "CHUNK", 4)
    out = tmp_path / "out"
    assert select(small_language_model, general, *files, "--keep", 7, "--out", out, "--device", "cpu") == 0
    assert "7 of 32 lines" in capsys.readouterr().err
    assert (out / "web.de").read_text() == "".join(f"{LINES[number]}\n" for number in expected)
    assert (out / "web.en").read_text() == "".join(f"{number}\n" for number in expected)

    assert select(small_language_model, general, files[0], "--keep", 99, "--out", out, "--device", "cpu") == 0
    assert "30 of 32 lines" in (said := capsys.readouterr().err) and "2 are empty or too long" in said
    assert (out / "web.de").read_text() == "".join(f"{line}\n" for line in LINES[:30])


def test_errors(
    small_language_model: Path,
    small_model: Path,
    general: Path,
    files: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files[1].write_text("one\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "web.en").write_text("one\n")
    english = write_language_model(tmp_path / "english", "en", seed=4)
    for arguments, message in (
        (
            (general, *files, "--out", tmp_path / "out"),
            "web.en has 1 lines; accepted: files with the same number of lines",
        ),
        ((general, files[1], "--out", tmp_path), "web.en; accepted: another folder"),
        ((general, files[1], tmp_path / "other" / "web.en", "--out", tmp_path / "out"), "have the same name"),
        ((english, *files, "--out", tmp_path / "out"), "of en; accepted: two models of the same language"),
        ((small_model, *files, "--out", tmp_path / "out"), "is a translation model, but a language model is needed"),
    ):
        assert select(small_language_model, *arguments, "--keep", 3) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ") and message in said
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        select(small_language_model, general, *files, "--keep", 0, "--out", tmp_path / "out")
