"""`scripts/rerank.py` as a user types it, after `scripts/translate.py`."""

import json
from pathlib import Path

import pytest

from mt.cli import translate
from mt.cli.rerank import main
from mt.scoring.language_model import LanguageModelScorer
from tests.conftest import sentences, write_model

SOURCES = [*sentences(8), ""]


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en"])


@pytest.fixture(scope="module")
def nbest(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nbest")
    (folder / "in.en").write_text("".join(f"{text}\n" for text in SOURCES), encoding="utf-8")
    asked = [str(small_model), str(folder / "in.en"), "--sentences", "--n-best", "3", "--json"]
    assert translate.main([*asked, "--output", str(folder / "out.jsonl.gz")]) == 0
    assert translate.main([*asked, "--output", str(folder / "out.jsonl")]) == 0
    return folder / "out.jsonl"


def lists(nbest: Path) -> list[list[str]]:
    entries = [json.loads(line) for line in nbest.read_text(encoding="utf-8").splitlines()]
    return [[each["translation"] for each in entry.get("alternatives", [entry])] for entry in entries]


def output(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[str], str]:
    assert main([str(argument) for argument in arguments]) == 0
    found = capfd.readouterr()
    return found.out[:-1].split("\n"), found.err


def test_without_weight_the_search_decides(nbest: Path, backward: Path, capfd: pytest.CaptureFixture[str]) -> None:
    best = [each[0] for each in lists(nbest)]
    for file in (nbest, nbest.with_name("out.jsonl.gz")):
        found, told = output(capfd, file, "--backward", backward, "--weights", "backward=0")
        assert found == best and "0 of 9 lines changed" in told


def test_tuning_gains_and_its_weights_can_be_used_again(
    nbest: Path, backward: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted, _ = output(capfd, nbest, "--backward", backward, "--weights", "backward=0.5", "length=0.2")
    assert wanted != [each[0] for each in lists(nbest)]
    assert all(text in candidates for text, candidates in zip(wanted, lists(nbest), strict=True))
    references = tmp_path / "de"
    references.write_text("".join(f"{line}\n" for line in wanted), encoding="utf-8")
    tuned, told = output(capfd, nbest, "--backward", backward, "--tune", references)
    assert tuned == wanted
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in told.splitlines()]
    scores = {row[0]: row[1:3] for row in rows if len(row) == 4}
    assert float(scores["BLEU"][0]) < float(scores["BLEU"][1]) == 100
    weights = [f"{row[0]}={row[1]}" for row in rows if row[0] in ("backward", "length")]
    assert len(weights) == 2
    assert output(capfd, nbest, "--backward", backward, "--weights", *weights)[0] == tuned


def test_a_language_model_alone_or_beside_the_other(
    nbest: Path, backward: Path, small_language_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scorer = LanguageModelScorer.load(small_language_model, "cpu")
    likeliest = [max(each, key=lambda text: scorer.score([text.strip()])[0].mean) for each in lists(nbest)]
    assert likeliest != [each[0] for each in lists(nbest)]
    alone = ("--language-model", small_language_model)
    assert output(capfd, nbest, *alone, "--weights", "language=1e6")[0] == likeliest
    both = ("--backward", backward, *alone)
    assert output(capfd, nbest, *both, "--weights", "language=1e6", "backward=0.1", "length=0.1")[0] == likeliest
    with_one = output(capfd, nbest, "--backward", backward, "--weights", "backward=0.5")[0]
    assert output(capfd, nbest, *both, "--weights", "backward=0.5")[0] == with_one


def test_a_language_model_of_the_target(
    nbest: Path, small_language_model: Path, several_directions: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = [str(nbest), "--backward", str(several_directions), "--language-model", str(small_language_model)]
    assert main([*asked, "--direction", "en-fr", "--weights", "language=1"]) == 2
    assert "is a model of de; accepted: a model of en, the source language of --backward" in capfd.readouterr().err


def test_a_line_that_could_not_be_translated_stays_empty(
    nbest: Path, backward: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text(nbest.read_text(encoding="utf-8") + '{"problem": "not UTF-8"}\n', encoding="utf-8")
    assert output(capfd, file, "--backward", backward, "--weights", "length=0")[0][-2:] == ["", ""]


@pytest.mark.parametrize(
    ("lines", "arguments", "message"),
    [
        (
            None,
            ["--weights", "backward=x", "long=1"],
            "'backward=x': not NAME=NUMBER\n  - 'long' is not a feature; accepted",
        ),
        (None, ["--weights", "length=1", "--direction", "en-de"], "--direction is 'en-de'; accepted: de-en"),
        (None, ["--tune", "SHORT"], "hypotheses: 9"),
        (["Der Hund.", '{"translation": "x"}', "[]"], ["--weights", "length=1"], "line 1: JSON: Invalid JSON"),
        (['{"translation": "x", "score": "y"}'], ["--weights", "length=1"], "line 1: score: Input should be a valid"),
        (['{"translation": "x"}'], ["--weights", "length=1"], "no line has alternatives; accepted: output of"),
    ],
)
def test_errors(
    nbest: Path,
    backward: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    lines: list[str] | None,
    arguments: list[str],
    message: str,
) -> None:
    file, short = tmp_path / "given.jsonl", tmp_path / "short"
    file.write_text("\n".join(lines) if lines else nbest.read_text(encoding="utf-8"), encoding="utf-8")
    short.write_text("one\n")
    asked = [str(short) if argument == "SHORT" else argument for argument in arguments]
    assert main([str(file), "--backward", str(backward), *asked]) == 2
    found = capfd.readouterr()
    assert found.out == "" and found.err.startswith("error: ") and message in found.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backward", "model"],
        ["--backward", "model", "--tune", "a", "--weights", "length=1"],
        ["--tune", "a"],
        ["--tune", "a", "--language-model", "model", "--direction", "de-en"],
    ],
)
def test_usage(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["file", *arguments])
    assert ended.value.code == 2
    assert "usage:" in capfd.readouterr().err
