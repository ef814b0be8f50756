import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mt import Translator
from mt.cli.evaluate import main
from mt.data.corpus import read_lines
from tests.conftest import sentences, write_model

SOURCES = sentences(6)
REFERENCES = ["Das Haus.", "Der Hund bellt.", "Die Katze schläft.", "Der Fluss.", "Das Kind lacht.", "Der Zug."]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two files and one of tabs, with the same test set, and translations of which four are right."""
    columns = {"en": SOURCES, "de": REFERENCES, "out": [*REFERENCES[:4], "Das Kind weint.", "Der Bus."]}
    for name, lines in columns.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = zip(SOURCES, REFERENCES, strict=True)
    (tmp_path / "test.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def files(corpus: Path) -> list[str]:
    return ["--source-file", str(corpus / "en"), "--reference-file", str(corpus / "de")]


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(arguments) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_translations_that_are_there(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--source", "en", "--target", "de", "--worst", "1"]
    result = scored(capsys, "--hypothesis-file", str(corpus / "out"), *files(corpus), *options)
    assert result["exact_match"] == {"exact": 4, "sentences": 6, "percent": pytest.approx(100 * 4 / 6)}
    assert [score["name"] for score in result["scores"]] == ["BLEU", "chrF2", "TER", "BLEU-lc-moses"]
    assert all("version:" in score["signature"] for score in result["scores"])
    assert result["worst"][0]["source"] in SOURCES[4:]


@pytest.mark.parametrize("raw", [False, True])
def test_models_are_scored(small_model: Path, corpus: Path, capsys: pytest.CaptureFixture[str], raw: bool) -> None:
    out = corpus / "own"
    translator = Translator.load(small_model, "cpu")
    planner = translator.planner(options=replace(translator.options, beam_size=2), sentences=True)
    address = "https://example.org"
    (corpus / "en").write_text("\n".join([*SOURCES[1:], f"See {address}."]) + "\n", encoding="utf-8")
    translations = translator.run(replace(planner, protect=not raw), list(read_lines(corpus / "en")))
    assert (address in translations[-1].text) != raw
    out.write_text("".join(f"{translation.text}\n" for translation in translations), encoding="utf-8")
    arguments = ["--beam-size", "2", "--device", "cpu", *(["--raw"] if raw else [])]
    model = scored(capsys, str(small_model), *files(corpus), *arguments)
    existing = scored(capsys, "--hypothesis-file", str(out), *files(corpus), "--source", "en", "--target", "de")
    assert model["scores"] == existing["scores"]
    assert (model["direction"], model["beam_size"], model["device"]) == ("en-de", 2, "cpu")


def test_columns_in_another_language_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [("The dog sleeps under the old tree.", "Der Hund schläft unter dem alten Baum.")] * 10
    (tmp_path / "test.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "out").write_text("Der Hund.\n" * 10, encoding="utf-8")
    options = ["--tsv", str(tmp_path / "test.tsv"), "--columns", "de,en", "--source", "en", "--target", "de"]
    assert main(["--hypothesis-file", str(tmp_path / "out"), *options]) == 0
    first, second = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert "column 2 of 'en' reads as German" in first and "column 1 of 'de' reads as English" in second
    assert all(line.endswith("are the languages swapped?") for line in (first, second))


def test_an_ensemble_is_scored(small_model: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_model(corpus / "other", ["en-de"], seed=2)
    requests = [*files(corpus), "--device", "cpu"]
    alone = scored(capsys, str(small_model), *requests)
    together = scored(capsys, str(small_model), "--ensemble", str(other), *requests, "--baseline", str(small_model))
    assert together["ensemble"] == [str(other)] and alone["ensemble"] == []
    chrf = next(item for item in together["comparison"] if item["name"] == "chrF2")
    assert [chrf["baseline"]] == [item["value"] for item in alone["scores"] if item["name"] == "chrF2"]
    assert chrf["system"] != chrf["baseline"]
