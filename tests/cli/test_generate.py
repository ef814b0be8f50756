"""`mt-service generate`, and `evaluate --text`, as a user types them."""

import json
import math
from pathlib import Path

import pytest
import torch

from mt.cli.evaluate import main as evaluate
from mt.cli.generate import main
from mt.scoring.language_model import LanguageModelScorer
from mt.tokenizer import BOS, EOS
from tests.conftest import sentences


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_texts_are_printed(small_language_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [str(small_language_model), "--prompt", "The dog", "--max-length", "8", "--top-k", "5"]
    one = printed(capsys, *options, "--seed", "3")
    assert one.startswith("The dog") and one.endswith("\n") and len(one) > len("The dog\n")
    several = printed(capsys, *options, "--seed", "3", "--count", "3").splitlines()
    assert several[0] + "\n" == one and len(several) == 3
    assert printed(capsys, *options, "--seed", "4") != one
    best = printed(capsys, str(small_language_model), "--prompt", "The dog", "--max-length", "8", "--beam-size", "4")
    assert best.startswith("The dog")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--temperature", "0"], "temperature is 0.0; accepted: a number of at least 0.001"),
        (["--beam-size", "3", "--top-k", "2"], "temperature, top_k and top_p apply to sampling only"),
        (["--beam-size", "2", "--count", "3"], "count is 3; accepted without sampling: at most 2 (beam_size)"),
    ],
)
def test_options_that_cannot_be_used(
    small_language_model: Path, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(small_language_model), *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_translation_model_generates_nothing(small_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(small_model)]) == 2
    assert "is a translation model, but a language model is needed" in capsys.readouterr().err


@torch.inference_mode()
def test_perplexity_by_hand(small_language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*sentences(3), "Größe"]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert evaluate([str(small_language_model), "--text", str(tmp_path / "text")]) == 0
    scores = json.loads(capsys.readouterr().out)
    scorer = LanguageModelScorer.load(small_language_model, "cpu")
    total, tokens = 0.0, 0
    for line in lines:
        ids = scorer.tokenizer.encode(line)
        log = scorer.model(torch.tensor([[BOS, *ids]])).double().log_softmax(-1)[0]
        total += sum(float(log[place, id]) for place, id in enumerate([*ids, EOS]))
        tokens += len(ids) + 1
    characters = sum(map(len, lines)) + 4
    assert scores["units"] == {"token": tokens, "character": characters, "byte": characters + 2}
    assert scores["context"] == "the line" and scores["lines"] == 4
    for unit, number in scores["units"].items():
        assert scores["perplexity"][unit] == pytest.approx(math.exp(-total / number), rel=1e-4)
        assert scores["bits"][unit] == pytest.approx(-total / number / math.log(2), rel=1e-4)


@torch.inference_mode()
def test_perplexity_of_blocks_by_hand(small_language_model: Path) -> None:
    """Two lines as one sequence, in blocks of four tokens."""
    scorer = LanguageModelScorer.load(small_language_model, "cpu")
    scorer.block_tokens = 4
    lines = ["The dog", "sees a cat"]
    encoded = [scorer.tokenizer.encode(line) for line in lines]
    inputs = [id for ids in encoded for id in (BOS, *ids)]
    labels = [id for ids in encoded for id in (*ids, EOS)]
    expected = 0.0
    for begin in range(0, len(inputs), 4):
        log = scorer.model(torch.tensor([inputs[begin : begin + 4]])).double().log_softmax(-1)[0]
        expected += sum(float(log[place, id]) for place, id in enumerate(labels[begin : begin + 4]))
    scored = scorer.score_lines(lines)
    assert scored.tokens == len(labels)
    assert scored.log_probability == pytest.approx(expected, rel=1e-5)


def test_a_text_is_for_a_language_model(small_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("The dog.\n")
    assert evaluate([str(small_model), "--text", str(tmp_path / "text")]) == 2
    assert "is a translation model, but a language model is needed" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        evaluate([str(small_model), "--text", str(tmp_path / "text"), "--worst", "3"])
