"""`scripts/translate.py` as a user types it."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mt import Translator
from scripts import translate
from scripts.translate import main
from tests.conftest import sentences

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["The dog sees the cat.", "", "  The cat draws the dog. ", " ", "The river."]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file with empty lines, spaces at the ends and a Windows line end."""
    file = tmp_path / "in.en"
    file.write_bytes("\r\n".join(TEXTS).encode())
    return file


def output(capfd: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main([str(argument) for argument in arguments]) == 0
    found = capfd.readouterr()
    assert found.err == ""
    assert found.out.endswith("\n")
    return found.out[:-1].split("\n")


def test_one_line_in_one_line_out(small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = [found.text for found in Translator.load(small_model, "cpu").translate(TEXTS)]
    assert output(capfd, small_model, lines) == expected
    assert expected[1] == "" and expected[2].startswith("  ")


def test_standard_input(small_model: Path) -> None:
    """The only test in a process of its own: the others call `main`."""
    text = "".join(line + "\n" for line in sentences(30))
    done = subprocess.run(
        [sys.executable, "scripts/translate.py", str(small_model), "--threads", "1"],
        cwd=ROOT,
        env=os.environ | {"LC_ALL": "C"},
        input=text.encode(),
        capture_output=True,
    )
    assert done.returncode == 0 and done.stderr == b""
    expected = Translator.load(small_model, "cpu").translate(sentences(30))
    assert done.stdout.decode("utf-8") == "".join(found.text + "\n" for found in expected)


def test_many_chunks_keep_the_order(
    small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in.gz"
    file.write_bytes(gzip.compress("\n".join(sentences(50)).encode()))
    together = output(capfd, small_model, file)
    monkeypatch.setattr(translate, "LINES_AT_A_TIME", 7)
    assert output(capfd, small_model, file) == together
    assert len(together) == 50


def test_json(small_model: Path, lines: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.jsonl"
    assert main([str(small_model), str(lines), "--json", "--n-best", "4", "--output", str(file)]) == 0
    assert capfd.readouterr().out == ""
    first, empty, *_ = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert list(first) == ["source", "translation", "score", "log_probability", "alternatives"]
    assert first["source"] == "The dog sees the cat."
    assert len(first["alternatives"]) == 4
    assert first["alternatives"][0] == {name: first[name] for name in ("translation", "score", "log_probability")}
    assert empty == {"source": "", "translation": "", "score": 0.0, "log_probability": 0.0}
    best = Translator.load(small_model, "cpu").translate(["The dog sees the cat."], n_best=4)[0]
    assert (first["translation"], first["score"]) == (best.text, best.score)


def test_search_options(small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str]) -> None:
    translator = Translator.load(small_model, "cpu")
    text = ["The dog sees the cat."]
    assert output(capfd, small_model, lines, "--beam-size", 1)[0] == translator.translate(text, beam_size=1)[0].text
    drawn = replace(translator.options, sample=True, temperature=0.7, top_k=50, seed=5)
    sampling = ["--sample", "--temperature", "0.7", "--top-k", "50", "--seed", "5"]
    assert output(capfd, small_model, lines, *sampling)[0] == translator.translate(text, options=drawn)[0].text
    best = json.loads(output(capfd, small_model, lines, "--length-penalty", 0, "--json")[0])
    assert best["score"] == best["log_probability"]


def test_directions(several_directions: Path, lines: Path, capfd: pytest.CaptureFixture[str]) -> None:
    german, french = (
        output(capfd, several_directions, lines, "--source", "en", "--target", target) for target in ("de", "fr")
    )
    assert german != french


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MODEL", "no-such-file"], "There is no such corpus file"),
        (["FOLDER", "LINES"], "no model here"),
        (["MODEL", "LINES", "--source", "de"], "de-? is not a direction of this model; accepted: en-de"),
        (["MODEL", "LINES", "--top-k", "5"], "act on samples only: set sample"),
        (["MODEL", "LINES", "--beam-size", "0"], "beam_size is 0: at least 1"),
        (["MODEL", "LINES", "--device", "toaster"], "device 'toaster' cannot be used"),
        (["MODEL", "LINES", "--output", "/no/such/folder/out"], "/no/such/folder/out: cannot be written"),
    ],
)
def test_errors(
    small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    named = {"MODEL": str(small_model), "LINES": str(lines), "FOLDER": str(lines.parent)}
    assert main([named.get(argument, argument) for argument in arguments]) == 2
    found = capfd.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: ") and message in found.err


@pytest.mark.parametrize("arguments", [["--n-best", "2"], ["--threads", "0"]])
def test_usage(small_model: Path, arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(small_model), *arguments])
    assert ended.value.code == 2
    assert "usage:" in capfd.readouterr().err


def test_a_bad_line_is_named_and_what_came_before_it_is_written(
    small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translate, "LINES_AT_A_TIME", 10)
    file = tmp_path / "in"
    file.write_text("\n".join([*sentences(14), "dog " * 300, "cat " * 300]))
    assert main([str(small_model), str(file)]) == 2
    found = capfd.readouterr()
    assert found.out.count("\n") == 10
    assert found.err.startswith(f"error: {file} cannot be translated:\n  - line 15: the text that begins 'dog dog")
    assert "\n  - line 16: the text that begins 'cat cat" in found.err


def test_ctrl_c_is_no_traceback(
    small_model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(translate, "run", interrupted)
    assert main([str(small_model)]) == 130
    assert capfd.readouterr().err == "stopped\n"
